"""`proctor eval history|download`: the runs of a recipe over time, and a run's files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.api.runs import Events
from proctor.cli.commands.remote import call_for_run, call_server
from proctor.cli.commands.shared_options import json_option, limit_option
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_interval, format_moment, format_short_number
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json
from proctor.config.experiment import read_recipe
from proctor.datasets.selection import parse_ranges
from proctor.errors import ConfigError
from proctor.projects.checkout import find_own_repository
from proctor.store.folder import METADATA, RESULTS

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.client.connection import ServerConnection

SHOWN_RUNS = 20
SHOWN_DIGITS = 12
LOGS = "logs.jsonl"
TYPES = {"results": RESULTS, "metadata": METADATA, "logs": LOGS}


# Over time


@click.command("history")
@click.argument("config", type=click.Path(path_type=Path), metavar="FILE")
@limit_option(SHOWN_RUNS)
@json_option
def history_command(config: Path, most: int, as_json: bool) -> None:
    """Show the runs of the recipe FILE over commits and time, the newest first, with intervals.

    Runs belong together if nothing in the recipe differs but the commit or the branch.
    """
    from proctor.client import runs

    wanted = runs.RunFilter(
        config_hash=read_recipe(config).recipe.hash,
        repository=find_own_repository(config.parent) or None,
    )

    async def read(server: ServerConnection) -> list[RunInfo]:
        found, _ = await runs.list_runs(server, wanted, None if most < 0 else most)
        return [await runs.read_run(server, run.id) for run in found]

    found = call_server(read)
    if as_json:
        print_json({"config_hash": wanted.config_hash, "runs": found})
        return
    print_table(
        (
            "submitted",
            "commit",
            "branch",
            TableColumn("name", may_shrink=True),
            "status",
            TableColumn("score", right=True),
            TableColumn("interval", may_shrink=True),
            TableColumn("pass rate", right=True),
        ),
        map(history_cells, found),
        nothing="No runs of this recipe; submit one with proctor eval submit.",
    )


def history_cells(run: RunInfo) -> Sequence[str]:
    from proctor.cli.views.hosted_runs import parse_summary

    summary, origin = parse_summary(run), run.origin
    mean = run.progress.mean_reward if summary is None else summary.reward.mean
    rate = None if summary is None else summary.scores.pass_rate
    return (
        format_moment(run.created_at),
        origin.commit_sha[:SHOWN_DIGITS] if origin is not None else "",
        origin.branch if origin is not None else "",
        run.name,
        run.status,
        "–" if mean is None else format_short_number(mean),
        "" if summary is None else format_interval(summary.reward),
        "–" if rate is None else format_short_number(rate),
    )


# Its files


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
