"""Runs as a data frame of Polars, pandas or Arrow: the columns of an export, one row per rollout.

The libraries are imported when they are used. Knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from proctor.errors import ConfigError, StoreError
from proctor.store.export import ExportTable, arrow_batches, arrow_schema, batch_rows, scan_tables
from proctor.store.index import find_run, search_folders

Library = Literal["polars", "pandas", "arrow"]
MODULES = {"polars": "polars", "pandas": "pandas", "arrow": "pyarrow"}
EXTRAS = {"polars": "polars", "pandas": "pandas", "arrow": "parquet"}


def load_frame(
    runs: str | Path | Sequence[str | Path],
    library: Library = "polars",
    columns: Sequence[str] = (),
) -> Any:
    """Past runs as one data frame: a row per rollout, the columns of `proctor eval export`.

    `runs` names one run or several, each by its folder, its id, the beginning of its id, or "latest". A
    metric or state that only some of the runs have is null in the rows of the others.
    """
    words = [runs] if isinstance(runs, (str, Path)) else list(runs)
    if not words:
        raise ConfigError("No run is named; pass a folder, an id, or 'latest'.")
    return build_frame([find_run(str(word), search_folders()) for word in words], library, columns)


def build_frame(folders: Sequence[Path], library: str, columns: Sequence[str] = ()) -> Any:
    """The runs in these folders as a data frame of the library."""
    module = import_library(library)
    try:
        tables = scan_tables(folders, columns)
    except StoreError as error:
        raise ConfigError(f"{error} Give the folder of a run, or 'latest'.") from error
    return {"polars": build_polars, "pandas": build_pandas, "arrow": build_arrow}[library](tables, module)


def import_library(library: str) -> Any:
    if library not in MODULES:
        raise ConfigError(f"The library is polars, pandas or arrow, not {library!r}.")
    try:
        return import_module(MODULES[library])
    except ImportError as error:
        raise ConfigError(
            f"A data frame of {library} needs {MODULES[library]} ({error}); install it with "
            f"pip install 'proctor[{EXTRAS[library]}]'."
        ) from error


def build_arrow(tables: Sequence[ExportTable], arrow: Any) -> Any:
    schema = arrow_schema(tables[0], arrow)
    batches = [batch for table in tables for batch in arrow_batches(table, arrow)]
    return arrow.Table.from_batches(batches, schema=schema)


def build_polars(tables: Sequence[ExportTable], polars: Any) -> Any:
    kinds = {"text": polars.String, "number": polars.Float64, "whole": polars.Int64, "flag": polars.Boolean}
    schema = {column.name: kinds[column.kind] for column in tables[0].columns}
    return polars.DataFrame(collect_columns(tables), schema=schema)


def build_pandas(tables: Sequence[ExportTable], pandas: Any) -> Any:
    kinds = {"text": "object", "number": "float64", "whole": "int64", "flag": "bool"}
    values = collect_columns(tables)
    return pandas.DataFrame(
        {
            column.name: pandas.Series(values[column.name], dtype=kinds[column.kind])
            for column in tables[0].columns
        }
    )


def collect_columns(tables: Sequence[ExportTable]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in tables[0].names}
    for table in tables:
        for batch in batch_rows(table.values()):
            for name, values in zip(found, zip(*batch, strict=True), strict=True):
                found[name] += values
    return found
