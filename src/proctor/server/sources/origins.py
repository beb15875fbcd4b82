"""Where the code and the data of submitted runs come from, in the database. Knows nothing of HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from proctor.api.runs import RunDataset, RunOrigin
from proctor.server.db.tables import run_origins


def save_origin(connection: Connection, run_id: str, origin: RunOrigin) -> None:
    connection.execute(insert(run_origins).values(run_id=run_id, **msgspec.to_builtins(origin)))


def find_origin(connection: Connection, run_id: str, *, in_full: bool) -> RunOrigin | None:
    """The origin of a run, if it was submitted from a repository."""
    columns = [column for column in run_origins.c if in_full or column.name != "recipe"]
    row = connection.execute(select(*columns).where(run_origins.c.run_id == run_id)).one_or_none()
    if row is None:
        return None
    values: dict[str, Any] = {**row._mapping, "dataset": msgspec.convert(row.dataset, RunDataset)}
    del values["run_id"]
    return RunOrigin(**values)
