"""Move rows and events of runs that have ended from the database to the object store, a segment at a time.

A segment is stored before anything points to it, in one transaction: killed in between, it is garbage, and
what it holds is where it was. Two servers at once store the same bytes, and one of them points to them.
Entries and counts stay in the database, so lists and reports need no store. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, exists, or_, select, update

from proctor.run import ENDED
from proctor.server.db.database import Database
from proctor.server.db.tables import events, rollout_entries, rollouts, runs
from proctor.server.problems import NotFoundError
from proctor.server.runs.queue import find_run, lock_run
from proctor.server.runs.stored_events import EventsToMove, point_to_event_segment
from proctor.server.runs.stored_rows import RowsToMove, drop_empty_segments, point_to_segment
from proctor.server.storage.blobs import Blob, Blobs

QUIET_SECONDS = 3600.0
"""A run that ended a moment ago may be resumed, and is read most; a log that was fetched is read on."""
SEGMENT_BYTES = 8 * 2**20
ROWS_AT_ONCE = 1_000
EVENTS_AT_ONCE = 500
SEGMENT_EVENTS = 10_000
"""So that the transaction that puts them back takes a fraction of a second: on SQLite, others wait for it."""
KEPT_LOG_BYTES = 64 * 2**10
"""Less than this of a log stays in the database: it takes less room than the objects would take requests."""
RUNS_AT_ONCE = 20


async def archive_ended_runs(database: Database, blobs: Blobs, now: float) -> int:
    """Move what is due; returns how many runs it moved."""
    count = 0
    while due := await database.read(find_due_runs, now - QUIET_SECONDS):
        for run_id in due:
            try:
                await archive_run(database, blobs, run_id, now)
            except NotFoundError:  # deleted meanwhile
                continue
            count += 1
    return count


async def archive_run(database: Database, blobs: Blobs, run_id: str, now: float) -> None:
    while (moved := await database.read(read_rows_to_move, run_id)).places:
        blob = await blobs.add(b"".join(moved.packed))
        await database.write(point_rows, run_id, moved, blob)
    before = now - QUIET_SECONDS
    while (batch := await database.read(read_events_to_move, run_id, before)) is not None:
        blob = await blobs.add(await asyncio.to_thread(batch.pack))
        await database.write(point_events, run_id, batch, blob, before)
    await database.write(finish_run, run_id, now)


def find_due_runs(connection: Connection, before: float) -> list[str]:
    is_quiet = or_(runs.c.log_read_at.is_(None), runs.c.log_read_at < before)
    due = (runs.c.status.in_(ENDED), runs.c.ended_at < before, is_quiet, runs.c.archived_at.is_(None))
    query = select(runs.c.id).where(*due).order_by(runs.c.ended_at).limit(RUNS_AT_ONCE)
    return list(connection.execute(query).scalars())


def is_due(row: Row[Any], before: float) -> bool:
    """Whether it still is: meanwhile the run may have been resumed, or its log fetched by a reader."""
    is_quiet = row.log_read_at is None or row.log_read_at < before
    return row.status in ENDED and row.ended_at is not None and row.ended_at < before and is_quiet


def read_rows_to_move(connection: Connection, run_id: str) -> RowsToMove:
    """Rows that are in the database, as many as a segment holds; those of earlier versions of the server that
    have no entry stay, because theirs is made from them."""
    has_entry = exists().where(
        rollout_entries.c.run_id == rollouts.c.run_id, rollout_entries.c.place == rollouts.c.place
    )
    query = select(rollouts.c.place, rollouts.c.row).where(
        rollouts.c.run_id == run_id, rollouts.c.segment.is_(None), has_entry
    )
    moved, size = RowsToMove([], []), 0
    for place, packed in connection.execute(query.order_by(rollouts.c.place).limit(ROWS_AT_ONCE)):
        size += len(packed)
        if moved.places and size > SEGMENT_BYTES:
            break
        moved.places.append(place)
        moved.packed.append(packed)
    return moved


def point_rows(connection: Connection, run_id: str, moved: RowsToMove, blob: Blob) -> None:
    lock_run(connection, run_id)
    point_to_segment(connection, run_id, moved, blob)


def read_events_to_move(connection: Connection, run_id: str, before: float) -> EventsToMove | None:
    """The first events that are in the database, as many as a segment holds, but never the last of the run;
    None if there is little left, or the run is not due."""
    run = find_run(connection, run_id)
    if not is_due(run, before):
        return None
    moved, size = EventsToMove(0, []), 0
    for seq, raw in iterate_events(connection, run_id, run.last_seq):
        size += len(raw)
        is_full = size > SEGMENT_BYTES or len(moved.raw_events) == SEGMENT_EVENTS
        if moved.raw_events and (is_full or seq != moved.last_seq + 1):
            break
        if not moved.raw_events:
            moved = EventsToMove(seq, [])
        moved.raw_events.append(raw)
    return moved if size >= KEPT_LOG_BYTES else None


def iterate_events(connection: Connection, run_id: str, end: int) -> Iterator[tuple[int, bytes]]:
    """Number and content of the events that are in the database before a number; few are in memory."""
    reached = 0
    query = select(events.c.seq, events.c.event).where(events.c.run_id == run_id).order_by(events.c.seq)
    while page := connection.execute(
        query.where(events.c.seq > reached, events.c.seq < end).limit(EVENTS_AT_ONCE)
    ).all():
        yield from ((row.seq, row.event) for row in page)
        reached = page[-1].seq


def point_events(connection: Connection, run_id: str, moved: EventsToMove, blob: Blob, before: float) -> None:
    if is_due(lock_run(connection, run_id), before):
        point_to_event_segment(connection, run_id, moved, blob)


def finish_run(connection: Connection, run_id: str, now: float) -> None:
    row = lock_run(connection, run_id)
    drop_empty_segments(connection, run_id)
    if is_due(row, now - QUIET_SECONDS):
        connection.execute(update(runs).where(runs.c.id == run_id).values(archived_at=now))
