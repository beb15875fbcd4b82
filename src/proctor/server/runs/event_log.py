"""A run's event log: its events, numbered without a gap, in the order in which they were stored.

The first events of an old log may be in the store. The last one never is: a reader that finds a gap after
its last number knows that the missing events are in the store. Knows nothing of its readers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, insert, select, update

from proctor.api.runs import Events, RunEvent
from proctor.run import ENDED
from proctor.server.db.tables import events, runs
from proctor.server.storage.contract import StorageAwayError

LONGEST_LINE = 16_384
LONGEST_LEVEL = 20
MOST_EVENTS = 500_000
"""After this many events of one run, further log lines are omitted."""
MOST_BYTES = 2**20
"""Of events that are read together: readers request the rest separately."""

NUMBER_NEXT_EVENTS = (
    update(runs)
    .where(runs.c.id == bindparam("run_id"))
    .values(last_seq=runs.c.last_seq + bindparam("more"), archived_at=None)
    .returning(runs.c.last_seq)
)
"""Made once, like the statements that store rows."""


class EventsMovedError(StorageAwayError):
    """Events are not in the database; `stored_events.EventLogs` fetches those after the number."""

    def __init__(self, run_id: str, after: int) -> None:
        super().__init__("Events of this run are missing from the database and the store; restore them.")
        self.run_id = run_id
        self.after = after


_decode = msgspec.json.Decoder(RunEvent).decode


def append_events(connection: Connection, run_id: str, new_events: Sequence[RunEvent]) -> list[RunEvent]:
    """Append events to a run's log; they get their numbers here, whatever numbers they have."""
    if not new_events:
        return []
    last = connection.execute(NUMBER_NEXT_EVENTS, {"run_id": run_id, "more": len(new_events)}).scalar_one()
    first = last - len(new_events) + 1
    numbered = [replace(event, seq=first + offset) for offset, event in enumerate(new_events)]
    connection.execute(
        insert(events),
        [{"run_id": run_id, "seq": each.seq, "event": msgspec.json.encode(each)} for each in numbered],
    )
    return numbered


def build_log_event(text: str, *, at: float, level: str = "INFO") -> RunEvent:
    if len(text) > LONGEST_LINE:
        text = f"{text[:LONGEST_LINE]} … ({len(text) - LONGEST_LINE:,} characters more)"
    return RunEvent(seq=0, at=at, kind="log", level=level[:LONGEST_LEVEL], text=text)


def read_events(connection: Connection, run_id: str, after: int, limit: int) -> list[RunEvent]:
    return [_decode(raw) for raw in read_raw_events(connection, run_id, after, limit)]


def read_raw_events(connection: Connection, run_id: str, after: int, limit: int) -> list[bytes]:
    """Events after a number: up to the limit, or as many as may be in memory together."""
    query = (
        select(events.c.seq, events.c.event)
        .where(events.c.run_id == run_id, events.c.seq > after)
        .order_by(events.c.seq)
        .limit(limit)
    )
    raw_events: list[bytes] = []
    size = 0
    for seq, raw in connection.execute(query):
        if not raw_events:
            need_next(run_id, after, seq)
        size += len(raw)
        if raw_events and size > MOST_BYTES:
            break
        raw_events.append(raw)
    return raw_events


def need_next(run_id: str, after: int, found: int) -> None:
    """Refuse to read on after a number if the first event that was found is not the next."""
    if found != max(0, after) + 1:
        raise EventsMovedError(run_id, after)


def read_event_page(connection: Connection, run_id: str, after: int, limit: int) -> Events:
    """Events for polling; `ended` is set only with the last of them."""
    row = connection.execute(select(runs.c.last_seq, runs.c.status).where(runs.c.id == run_id)).one()
    items = read_events(connection, run_id, after, limit)
    reached = items[-1].seq if items else after
    return Events(items, row.last_seq, ended=row.status in ENDED and reached >= row.last_seq)
