"""The rows of a run in task order.

Numbered tasks come first, by number, then named ones by name; the rollouts of a task by theirs. Knows nothing
of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select, tuple_

from proctor.server.db.tables import rollouts
from proctor.server.runs.rows import MOST_BYTES, row_conditions
from proctor.server.runs.stored_rows import ROWS_WITH_SEGMENTS, STORED, RowLocation, stored_row

IS_NAMED = case((rollouts.c.task.like('"%'), 1), else_=0)
DIGITS = case((rollouts.c.task.like('"%'), 0), else_=func.length(rollouts.c.task))
TASK_ORDER = (IS_NAMED, DIGITS, rollouts.c.task)
"""The column has JSON: of two whole numbers, the one with more digits is larger."""

Position = tuple[int, int, str, int]
"""The position of a rollout in task order; that of the task itself has number 0."""


def read_rows_by_task(
    connection: Connection,
    run_id: str,
    after: tuple[Any, ...] | None,
    limit: int,
    *,
    failed: bool = False,
    task: str | None = None,
) -> tuple[list[tuple[Position, RowLocation]], bool]:
    """Rows after a place, and whether there are more: up to the limit, or as many as may be in memory
    together."""
    wanted = row_conditions(run_id, 0, failed=failed, task=task)
    order = (*TASK_ORDER, rollouts.c.number)
    if after is not None:
        wanted.append(tuple_(*order) > tuple_(*after))
    keys: Sequence[Any] = connection.execute(
        select(*order).where(*wanted).order_by(*order).limit(limit + 1)
    ).all()
    found: list[tuple[Position, RowLocation]] = []
    size = 0
    stored = read_stored(connection, run_id, keys[:limit])
    for key in keys[:limit]:
        row = stored[key[2], key[3]]
        size += row.size
        if found and size > MOST_BYTES:
            break
        found.append(((key[0], key[1], key[2], key[3]), row))
    return found, len(keys) > len(found)


def read_stored(
    connection: Connection, run_id: str, keys: Sequence[Sequence[Any]]
) -> dict[tuple[str, int], RowLocation]:
    tasks = list({key[2] for key in keys})
    numbers = list({key[3] for key in keys})
    wanted = (rollouts.c.run_id == run_id, rollouts.c.task.in_(tasks), rollouts.c.number.in_(numbers))
    query = select(rollouts.c.task, rollouts.c.number, *STORED).select_from(ROWS_WITH_SEGMENTS).where(*wanted)
    return {(row.task, row.number): stored_row(row) for row in connection.execute(query)}
