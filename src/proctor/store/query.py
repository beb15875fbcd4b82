"""SQL over any number of runs, by DuckDB: tables `rollouts`, `runs` and `labels`.

Rows are copied batch by batch into a database in a temporary folder, so that the size of the runs does not
matter. Files written by `proctor eval export` are read where they are. Knows nothing of terminals.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, StoreError
from proctor.store.export import (
    NUMBER_COLUMNS,
    RUN_COLUMNS,
    TEXT_COLUMNS,
    ExportTable,
    arrow_batches,
    arrow_schema,
    scan_tables,
    to_text,
)
from proctor.store.index import StoredRun, read_run
from proctor.store.labels import RunLabels, read_labels

READERS = {
    ".csv": "read_csv(?, header = true, sample_size = -1)",
    ".jsonl": "read_json(?, format = 'newline_delimited', sample_size = -1)",
    ".parquet": "read_parquet(?)",
}
GLOB = re.compile(r"[*?\[]")
MEMORY = "1GB"
"""Beyond it, DuckDB continues on disk."""
FETCHED = 1_000
TYPES = {"text": "VARCHAR", "number": "DOUBLE", "whole": "BIGINT", "flag": "BOOLEAN"}
KNOWN_TYPES = {
    **dict.fromkeys(RUN_COLUMNS, "VARCHAR"),
    **{column.name: TYPES[column.kind] for column in (*NUMBER_COLUMNS, *TEXT_COLUMNS)},
}
RUN_FIELDS = {
    "run_id": "VARCHAR",
    "env": "VARCHAR",
    "model": "VARCHAR",
    "label": "VARCHAR",
    "agent": "VARCHAR",
    "status": "VARCHAR",
    "started_at": "DOUBLE",
    "seconds": "DOUBLE",
    "planned": "BIGINT",
    "folder": "VARCHAR",
}
"""Columns of the table `runs`."""
LABEL_FIELDS = {
    "run_id": "VARCHAR",
    "example_id": "VARCHAR",
    "rollout": "BIGINT",
    "person": "VARCHAR",
    "score": "DOUBLE",
    "note": "VARCHAR",
    "at": "DOUBLE",
}
"""Columns of the table `labels`; `run_id`, `example_id` and `rollout` are those of `rollouts`."""


class QueryAnswer(msgspec.Struct, frozen=True):
    """What a query found: the names of its columns, and its rows as they are fetched."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]
    faults: int
    """Lines of the runs that could not be read."""


def is_export(path: Path) -> bool:
    """Whether a path is a file that can be queried like a run."""
    return path.suffix.lower() in READERS and path.name != "results.jsonl" and path.is_file()


@contextmanager
def open_answer(sql: str, folders: Sequence[Path], exports: Sequence[Path] = ()) -> Iterator[QueryAnswer]:
    """Run one query over the runs in these folders and over exported files."""
    duckdb, arrow = import_duckdb()
    if not sql.strip(" \t\n;"):
        raise ConfigError("The query is empty; write SQL, such as: select * from rollouts")
    with tempfile.TemporaryDirectory(prefix="proctor-query-") as scratch:
        settings = {
            "memory_limit": MEMORY,
            "temp_directory": scratch,
            "autoinstall_known_extensions": "false",  # nothing is fetched unless the query says INSTALL
            "autoload_known_extensions": "false",
        }
        connection = duckdb.connect(str(Path(scratch) / "runs.duckdb"), config=settings)
        try:
            faults = fill_tables(connection, folders, exports, arrow)
            connection.execute(sql)
            columns = [column[0] for column in connection.description or ()]
            yield QueryAnswer(columns, fetch_rows(connection), faults)
        except duckdb.Error as error:
            raise ConfigError(f"The query failed: {shorten_error(error)}") from error
        finally:
            connection.close()


def import_duckdb() -> tuple[Any, Any]:
    try:
        import duckdb
        import pyarrow
    except ImportError as error:
        raise ConfigError(
            f"Queries need DuckDB and pyarrow ({error}); install them with pip install 'proctor[query]'."
        ) from error
    return duckdb, pyarrow


def fetch_rows(connection: Any) -> Iterator[tuple[Any, ...]]:
    while rows := connection.fetchmany(FETCHED):
        for row in rows:  # a decimal would be text in JSON
            yield tuple(float(value) if isinstance(value, Decimal) else value for value in row)


def shorten_error(error: Exception) -> str:
    """The first paragraph of DuckDB's message on one line; the rest repeats the query."""
    return " ".join(str(error).partition("\n\n")[0].split())


# Tables


def fill_tables(connection: Any, folders: Sequence[Path], exports: Sequence[Path], arrow: Any) -> int:
    """Create the tables, and say how many lines could not be read."""
    sources = []
    tables: list[ExportTable] = []
    if folders or not exports:
        tables = read_tables(folders)
        create_rollouts(connection, tables, arrow)
        sources.append("SELECT * FROM stored_rollouts")
    sources += [view_export(connection, path, number) for number, path in enumerate(exports)]
    connection.execute(f"CREATE VIEW rollouts AS {' UNION ALL BY NAME '.join(sources)}")
    stored = [read_run(folder) for folder in folders]
    create_table(connection, "runs", RUN_FIELDS, map(list_run_fields, stored))
    create_table(connection, "labels", LABEL_FIELDS, (row for run in stored for row in list_labels(run)))
    return sum(table.faults for table in tables)


def read_tables(folders: Sequence[Path]) -> list[ExportTable]:
    try:
        return scan_tables(folders)
    except StoreError as error:
        raise ConfigError(str(error)) from error


def create_rollouts(connection: Any, tables: Sequence[ExportTable], arrow: Any) -> None:
    if not tables:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in KNOWN_TYPES.items())
        connection.execute(f"CREATE TABLE stored_rollouts ({columns})")
        return
    connection.register("first_rows", arrow_schema(tables[0], arrow).empty_table())
    connection.execute("CREATE TABLE stored_rollouts AS SELECT * FROM first_rows")
    for table in tables:
        for batch in arrow_batches(table, arrow):
            connection.register("next_rows", arrow.Table.from_batches([batch]))
            connection.execute("INSERT INTO stored_rollouts SELECT * FROM next_rows")


def view_export(connection: Any, path: Path, number: int) -> str:
    """A SELECT of an exported file, with the types that columns have in stored runs."""
    literal = GLOB.sub(r"[\g<0>]", str(path.resolve()))  # DuckDB reads every file that a name matches
    quoted = "'" + literal.replace("'", "''") + "'"
    source = READERS[path.suffix.lower()].replace("?", quoted)
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    names = [row[0] for row in described]
    if "reward" not in names or "outcome" not in names:
        raise ConfigError(f"{path} has no columns outcome and reward; name a file of `proctor eval export`.")
    columns = ", ".join(
        f"CAST({quote_name(name)} AS {column_type(name, kind)}) AS {quote_name(name)}"
        for name, kind, *_ in described
    )
    name = f"export_{number}"
    connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")
    return f"SELECT * FROM {name}"


def column_type(name: str, found: str) -> str:
    if name.startswith("metric."):
        return "DOUBLE"
    return KNOWN_TYPES.get(name, "VARCHAR" if name.startswith("state.") else found)


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create_table(
    connection: Any, name: str, fields: Mapping[str, str], rows: Iterable[Sequence[Any]]
) -> None:
    columns = ", ".join(f'"{field}" {kind}' for field, kind in fields.items())
    connection.execute(f"CREATE TABLE {name} ({columns})")
    values = list(rows)
    if values:
        marks = ", ".join("?" * len(fields))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)


def list_run_fields(run: StoredRun) -> list[Any]:
    return [
        run.id,
        run.env,
        run.model,
        run.label,
        run.agent,
        run.status,
        run.started_at,
        run.seconds,
        run.planned,
        str(run.folder),
    ]


def list_labels(run: StoredRun) -> Iterator[list[Any]]:
    """People's labels of a run's rollouts; of several labels that one person gave a rollout, the last."""
    for given in read_run_labels(run).by_person.values():
        for label in given.values():
            task = to_text(label.example_id)
            yield [run.id, task, label.rollout, label.person, label.score, label.note, label.at]


def read_run_labels(run: StoredRun) -> RunLabels:
    try:
        return read_labels(run.folder)
    except StoreError as error:
        raise ConfigError(str(error)) from error
