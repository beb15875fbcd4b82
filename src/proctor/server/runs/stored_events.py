"""Stored events: in the database or, the first ones of runs that have ended, in segments in the store.

Readers read the database. If events are missing there, their segments are put back first, the last one first:
so the events in the database are always the end of the log, without a gap, and a server that is killed in
between leaves nothing to repair. The archive moves them again once they have been back for a while. Knows
nothing of what is in an event.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from proctor.server.db.database import Database
from proctor.server.db.tables import event_segments, events, runs
from proctor.server.runs.event_log import EventsMovedError
from proctor.server.runs.queue import lock_run
from proctor.server.singleflight import SingleFlight
from proctor.server.storage.blobs import Blob, Blobs
from proctor.server.storage.contract import StorageAwayError
from proctor.server.storage.records import refer_to_files

P = ParamSpec("P")
T = TypeVar("T")


class EventLogs:
    """Runs functions that read events, wherever those are."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database = database
        self._blobs = blobs
        self._fetches: SingleFlight[tuple[str, int], None] = SingleFlight()

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await self._database.read(work, *args, **kwargs)
        except EventsMovedError as error:
            moved = error
        await self._fetches.ask((moved.run_id, moved.after), lambda: self._fetch(moved.run_id, moved.after))
        return await self._database.read(work, *args, **kwargs)

    async def _fetch(self, run_id: str, after: int) -> None:
        """Put the events after a number back into the database."""
        while (segment := await self._database.read(find_last_segment, run_id, after)) is not None:
            raw_events = await self._read_segment(segment)
            await self._database.write(put_back, segment, raw_events, time.time())

    async def _read_segment(self, segment: Row[Any]) -> list[bytes]:
        try:
            blob = await self._blobs.open(segment.sha256)
            packed = b"".join([block async for block in blob.blocks])
        except FileNotFoundError as error:
            raise StorageAwayError("Events of this run are missing from the store; restore them.") from error
        return await asyncio.to_thread(unpack_events, packed)


def unpack_events(packed: bytes) -> list[bytes]:
    return zlib.decompress(packed).split(b"\n")


def find_last_segment(connection: Connection, run_id: str, after: int) -> Row[Any] | None:
    """The last segment with events after a number."""
    query = select(event_segments).where(event_segments.c.run_id == run_id, event_segments.c.last_seq > after)
    return connection.execute(query.order_by(event_segments.c.first_seq.desc()).limit(1)).one_or_none()


def put_back(connection: Connection, segment: Row[Any], raw_events: Sequence[bytes], now: float) -> None:
    """Replace the last segment by its events; does nothing if it no longer is: another server put it back, or
    moved more."""
    run_id = segment.run_id
    lock_run(connection, run_id)
    if find_last_segment(connection, run_id, 0) != segment:
        return
    mine = (event_segments.c.run_id == run_id, event_segments.c.first_seq == segment.first_seq)
    connection.execute(delete(event_segments).where(*mine))
    numbered = enumerate(raw_events, segment.first_seq)
    connection.execute(
        insert(events), [{"run_id": run_id, "seq": seq, "event": raw} for seq, raw in numbered]
    )
    values = {"log_read_at": now, "archived_at": None}
    connection.execute(update(runs).where(runs.c.id == run_id).values(values))


# Moving them


class EventsToMove(NamedTuple):
    """Events of one run, without a gap, that become a segment."""

    first_seq: int
    raw_events: list[bytes]

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.raw_events) - 1

    def pack(self) -> bytes:
        return zlib.compress(b"\n".join(self.raw_events), 1)


def point_to_event_segment(connection: Connection, run_id: str, moved: EventsToMove, blob: Blob) -> None:
    """Replace the first events in the database by their segment; does nothing if they no longer are: another
    server moved them, or put back what was before them."""
    mine = (events.c.run_id == run_id, events.c.seq <= moved.last_seq)
    left = connection.execute(select(func.count()).select_from(events).where(*mine)).scalar_one()
    if left != len(moved.raw_events):
        return
    refer_to_files(connection, [blob.sha256])
    values = {"run_id": run_id, "first_seq": moved.first_seq, "last_seq": moved.last_seq}
    connection.execute(insert(event_segments).values(**values, sha256=blob.sha256, size=blob.size))
    connection.execute(delete(events).where(*mine))
