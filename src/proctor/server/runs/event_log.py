"""A run's event log: its events, numbered without a gap, in the order in which they were stored.

Knows nothing of its readers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, insert, select, update

from proctor.api.runs import Events, RunEvent
from proctor.run import ENDED
from proctor.server.db.tables import events, runs

LONGEST_LINE = 16_384
LONGEST_LEVEL = 20
MOST_EVENTS = 500_000
"""After this many events of one run, further log lines are omitted."""
MOST_BYTES = 2**20
"""Of events that are read together: readers request the rest separately."""

_decode = msgspec.json.Decoder(RunEvent).decode


def append_events(connection: Connection, run_id: str, new_events: Sequence[RunEvent]) -> list[RunEvent]:
    """Append events to a run's log; they get their numbers here, whatever numbers they have."""
    if not new_events:
        return []
    numbering = update(runs).where(runs.c.id == run_id).values(last_seq=runs.c.last_seq + len(new_events))
    last = connection.execute(numbering.returning(runs.c.last_seq)).scalar_one()
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
        select(events.c.event)
        .where(events.c.run_id == run_id, events.c.seq > after)
        .order_by(events.c.seq)
        .limit(limit)
    )
    raw_events: list[bytes] = []
    size = 0
    for raw in connection.execute(query).scalars():
        size += len(raw)
        if raw_events and size > MOST_BYTES:
            break
        raw_events.append(raw)
    return raw_events


def read_event_page(connection: Connection, run_id: str, after: int, limit: int) -> Events:
    """Events for polling; `ended` is set only with the last of them."""
    row = connection.execute(select(runs.c.last_seq, runs.c.status).where(runs.c.id == run_id)).one()
    items = read_events(connection, run_id, after, limit)
    reached = items[-1].seq if items else after
    return Events(items, row.last_seq, ended=row.status in ENDED and reached >= row.last_seq)
