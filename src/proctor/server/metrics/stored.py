"""What the database knows of the work: runs by status, how long the oldest waits, hosts in contact.

Every server of one database answers the same here. Knows nothing of how it is shown.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, func, select

from proctor.run import RunStatus
from proctor.server.db.tables import runs, tokens
from proctor.server.people.tokens import HOST_CONTACT_SECONDS

STATUSES: tuple[RunStatus, ...] = RunStatus.__args__  # type: ignore[attr-defined]


class StoredWork(msgspec.Struct, frozen=True):
    """A look at the database."""

    runs: dict[str, int]
    """Hosted runs by status; every status is included."""
    oldest_seconds: float
    """How long the oldest pending run has waited; 0 if none does."""
    hosts: int
    """In contact."""


def count_work(connection: Connection, now: float) -> StoredWork:
    hosted = runs.c.kind == "hosted"
    counted = connection.execute(select(runs.c.status, func.count()).where(hosted).group_by(runs.c.status))
    by_status: dict[str, int] = dict.fromkeys(STATUSES, 0)
    by_status.update((status, count) for status, count in counted)
    oldest = select(func.min(runs.c.created_at)).where(hosted, runs.c.status == "pending")
    since = connection.execute(oldest).scalar_one_or_none()
    in_contact = select(func.count()).where(
        tokens.c.kind == "host",
        tokens.c.revoked_at.is_(None),
        tokens.c.last_used_at > now - HOST_CONTACT_SECONDS,
    )
    waited = 0.0 if since is None else max(0.0, now - since)
    return StoredWork(by_status, waited, connection.execute(in_contact).scalar_one())
