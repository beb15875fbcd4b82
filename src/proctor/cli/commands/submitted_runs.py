"""`proctor eval download`: the files of a run on a server."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.api.runs import Events
from proctor.cli.commands.server_calls import call_for_run
from proctor.cli.views.escape import echo
from proctor.datasets.selection import parse_ranges
from proctor.errors import ConfigError
from proctor.store.folder import METADATA, RESULTS

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection

LOGS = "logs.jsonl"
TYPES = {"results": RESULTS, "metadata": METADATA, "logs": LOGS}


@click.command("download")
@click.argument("run", metavar="ID|NAME|LINK")
@click.option(
    "--type",
    "types",
    default="results,metadata",
    show_default=True,
    help="What to download, comma-separated: results, metadata, logs, or all.",
)
@click.option("--rows", default="", help="Only the results of these rows, such as 3,7,10-20, from 0.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The new folder; default: the run's name."
)
def download_command(run: str, types: str, rows: str, output: Path | None) -> None:
    """Download a run from the server into a folder that looks like a local run's.

    \b
    proctor eval download my-rollout-brisk-otter --type all
    proctor eval download my-rollout-brisk-otter --rows 3,7 -o failed-rows
    """
    from proctor.cli.commands.hosted_export import download_run

    wanted = parse_types(types)
    chosen = parse_ranges(rows) if rows else ()
    target = output or Path(run.rpartition("/")[2])
    if target.exists():
        raise ConfigError(f"{target} already exists; name a new folder with -o.")
    with download_run(run, None) as folder:
        if chosen:
            keep_rows(folder / RESULTS, chosen)
        if "logs" in wanted:
            download_logs(run, folder / LOGS)
        for name, file in TYPES.items():
            if name not in wanted:
                (folder / file).unlink(missing_ok=True)
        shutil.copytree(folder, target)
    echo(f"{run} is in {target}")


def parse_types(text: str) -> set[str]:
    names = {name.strip() for name in text.split(",") if name.strip()}
    if names == {"all"}:
        return set(TYPES)
    if not names or names - set(TYPES):
        raise ConfigError(f"--type takes {', '.join(TYPES)} or all, not {text!r}.")
    return names


def keep_rows(file: Path, chosen: Sequence[range]) -> None:
    kept = file.with_suffix(".kept")
    with file.open("rb") as every, kept.open("wb") as some:
        for line in every:
            number: Any = msgspec.json.decode(line).get("example_id")
            if isinstance(number, int) and any(number in each for each in chosen):
                some.write(line)
    kept.rename(file)


def download_logs(run: str, file: Path) -> None:
    from proctor.client.runs import run_path

    async def write(server: ServerConnection, run_id: str) -> None:
        after = 0
        with file.open("wb") as out:
            while True:
                news = await server.get(f"{run_path(run_id)}/events", Events, after=after)
                for event in news.items:
                    out.write(msgspec.json.encode(event) + b"\n")
                if not news.items or news.items[-1].seq >= news.last_seq:
                    return
                after = news.items[-1].seq

    call_for_run(run, write)
