"""The log lines among a run's events: which numbers they have, found once and read on as the run grows.

Between two lines there may be a hundred thousand rollouts, so the lines are not searched for again for every
page. Knows nothing of readers or HTTP.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from threading import Lock

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, select

from proctor.api.log import LogEntry, LogPage, LogQuery
from proctor.api.runs import RunEvent
from proctor.reading.log_pages import LEVELS, build_log_page, list_levels
from proctor.server.db.tables import events
from proctor.server.runs.event_log import EventsMovedError, need_next

AT_ONCE = 5_000
TEXTS_AT_ONCE = 256
MOST_TEXTS = 16
"""Blocks of lines that are in memory while a page is made."""


class LineHead(msgspec.Struct, frozen=True):
    """An event without its text."""

    seq: int
    at: float
    kind: str
    level: str = ""


_head = msgspec.json.Decoder(LineHead).decode
_event = msgspec.json.Decoder(RunEvent).decode


class EventLines:
    """The log lines of one run. Used in threads, one at a time."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lock = Lock()
        self._reached = 0
        self._seq = array("Q")
        self._level = bytearray()
        self._at = array("d")

    def __len__(self) -> int:
        return len(self._seq)

    def page(self, connection: Connection, query: LogQuery, is_complete: bool) -> LogPage:
        with self._lock:
            self._read_on(connection)
            texts = LineTexts(connection, self._run_id, self._seq)
            levels, wanted = list_levels(query), (query.q or "").strip().lower()

            def matches(line: int) -> bool:
                if self._level[line - 1] not in levels:
                    return False
                return not wanted or wanted in texts.event(line).text.lower()

            return build_log_page(
                len(self._seq), self._by_position(query), matches, lambda line: texts.entry(line), is_complete
            )

    def number_at(self, connection: Connection, at: float) -> int | None:
        """The line nearest to a time."""
        with self._lock:
            self._read_on(connection)
            if not self._seq:
                return None
            return self._seq[max(0, bisect_right(self._at, at) - 1)]

    def _by_position(self, query: LogQuery) -> LogQuery:
        """The same query about positions among the lines, from 1, instead of numbers of events."""
        before, after, around = query.before, query.after, query.around
        return replace(
            query,
            before=None if before is None else bisect_left(self._seq, max(0, before)) + 1,
            after=None if after is None else bisect_right(self._seq, max(0, after)),
            around=None if around is None else bisect_left(self._seq, max(0, around)) + 1,
        )

    def _read_on(self, connection: Connection) -> None:
        while True:
            query = (
                select(events.c.event)
                .where(events.c.run_id == self._run_id, events.c.seq > self._reached)
                .order_by(events.c.seq)
                .limit(AT_ONCE)
            )
            heads = [_head(raw) for raw in connection.execute(query).scalars()]
            if heads:
                need_next(self._run_id, self._reached, heads[0].seq)
            for head in heads:
                if head.kind == "log":
                    self._seq.append(head.seq)
                    self._level.append(LEVELS.index(head.level) if head.level in LEVELS else 0)
                    self._at.append(head.at)
            if heads:
                self._reached = heads[-1].seq
            if len(heads) < AT_ONCE:
                return


class LineTexts:
    """The texts of lines, read in blocks."""

    def __init__(self, connection: Connection, run_id: str, seq: array[int]) -> None:
        self._connection, self._run_id, self._seq = connection, run_id, seq
        self._blocks: dict[int, dict[int, RunEvent]] = {}

    def event(self, line: int) -> RunEvent:
        block = (line - 1) // TEXTS_AT_ONCE
        if block not in self._blocks:
            if len(self._blocks) >= MOST_TEXTS:
                self._blocks.pop(next(iter(self._blocks)))
            self._blocks[block] = self._read(block * TEXTS_AT_ONCE)
        return self._blocks[block][self._seq[line - 1]]

    def _read(self, start: int) -> dict[int, RunEvent]:
        numbers = list(self._seq[start : start + TEXTS_AT_ONCE])
        query = select(events.c.event).where(events.c.run_id == self._run_id, events.c.seq.in_(numbers))
        found = {event.seq: event for event in map(_event, self._connection.execute(query).scalars())}
        if len(found) < len(numbers):
            raise EventsMovedError(self._run_id, 0)  # a search may want any line
        return found

    def entry(self, line: int) -> LogEntry:
        event = self.event(line)
        return LogEntry(number=event.seq, at=event.at, level=event.level, text=event.text)
