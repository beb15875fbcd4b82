"""`proctor eval export`: a run as a table, or in the shape of another tool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.shared_options import dir_option, finite_float
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_quantity
from proctor.cli.views.stdout import ignore_closed_pipe
from proctor.config.sources import parse_names
from proctor.errors import ConfigError, StoreError
from proctor.formats.training.writing import TrainingCounts, TrainingOptions, write_training
from proctor.store.export import import_arrow, scan_table, write_csv, write_file, write_jsonl
from proctor.store.folder import RESULTS, open_replacement

if TYPE_CHECKING:
    from proctor.store.export import ExportTable

TABLES = ("csv", "jsonl", "parquet")
TRAINING = ("messages", "preferences")
FORMATS = (*TABLES, *TRAINING, "inspect", "verifiers")
SUFFIXES = {**{name: name for name in TABLES}, "eval": "inspect"}


@click.command("export")
@click.argument("run", metavar="RUN|latest", shell_complete=complete_parameter)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's name, else csv.")
@click.option(
    "-o", "--output", metavar="FILE", default="-", help="File to write; '-' is stdout. [default: -]"
)
@click.option("--columns", metavar="NAMES", help="Only these columns, in this order, comma-separated.")
@click.option(
    "--min-reward",
    type=finite_float,
    metavar="X",
    help="messages, preferences: lowest reward of a good example. [default: a pass; any for preferences]",
)
@click.option(
    "--min-gap", type=finite_float, metavar="X", help="preferences: smallest lead of the chosen one."
)
@click.option("--all-pairs", is_flag=True, help="preferences: all pairs of a task, not best against worst.")
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="For a run on a server: keep it in this new folder, for `proctor trace` and the like.",
)
@dir_option
def export_command(
    run: str,
    kind: str | None,
    output: str,
    columns: str | None,
    min_reward: float | None,
    min_gap: float | None,
    all_pairs: bool,
    folder: Path | None,
    dirs: tuple[str, ...],
) -> None:
    """Write a run, named by its id or its folder, as a flat table: one row a rollout; or, with --format
    inspect or verifiers, as that tool's own log. The id may be that of a run on the server.

    For training, --format messages writes the conversations of rollouts that passed, and --format preferences
    pairs of a better and a worse rollout of one task, as JSON lines.

    \b
    proctor eval export latest -o results.csv
    proctor eval export outputs/evals/gsm8k--local/1a2b3c4d --format parquet -o results.parquet
    proctor eval export latest --columns example_id,rollout,reward,completion
    proctor eval export latest --format messages --min-reward 0.8 -o train.jsonl
    proctor eval export latest --format preferences --min-gap 0.5 -o pairs.jsonl
    proctor eval export latest -o run.eval
    proctor eval export latest --format verifiers -o outputs/evals/gsm8k--gpt-5/1a2b
    proctor eval export run-1a2b3c4d5e --folder outputs/evals/gsm8k--hosted/1a2b3c4d5e
    """
    from proctor.client.runs import is_run_id

    kind = kind or format_from_suffix(output)
    if kind == "parquet":
        if output == "-":
            raise ConfigError("A Parquet file cannot go to stdout; name a file with -o.")
        import_arrow()
    if kind not in (*TABLES, *TRAINING) and (columns or output == "-"):
        raise ConfigError(
            f"--format {kind} takes no --columns and cannot go to stdout; name its file with -o."
        )
    check_training(kind, columns, min_reward, min_gap, all_pairs)
    training = TrainingOptions(min_reward=min_reward, min_gap=min_gap or 0.0, all_pairs=all_pairs)
    wanted = parse_names(columns, "--columns") if columns else ()
    if not is_run_id(run):
        if folder is not None:
            raise ConfigError("--folder is for a run on a server; this one is already on this machine.")
        from proctor.store.index import find_run, search_folders

        export(find_run(run, search_folders(dirs)), wanted, kind, output, training)
        return
    from proctor.cli.commands.hosted_export import download_run

    with download_run(run, folder) as downloaded:
        if folder is None or output != "-":
            export(downloaded, wanted, kind, output, training)
        else:
            echo(f"{run} is in {downloaded}")


def check_training(
    kind: str, columns: str | None, min_reward: float | None, min_gap: float | None, all_pairs: bool
) -> None:
    if kind in TRAINING and columns:
        raise ConfigError(f"--format {kind} takes no --columns.")
    if kind not in TRAINING and min_reward is not None:
        raise ConfigError("--min-reward is for --format messages or preferences.")
    if kind != "preferences" and (min_gap is not None or all_pairs):
        raise ConfigError("--min-gap and --all-pairs are for --format preferences.")
    if min_gap is not None and not min_gap >= 0:
        raise ConfigError(f"--min-gap is a difference in reward, 0 or more; got {min_gap:g}.")


def export(folder: Path, wanted: Sequence[str], kind: str, output: str, training: TrainingOptions) -> None:
    if kind in TABLES:
        export_table(folder, wanted, kind, output)
    elif kind in TRAINING:
        export_training(folder, kind, output, training)
    else:
        export_log(folder, kind, Path(output))


def export_log(folder: Path, kind: str, output: Path) -> None:
    from proctor.formats.inspect.writing import write_eval_log
    from proctor.formats.verifiers.writing import write_verifiers_folder

    counts = write_eval_log(folder, output) if kind == "inspect" else write_verifiers_folder(folder, output)
    echo(f"{counts.rows:,} rollouts in {output}", err=True)
    report_faults(counts.faults, folder / RESULTS)


def export_training(folder: Path, kind: str, output: str, options: TrainingOptions) -> None:
    counts = TrainingCounts()
    try:
        if output == "-":
            with ignore_closed_pipe():
                counts = write_training(folder, kind, options, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        else:
            with open_replacement(Path(output)) as handle, open(handle, "wb", closefd=False) as file:
                counts = write_training(folder, kind, options, file)
    except OSError as error:
        raise StoreError(f"Cannot write {output}: {error.strerror or error}.") from error
    written = format_quantity(counts.written, "conversation" if kind == "messages" else "pair")
    ids = f", {counts.with_token_ids:,} with token ids" if counts.with_token_ids else ""
    echo(f"{written} from {format_quantity(counts.tasks, 'task')}{ids}", err=True)
    if counts.other_prompts:
        left_out = format_quantity(counts.other_prompts, "pair")
        echo(f"Left out {left_out} whose rollouts had different prompts.", err=True)
    if counts.same_answers:
        left_out = format_quantity(counts.same_answers, "pair")
        echo(f"Left out {left_out} whose rollouts gave the same answer.", err=True)
    report_faults(counts.faults, folder / RESULTS)


def export_table(folder: Path, wanted: Sequence[str], kind: str, output: str) -> None:
    try:
        table = scan_table(folder, wanted)
    except StoreError as error:
        raise ConfigError(f"{error} Give the folder of a run, or 'latest'.") from error
    if output == "-":
        write_table_to_stdout(table, kind)
    else:
        write_file(table, kind, Path(output))
        echo(f"{table.rows:,} rollouts in {output}", err=True)
    report_faults(table.faults, table.path)


def report_faults(faults: int, path: Path) -> None:
    if faults:
        lines = "1 line" if faults == 1 else f"{faults:,} lines"
        echo(f"Left out {lines} of {path} that cannot be read.", err=True)


def format_from_suffix(output: str) -> str:
    suffix = Path(output).suffix.removeprefix(".").lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix in ("", "txt"):
        return "csv"
    raise ConfigError(f"{output} looks like none of {', '.join(SUFFIXES)}; name one with --format.")


def write_table_to_stdout(table: ExportTable, kind: str) -> None:
    write = {"csv": write_csv, "jsonl": write_jsonl}[kind]
    with ignore_closed_pipe():
        write(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
