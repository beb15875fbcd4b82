"""Sandboxes in the database: their owners, deadlines and status.

Knows nothing of HTTP, or of backends.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from proctor.api.common import BASE, new_id
from proctor.api.runs import Permissions
from proctor.api.sandboxes import Instance, Sandbox, SandboxStatus, ServedSession
from proctor.run import ENDED
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import runs, sandboxes, users
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, NotFoundError

SandboxKind = Literal["sandbox", "instance", "session"]
PREFIXES: Mapping[SandboxKind, str] = {"sandbox": "box", "instance": "inst", "session": "ses"}
MINUTE = 60.0
FORGOTTEN_SECONDS = 600.0


class RequestingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that makes a request."""

    id: str
    permissions: Permissions
    deadline_at: float | None


def find_requesting_run(connection: Connection, run_id: str) -> RequestingRun:
    query = select(runs.c.permissions, runs.c.deadline_at).where(runs.c.id == run_id)
    row = connection.execute(query).one()
    granted = msgspec.convert(row.permissions, Permissions)
    return RequestingRun(id=run_id, permissions=granted, deadline_at=row.deadline_at)


def add_record(
    connection: Connection,
    caller: Caller,
    kind: SandboxKind,
    *,
    server: str,
    backend: str,
    spec: Mapping[str, Any],
    minutes: float,
    at_once: int,
    deadline_at: float | None = None,
) -> Row[Any]:
    """Add a sandbox that is about to be created; it never outlives its run's deadline."""
    if caller.run_id:
        holder = select(runs.c.id).where(runs.c.id == caller.run_id)
        own = sandboxes.c.run_id == caller.run_id
    else:
        holder = select(users.c.id).where(users.c.name == caller.user)
        own = (sandboxes.c.owner == caller.user) & sandboxes.c.run_id.is_(None)
    connection.execute(holder.with_for_update())  # one after the other, so that the count is exact
    mine = select(func.count()).where(own, sandboxes.c.ended_at.is_(None))
    if connection.execute(mine).scalar_one() >= at_once:
        raise ConflictError(
            f"You have {at_once} sandboxes already, which is the limit; delete one first.",
            code="too_many_places",
        )
    now, id_ = time.time(), new_id(PREFIXES[kind])
    connection.execute(
        insert(sandboxes).values(
            id=id_,
            kind=kind,
            owner=caller.user,
            run_id=caller.run_id,
            server=server,
            backend=backend,
            status="starting",
            message="",
            spec={**spec, "attempt": caller.attempt},
            created_at=now,
            expires_at=min(now + minutes * MINUTE, deadline_at or float("inf")),
        )
    )
    return find_row(connection, id_)


def find_row(connection: Connection, sandbox_id: str) -> Row[Any]:
    return connection.execute(select(sandboxes).where(sandboxes.c.id == sandbox_id)).one()


def find_visible(connection: Connection, caller: Caller, kind: SandboxKind, sandbox_id: str) -> Row[Any]:
    """A sandbox that the caller may see: a run its own, a user their sessions, an admin all."""
    query = select(sandboxes).where(sandboxes.c.id == sandbox_id, sandboxes.c.kind == kind)
    row = connection.execute(query).one_or_none()
    if row is None or not is_owned_by(row, caller):
        raise NotFoundError(f"There is no {kind} {sandbox_id!r}.")
    return row


def is_owned_by(row: Row[Any], caller: Caller) -> bool:
    if caller.kind == "run":
        return row.run_id is not None and bool(row.run_id == caller.run_id)
    return caller.is_admin or (row.kind == "session" and row.owner == caller.user)


def list_rows(
    connection: Connection, caller: Caller, kind: SandboxKind, after: tuple[float, str] | None, limit: int
) -> list[Row[Any]]:
    """The newest first, and one more than the limit if there is one."""
    query = select(sandboxes).where(sandboxes.c.kind == kind)
    if caller.kind == "run":
        query = query.where(sandboxes.c.run_id == caller.run_id)
    elif not caller.is_admin:
        query = query.where(sandboxes.c.owner == caller.user)
    if after is not None:
        at, last = after
        query = query.where(
            (sandboxes.c.created_at < at) | ((sandboxes.c.created_at == at) & (sandboxes.c.id < last))
        )
    query = query.order_by(sandboxes.c.created_at.desc(), sandboxes.c.id.desc()).limit(limit + 1)
    return list(connection.execute(query))


def set_status(connection: Connection, sandbox_id: str, status: SandboxStatus, message: str = "") -> None:
    """Set the status of a sandbox; one that has ended stays as it is."""
    ended_at = None if status == "ready" else time.time()
    connection.execute(
        update(sandboxes)
        .where(sandboxes.c.id == sandbox_id, sandboxes.c.ended_at.is_(None))
        .values(status=status, message=message, ended_at=ended_at)
    )


def end_all(connection: Connection, server: str, message: str) -> set[str]:
    """End everything a server created before it was restarted; returns the backends involved."""
    left = (sandboxes.c.server == server) & sandboxes.c.ended_at.is_(None)
    backends = set(connection.execute(select(sandboxes.c.backend).where(left).distinct()).scalars())
    ended = {"status": "ended", "message": message, "ended_at": time.time()}
    connection.execute(update(sandboxes).where(left).values(ended))
    return backends


def list_ids_of_run(connection: Connection, run_id: str) -> list[str]:
    query = select(sandboxes.c.id).where(sandboxes.c.run_id == run_id, sandboxes.c.ended_at.is_(None))
    return list(connection.execute(query).scalars())


def list_alive_ids(connection: Connection) -> set[str]:
    return set(connection.execute(select(sandboxes.c.id).where(sandboxes.c.ended_at.is_(None))).scalars())


def find_overdue(connection: Connection, server: str, now: float) -> dict[str, str]:
    """Sandboxes of a server that must end, and why."""
    query = (
        select(sandboxes, runs.c.status.label("run_status"), runs.c.attempt)
        .join(runs, runs.c.id == sandboxes.c.run_id, isouter=True)
        .where(sandboxes.c.server == server, sandboxes.c.ended_at.is_(None))
    )
    found = {}
    for row in connection.execute(query):
        if row.run_id is not None and row.run_status in ENDED:
            found[row.id] = "Its run is over."
        elif row.run_id is not None and row.attempt != row.spec["attempt"]:
            found[row.id] = "Its run was started again."
        elif row.expires_at < now:
            found[row.id] = "Its time was up."
    return found


def end_forgotten_sandboxes(connection: Connection, now: float) -> None:
    """Those of servers that never came back; any other ends its own sandboxes in time."""
    forgotten = sandboxes.c.ended_at.is_(None) & (sandboxes.c.expires_at < now - FORGOTTEN_SECONDS)
    values = {"status": "ended", "message": "Its server is gone.", "ended_at": now}
    connection.execute(update(sandboxes).where(forgotten).values(values))


# Building answers


def build_sandbox(row: Row[Any]) -> Sandbox:
    return struct_from_row(Sandbox, row, run=row.run_id)


def build_instance(row: Row[Any]) -> Instance:
    return struct_from_row(
        Instance,
        row,
        run=row.run_id,
        port=row.spec["port"],
        url=f"{BASE}/instances/{row.id}/port/",
    )


def build_session(row: Row[Any], token: str | None) -> ServedSession:
    return struct_from_row(
        ServedSession,
        row,
        environment=row.spec["environment"],
        token=token if row.status == "ready" else None,
    )
