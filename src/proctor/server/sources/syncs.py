"""The syncs of sources, each with its log, in the database. Knows nothing of HTTP or git."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select, update

from proctor.api.common import new_id
from proctor.api.sources import SourceSync, SyncStatus
from proctor.server.announcements import announce_source
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import source_syncs
from proctor.server.sources.records import strip_unstorable

MOST_KEPT = 20
"""Of one source."""
STOPPED = "The server stopped; sync again."
FORGOTTEN_SECONDS = 3600.0
"""No sync takes this long."""


class SyncEnding(NamedTuple):
    """How a sync ended."""

    status: SyncStatus
    log: Sequence[str]
    commit: str = ""


def start_sync(connection: Connection, source_id: str, cause: str, branch: str, server: str) -> str:
    id_ = new_id("sync")
    connection.execute(
        insert(source_syncs).values(
            id=id_,
            source_id=source_id,
            cause=cause,
            server=server,
            branch=branch,
            status="running",
            log=[],
            commit_sha="",
            started_at=time.time(),
        )
    )
    of_source = source_syncs.c.source_id == source_id
    newest = select(source_syncs.c.id).where(of_source).order_by(source_syncs.c.started_at.desc())
    kept = connection.execute(newest.limit(MOST_KEPT)).scalars().all()
    connection.execute(delete(source_syncs).where(of_source, source_syncs.c.id.not_in(kept)))
    announce_source(connection, source_id)
    return id_


def end_sync(connection: Connection, sync_id: str, source_id: str, ending: SyncEnding) -> None:
    values = {
        "status": ending.status,
        "log": [strip_unstorable(line) for line in ending.log],
        "commit_sha": ending.commit,
        "ended_at": time.time(),
    }
    connection.execute(update(source_syncs).where(source_syncs.c.id == sync_id).values(values))
    announce_source(connection, source_id)


def end_interrupted(connection: Connection, server: str) -> None:
    """Those that this server was at when it was killed."""
    end_running(connection, or_(source_syncs.c.server == server, source_syncs.c.server.is_(None)))


def end_forgotten_syncs(connection: Connection, now: float) -> None:
    """Those of servers that were killed and never came back."""
    end_running(connection, source_syncs.c.started_at < now - FORGOTTEN_SECONDS)


def end_running(connection: Connection, which: ColumnElement[bool]) -> None:
    values = {"status": "interrupted", "log": [STOPPED], "ended_at": time.time()}
    connection.execute(update(source_syncs).where(source_syncs.c.status == "running", which).values(values))


def list_syncs(connection: Connection, source_id: str) -> list[SourceSync]:
    query = select(source_syncs).where(source_syncs.c.source_id == source_id)
    rows = connection.execute(query.order_by(source_syncs.c.started_at.desc()).limit(MOST_KEPT))
    return [describe_sync(row) for row in rows]


def find_running(connection: Connection, source_ids: Collection[str]) -> dict[str, float]:
    """Since when each of some sources is being synced, if it is."""
    running = source_syncs.c.source_id.in_(source_ids) & (source_syncs.c.status == "running")
    query = select(source_syncs.c.source_id, func.min(source_syncs.c.started_at)).where(running)
    return {row[0]: row[1] for row in connection.execute(query.group_by(source_syncs.c.source_id))}


def describe_sync(row: Row[Any]) -> SourceSync:
    return struct_from_row(SourceSync, row)
