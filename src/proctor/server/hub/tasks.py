"""The tasks of a version, as the host that checked it found them. Knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select

from proctor.api.common import Page
from proctor.api.hub import TaskInfo
from proctor.server.db.tables import version_tasks
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.problems import ConflictError, NotFoundError

_decode = msgspec.json.Decoder(TaskInfo).decode


class TaskListing(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks of a version to list."""

    slug: str | None = None
    limit: int = 100
    cursor: str | None = None


def store_tasks(connection: Connection, version_id: str, tasks: Sequence[TaskInfo]) -> None:
    """Store what a check found, in place of what an earlier one did."""
    connection.execute(delete(version_tasks).where(version_tasks.c.version_id == version_id))
    values = [
        {
            "version_id": version_id,
            "place": place,
            "slug": task.slug.replace("\0", ""),  # which PostgreSQL could not store
            "task": msgspec.json.encode(task),
        }
        for place, task in enumerate(tasks)
    ]
    if values:
        connection.execute(insert(version_tasks), values)


def copy_tasks(connection: Connection, version_id: str, copy_id: str) -> None:
    columns = [version_tasks.c.place, version_tasks.c.slug, version_tasks.c.task]
    found = connection.execute(select(*columns).where(version_tasks.c.version_id == version_id)).all()
    if found:
        connection.execute(insert(version_tasks), [{**row._mapping, "version_id": copy_id} for row in found])


def is_taskset(connection: Connection, version_id: str) -> bool | None:
    """Whether its tasks are made from templates, which any agent can work on; None if none are listed."""
    query = select(version_tasks.c.task).where(version_tasks.c.version_id == version_id)
    first = connection.execute(query.order_by(version_tasks.c.place).limit(1)).scalar_one_or_none()
    return None if first is None else bool(_decode(first).template)


def list_tasks(connection: Connection, version: Row[Any], wanted: TaskListing) -> Page[TaskInfo]:
    """The tasks of a version, in the order of the environment."""
    limit = check_limit(wanted.limit)
    position = decode_cursor(wanted.cursor, int)
    query = select(version_tasks).where(version_tasks.c.version_id == version.id)
    if wanted.slug is not None:
        query = query.where(version_tasks.c.slug == wanted.slug)
    if position is not None:
        query = query.where(version_tasks.c.place > position[0])
    found = connection.execute(query.order_by(version_tasks.c.place).limit(limit + 1)).all()
    if not found and position is None:
        raise explain_missing(connection, version, wanted.slug)
    page = build_page(
        [(row.place, _decode(row.task)) for row in found], limit, lambda numbered: (numbered[0],)
    )
    return Page([task for _, task in page.items], page.next_cursor)


def explain_missing(connection: Connection, version: Row[Any], slug: str | None) -> Exception:
    query = select(version_tasks.c.place).where(version_tasks.c.version_id == version.id).limit(1)
    if slug is not None and connection.execute(query).first() is not None:
        return NotFoundError(f"Version {version.version} has no task {slug!r}.", slug=slug)
    why = {
        "pending": "its check has not started yet; try again soon",
        "running": "its check is still running; try again soon",
        "failed": "its check failed; `proctor env info` shows why",
        "inconclusive": "it needs a secret to load, and checks have none",
    }.get(version.check_status, "it was checked before tasks were recorded; push it again")
    return ConflictError(
        f"The tasks of version {version.version} are not known: {why}.",
        code="tasks_unknown",
        check=version.check_status,
    )
