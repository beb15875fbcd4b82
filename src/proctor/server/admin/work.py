"""What hosts do, and what waits for them. Knows nothing of HTTP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from proctor.api.admin import HostInfo, HostRun, QueueItem
from proctor.run import ACTIVE
from proctor.server.db.tables import environments, runs, versions
from proctor.server.people.records import list_host_tokens
from proctor.server.people.tokens import HOST_CONTACT_SECONDS, OWN_HOST, has_host
from proctor.server.runs.queue import NO_HOST

MOST_WAITING = 500
"""Of runs, and of checks: more are not shown."""
HELD = [
    runs.c[name]
    for name in ("id", "name", "owner", "environment", "model", "status", "started_at", "settled", "planned")
]


def list_host_work(connection: Connection, now: float) -> list[HostInfo]:
    """Every host that may still play runs, with what it plays; those in contact first."""
    playing: dict[str, list[HostRun]] = {}
    query: Select[Any] = select(*HELD, runs.c.host).where(runs.c.status.in_(ACTIVE), runs.c.host.is_not(None))
    for row in connection.execute(query.order_by(runs.c.started_at)):
        playing.setdefault(row.host.rpartition("@")[2], []).append(describe_held(row))
    checking: dict[str, list[str]] = {}
    for check in connection.execute(select_checks("running").where(versions.c.check_lease_until > now)):
        checking.setdefault(check.check_host or "", []).append(describe_version(check))
    hosts = [
        HostInfo(
            token_id=token.id,
            name=token.name,
            is_own=token.name.startswith(OWN_HOST),
            is_connected=(token.last_used_at or 0.0) > now - HOST_CONTACT_SECONDS,
            created_at=token.created_at,
            last_used_at=token.last_used_at,
            expires_at=token.expires_at,
            runs=playing.get(token.id, []),
            checks=checking.get(token.id, []),
        )
        for token in list_host_tokens(connection)
    ]
    return sorted(hosts, key=lambda host: (not host.is_connected, host.name))


def describe_held(row: Row[Any]) -> HostRun:
    return HostRun(**{column.name: getattr(row, column.name) for column in HELD})


def list_queue(connection: Connection, now: float, most_per_user: int | None) -> list[QueueItem]:
    """What waits for a host, and why, the oldest first."""
    is_served = has_host(connection, now)
    active = count_active(connection)
    query = (
        select(runs)
        .where(runs.c.kind == "hosted", runs.c.status == "pending")
        .order_by(runs.c.created_at, runs.c.id)
        .limit(MOST_WAITING)
    )
    waiting = [
        QueueItem(
            kind="run",
            id=row.id,
            name=row.name,
            user=row.owner,
            environment=row.environment,
            model=row.model,
            since=row.created_at,
            reason=explain(row, is_served, active, most_per_user),
        )
        for row in connection.execute(query)
    ]
    checks = select_checks("pending").order_by(versions.c.created_at).limit(MOST_WAITING)
    waiting += [
        QueueItem(
            kind="check",
            id=row.id,
            name=describe_version(row),
            user=row.pushed_by,
            environment=f"{row.owner}/{row.name}",
            since=row.created_at,
            reason="Waits for a host that checks it." if is_served else NO_HOST,
        )
        for row in connection.execute(checks)
    ]
    return sorted(waiting, key=lambda item: item.since)


def explain(row: Row[Any], is_served: bool, active: Mapping[str, int], most_per_user: int | None) -> str:
    if not is_served:
        return NO_HOST
    if most_per_user is not None and active.get(row.owner, 0) >= most_per_user:
        return (
            f"The server plays at most {most_per_user} of one user's runs at once (--runs-per-user), and "
            f"{row.owner} has {active[row.owner]} under way."
        )
    lost = "Its host was lost, so it continues on the next one. " if row.attempt else ""
    return f"{lost}Every host is busy; users take turns, the one with the fewest active runs first."


def count_active(connection: Connection) -> Counter[str]:
    query = select(runs.c.owner).where(runs.c.kind == "hosted", runs.c.status.in_(ACTIVE))
    return Counter(connection.execute(query).scalars())


def select_checks(status: str) -> Select[Any]:
    columns = (versions.c.id, versions.c.version, versions.c.check_host, versions.c.pushed_by)
    return (
        select(*columns, versions.c.created_at, environments.c.owner, environments.c.name)
        .join(environments, environments.c.id == versions.c.environment_id)
        .where(versions.c.check_status == status)
    )


def describe_version(row: Row[Any]) -> str:
    return f"{row.owner}/{row.name}@{row.version}"
