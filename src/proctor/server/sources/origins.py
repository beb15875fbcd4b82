"""Where the code and the data of submitted runs come from, in the database. Knows nothing of HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select

from proctor.api.runs import RunDataset, RunOrigin
from proctor.server.db.tables import run_origins


def save_origin(connection: Connection, run_id: str, origin: RunOrigin) -> None:
    connection.execute(insert(run_origins).values(run_id=run_id, **msgspec.to_builtins(origin)))


def find_origin(connection: Connection, run_id: str) -> RunOrigin | None:
    """The origin of a run, if it was submitted from a repository."""
    row = connection.execute(select(run_origins).where(run_origins.c.run_id == run_id)).one_or_none()
    return None if row is None else build_origin(row)


def list_origins(connection: Connection) -> dict[str, RunOrigin]:
    """The origins of all runs that were submitted, by run, without their recipes."""
    columns = [column for column in run_origins.c if column.name != "recipe"]
    return {row.run_id: build_origin(row) for row in connection.execute(select(*columns))}


def build_origin(row: Row[Any]) -> RunOrigin:
    values: dict[str, Any] = {**row._mapping, "dataset": msgspec.convert(row.dataset, RunDataset)}
    del values["run_id"]
    return RunOrigin(**values)
