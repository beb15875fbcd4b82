"""The rollouts of a run in task order, and the results of each task.

Numbered tasks come first, by number, then named ones by name; the rollouts of a task by theirs. Knows nothing
of HTTP.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from typing import Any

import msgspec
from sqlalchemy import Connection, case, func, select, tuple_

from proctor.api.runs import TaskResult
from proctor.server.db.tables import rollouts
from proctor.server.runs.rows import MOST_BYTES, row_conditions
from proctor.stats.samples import mean_of, variance

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


def list_task_results(
    connection: Connection, run_id: str, after: tuple[Any, ...] | None, limit: int, task: str | None
) -> tuple[list[tuple[tuple[int, int, str], TaskResult]], bool]:
    """The tasks after a place, in task order, and whether there are more."""
    wanted = row_conditions(run_id, 0, task=task)
    if after is not None:
        wanted.append(tuple_(*TASK_ORDER) > tuple_(*after))
    query = select(rollouts.c.task).where(*wanted).group_by(rollouts.c.task)
    places = connection.execute(
        query.add_columns(IS_NAMED, DIGITS).order_by(*TASK_ORDER).limit(limit + 1)
    ).all()
    shown = [(row[1], row[2], row[0]) for row in places[:limit]]
    results = summarise_tasks(connection, run_id, [task for _, _, task in shown])
    return [(place, results[place[2]]) for place in shown], len(places) > len(shown)


def summarise_tasks(connection: Connection, run_id: str, tasks: Sequence[str]) -> dict[str, TaskResult]:
    query = select(rollouts.c.task, rollouts.c.settled, rollouts.c.reward).where(
        rollouts.c.run_id == run_id, rollouts.c.task.in_(tasks)
    )
    by_task: dict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        by_task[row.task].append(row)
    return {task: build_task_result(task, found) for task, found in by_task.items()}


def build_task_result(task: str, found: Sequence[Any]) -> TaskResult:
    rewards = [row.reward for row in found if row.reward is not None]
    return TaskResult(
        task=msgspec.json.decode(task),
        rollouts=len(found),
        scored=len(rewards),
        failed=sum(not row.settled for row in found),
        mean=mean_of(rewards) if rewards else None,
        spread=sqrt(variance(rewards)) if len(rewards) > 1 else None,
        lowest=min(rewards, default=None),
        highest=max(rewards, default=None),
    )
