"""`proctor eval export`: a run as CSV, JSON lines or Parquet."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.jobs import dir_option
from proctor.cli.options import completed
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.store.export import Table

FORMATS = ("csv", "jsonl", "parquet")


@click.command("export")
@click.argument("run", metavar="RUN|latest", shell_complete=completed)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's name, else csv.")
@click.option(
    "-o", "--output", metavar="FILE", default="-", help="File to write; '-' is stdout. [default: -]"
)
@click.option("--columns", metavar="NAMES", help="Only these columns, in this order, comma-separated.")
@dir_option
def export_command(
    run: str, kind: str | None, output: str, columns: str | None, dirs: tuple[str, ...]
) -> None:
    """Write a run, named by its id or its folder, as a flat table: one row a rollout.

    \b
    proctor eval export latest -o results.csv
    proctor eval export outputs/evals/gsm8k--local/1a2b3c4d --format parquet -o results.parquet
    proctor eval export latest --columns example_id,rollout,reward,completion
    """
    from proctor.config.sources import parse_names
    from proctor.errors import StoreError
    from proctor.store.export import arrow_modules, table_of, write_file
    from proctor.store.index import find_run, places

    kind = kind or kind_of(output)
    if kind == "parquet":
        if output == "-":
            raise ConfigError("A Parquet file cannot go to stdout; name a file with -o.")
        arrow_modules()
    try:
        table = table_of(find_run(run, places(dirs)), parse_names(columns, "--columns") if columns else ())
    except StoreError as error:
        raise ConfigError(f"{error} Give the folder of a run, or 'latest'.") from error
    if output == "-":
        write_stdout(table, kind)
    else:
        write_file(table, kind, Path(output))
        click.echo(f"{table.rows:,} rollouts in {output}", err=True)
    if table.faults:
        lines = "1 line" if table.faults == 1 else f"{table.faults:,} lines"
        click.echo(f"Left out {lines} of {table.path} that cannot be read.", err=True)


def kind_of(output: str) -> str:
    suffix = Path(output).suffix.removeprefix(".").lower()
    if suffix in FORMATS:
        return suffix
    if suffix in ("", "txt"):
        return "csv"
    raise ConfigError(f"{output} looks like none of {', '.join(FORMATS)}; name one with --format.")


def write_stdout(table: Table, kind: str) -> None:
    from proctor.store.export import write_csv, write_jsonl

    write = {"csv": write_csv, "jsonl": write_jsonl}[kind]
    try:
        write(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
