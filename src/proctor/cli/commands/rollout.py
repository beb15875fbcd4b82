"""`proctor rollout`: create and list the rollouts of a project."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from proctor.cli.commands.shared_options import json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError
from proctor.projects.code_version import run_git
from proctor.projects.layout import find_project
from proctor.projects.listing import RolloutListing, describe_rollouts
from proctor.projects.scaffold import plan_files, write_files


@click.group("rollout")
def rollout_group() -> None:
    """Create and list rollouts: a workflow and a grader each, in the repository you are in."""


@rollout_group.command("init")
@click.argument("name")
@click.option("-f", "--force", is_flag=True, help="Overwrite the files of an existing rollout.")
def init_command(name: str, force: bool) -> None:
    """Create rollout NAME with a recipe and a small dataset, ready to run.

    \b
    proctor rollout init my-rollout
    proctor eval run configs/eval/my-rollout.toml
    """
    root = find_root(Path())
    files = plan_files(root, name, force=force)
    write_files(files)
    for path in files:
        echo(f"wrote {path.relative_to(root)}")
    if not run_git(root, "rev-parse", "--git-dir"):
        echo("\nThis is not a git repository yet: git init")
    echo(f"\nNext:\n  proctor eval run configs/eval/{name}.toml\n  proctor doctor")


def find_root(here: Path) -> Path:
    """Where a new rollout belongs: in the project, else in the repository, else here."""
    try:
        return find_project(here).root
    except ConfigError:
        top = run_git(here.resolve(), "rev-parse", "--show-toplevel")
        return Path(top) if top else here.resolve()


@rollout_group.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the rollouts of the project you are in, and the recipes that use them."""
    entries = describe_rollouts(find_project(Path()))
    if as_json:
        print_json({"rollouts": [msgspec.to_builtins(each) for each in entries]})
        return
    columns = ("name", "packages", "recipes", TableColumn("problem", may_shrink=True))
    rows = [format_entry(each) for each in entries]
    print_table(columns, rows, nothing="No rollouts; create one with: proctor rollout init my-rollout.")


def format_entry(entry: RolloutListing) -> tuple[str, str, str, str]:
    state = {True: "installed", False: "not installed yet"}[entry.is_installed] if entry.packages else "-"
    count = f"{len(entry.packages)} {state}" if entry.packages else "-"
    return entry.name, count, ", ".join(entry.recipes) or "-", entry.problem
