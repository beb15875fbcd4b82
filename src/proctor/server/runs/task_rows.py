"""The rows of a run in task order.

Numbered tasks come first, by number, then named ones by name; the rollouts of a task by theirs. Knows nothing
of HTTP.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select, tuple_

from proctor.server.db.tables import rollouts
from proctor.server.runs.rows import MOST_BYTES, row_conditions

IS_NAMED = case((rollouts.c.task.like('"%'), 1), else_=0)
DIGITS = case((rollouts.c.task.like('"%'), 0), else_=func.length(rollouts.c.task))
TASK_ORDER = (IS_NAMED, DIGITS, rollouts.c.task)
"""The column has JSON: of two whole numbers, the one with more digits is larger."""

Place = tuple[int, int, str, int]
"""Where a rollout stands in task order; the number of a task's own place is 0."""


def read_rows_by_task(
    connection: Connection,
    run_id: str,
    after: tuple[Any, ...] | None,
    limit: int,
    *,
    failed: bool = False,
    task: str | None = None,
) -> tuple[list[tuple[Place, bytes]], bool]:
    """Rows after a place, and whether there are more: up to the limit, or as many as may be in memory
    together."""
    wanted = row_conditions(run_id, 0, failed=failed, task=task)
    order = (*TASK_ORDER, rollouts.c.number)
    if after is not None:
        wanted.append(tuple_(*order) > tuple_(*after))
    keys: Sequence[Any] = connection.execute(
        select(*order).where(*wanted).order_by(*order).limit(limit + 1)
    ).all()
    found: list[tuple[Place, bytes]] = []
    size = 0
    packed = read_packed(connection, run_id, keys[:limit])
    for key in keys[:limit]:
        raw = zlib.decompress(packed[key[2], key[3]])
        size += len(raw)
        if found and size > MOST_BYTES:
            break
        found.append(((key[0], key[1], key[2], key[3]), raw))
    return found, len(keys) > len(found)


def read_packed(
    connection: Connection, run_id: str, keys: Sequence[Sequence[Any]]
) -> dict[tuple[str, int], bytes]:
    tasks = list({key[2] for key in keys})
    numbers = list({key[3] for key in keys})
    query = select(rollouts.c.task, rollouts.c.number, rollouts.c.row).where(
        rollouts.c.run_id == run_id, rollouts.c.task.in_(tasks), rollouts.c.number.in_(numbers)
    )
    return {(row.task, row.number): row.row for row in connection.execute(query)}
