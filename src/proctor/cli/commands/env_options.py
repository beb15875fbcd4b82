"""Options that several commands of `proctor env` have."""

from __future__ import annotations

import click

env_dir = click.option(
    "-p",
    "--path",
    "--env-dir-path",
    "env_dir",
    default="./environments",
    show_default=True,
    help="Folder of local environments.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
