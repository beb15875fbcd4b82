"""`proctor import`: results of other tools as ordinary runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.shared_options import json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_quantity
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError, ProctorError

if TYPE_CHECKING:
    from proctor.formats.detect import Found
    from proctor.formats.saving import ImportedRun

SHOWN_PROBLEMS = 3


@click.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    default="outputs",
    help="Folder to keep the runs in, as for `proctor eval run -o`. [default: outputs]",
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option("--reward", metavar="NAME", help="The score or metric that counts as the reward.")
@json_option
def import_command(paths: Sequence[Path], output: Path, reward: str | None, as_json: bool) -> None:
    """Import results from verifiers, Inspect, Harbor, HUD or promptfoo as ordinary runs.

    PATH is a file or a folder, which is searched; the format is recognized by the content. A run that was
    imported before is replaced. Exit code 1 if anything could not be read.

    \b
    proctor import logs/2026-11-16T19-46-46_arith_EGwFNZk2.eval
    proctor import ./logs ~/jobs/2026-11-16__12-00-00 -o outputs
    proctor import results.json --reward score
    """
    from proctor.formats.detect import find_sources

    imported: list[ImportedRun] = []
    errors: list[tuple[Path, str]] = []
    for path in paths:
        try:
            sources = find_sources(path)
        except ConfigError as error:
            if len(paths) == 1:
                raise
            errors.append((path, str(error)))
            continue
        for source in sources:
            try:
                imported += import_source(source, output, reward, as_json)
            except ProctorError as error:
                if len(paths) == len(sources) == 1:
                    raise
                errors.append((source.path, str(error)))
    finish(imported, errors, output, as_json)


def import_source(source: Found, output: Path, reward: str | None, is_quiet: bool) -> list[ImportedRun]:
    from proctor.formats.saving import save_run

    imported = []
    for run in source.format.read(source.path, reward):
        saved = save_run(run, output)
        imported.append(saved)
        if not is_quiet:
            print_import(saved)
    return imported


def print_import(saved: ImportedRun) -> None:
    mean = "" if saved.reward is None else f", reward {saved.reward:.3f}"
    size = format_quantity(saved.rollouts, "rollout")
    again = "" if saved.is_new else " (replaced)"
    echo(
        f"{saved.run}  {saved.tool}  {saved.environment}  {saved.model}  {size}{mean}{again}  {saved.folder}"
    )
    for problem in saved.problems[:SHOWN_PROBLEMS]:
        echo(f"Left out {problem}", err=True)
    if (more := saved.left_out - SHOWN_PROBLEMS) > 0:
        echo(f"Left out {more:,} more; see `imported` in {saved.folder}/metadata.json", err=True)


def finish(
    imported: Sequence[ImportedRun], errors: Sequence[tuple[Path, str]], output: Path, as_json: bool
) -> None:
    from proctor.store.locate import remember_base

    if imported:
        remember_base(output)
    if as_json:
        listed = [{"path": str(path), "error": problem} for path, problem in errors]
        print_json({"imported": imported, "errors": listed})
    for path, problem in errors:
        text = problem if str(path) in problem else f"{path}: {problem}"
        echo(f"Error: {text}", err=True)
    if errors or any(each.left_out for each in imported):
        raise click.exceptions.Exit(1)
