"""`proctor query`: SQL over any number of runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.commands.export import report_faults
from proctor.cli.commands.located_runs import locate_runs
from proctor.cli.commands.shared_options import dir_option, json_option, limit_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.store.query import QueryAnswer

SHOWN_ROWS = 100


@click.command("query")
@click.argument("sql", metavar="SQL")
@click.argument("run", metavar="[RUN]…", nargs=-1, shell_complete=complete_parameter)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@limit_option(SHOWN_ROWS)
@dir_option
@json_option
def query_command(
    sql: str, run: tuple[str, ...], as_csv: bool, most: int, dirs: tuple[str, ...], as_json: bool
) -> None:
    """Query runs with SQL. The table `rollouts` has one row per rollout, with the columns of `eval export`;
    the table `runs` has one row per run; `labels` has people's labels of rollouts (`eval label`).

    A RUN is named by its id or the beginning of it, its folder, a folder that holds runs, 'latest', its whole
    id on the server, or a file written by `eval export`. If you name none, all runs that `proctor jobs` lists
    are read. Needs the extra `query`. --csv and --json print every row; a table shows the first ones.

    \b
    proctor query "select model, avg(reward) from rollouts group by model" results
    proctor query "select example_id, stddev(reward) s from rollouts group by all order by s desc" latest
    proctor query "select * from rollouts where outcome = 'model_error'" 1a2b 3c4d --csv
    proctor query "select run_id, status from runs" --json
    proctor query "select person, avg(score), avg(reward) from labels
        join rollouts using (run_id, example_id, rollout) group by person" latest
    """
    from proctor.store.query import import_duckdb, open_answer

    if as_csv and as_json:
        raise ConfigError("--json and --csv cannot be combined; give one of them.")
    import_duckdb()
    with ExitStack() as stack:
        folders, exports = locate_runs(run, dirs, stack)
        with open_answer(sql, folders, exports) as answer:
            show_answer(answer, as_csv, as_json, most)
            report_faults(answer.faults, Path("the results"))


def show_answer(answer: QueryAnswer, as_csv: bool, as_json: bool, most: int) -> None:
    from proctor.cli.views.page import TableColumn, print_table
    from proctor.cli.views.stdout import write_stdout

    if as_json:
        write_stdout(encode_objects(answer))
    elif as_csv:
        write_stdout(encode_csv(answer))
    else:
        rows = list(take(answer.rows, most))
        numbers = [is_numeric(values) for values in zip(*rows, strict=True)]
        columns = [
            TableColumn(name, right=right, may_shrink=not right)
            for name, right in zip(answer.columns, numbers, strict=bool(rows))
        ]
        print_table(columns, [list(map(format_value, row)) for row in rows], nothing="No rows.")
        if most >= 0 and len(rows) == most and next(answer.rows, None) is not None:
            echo(
                f"Only the first {most:,} rows are shown; -n -1 shows all, --csv and --json print all.",
                err=True,
            )


def take(rows: Iterable[tuple[Any, ...]], most: int) -> Iterator[tuple[Any, ...]]:
    from itertools import islice

    return islice(rows, most if most >= 0 else None)


def is_numeric(values: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, (int, float)) and value is not True) for value in values)


def format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def encode_csv(answer: QueryAnswer) -> Iterator[bytes]:
    def line(values: Iterable[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow(values)
        return text.getvalue().encode()

    yield line(answer.columns)
    yield from (line(row) for row in answer.rows)


def encode_objects(answer: QueryAnswer) -> Iterator[bytes]:
    """One JSON array, an object on each line, written as rows are fetched."""
    from proctor.cli.views.stdout import encode_json

    mark = b"["
    for row in answer.rows:
        yield mark + b"\n" + encode_json(dict(zip(answer.columns, row, strict=True)))
        mark = b","
    yield b"[]\n" if mark == b"[" else b"\n]\n"
