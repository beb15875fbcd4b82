"""What is kept in memory of a run while it is read: its index, its report so far, where its log lines are.

All of it grows with the run: only what is new is read from the database, and nothing while nothing happens.
Knows nothing of readers or HTTP.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row

from proctor.config.prices import Price
from proctor.reading.entries import cost_by_prices, unpack_entry
from proctor.reading.rollout_index import RolloutIndex
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.server.db.database import Database
from proctor.server.reading.event_lines import EventLines
from proctor.server.runs.entries import (
    AT_ONCE,
    PlacedEntry,
    build_summary,
    parse_report_metadata,
    read_entries,
    save_entries,
)

PATIENCE_SECONDS = 0.4
"""How long a list waits for rows that are there already."""
FRESH_SECONDS = 0.8
"""How old the report of a run in progress may be before it is computed again."""
BUSY_SHARE = 3
"""A report that takes long is computed again after this many times as long."""

LOCKED_AT_ONCE = 200

PriceOf = Callable[[str], Price | None]


class IndexedRows:
    """The index of a run's rollouts, and where each of them is stored."""

    def __init__(self, run: Row[Any], price_of: PriceOf) -> None:
        self.pass_threshold = parse_report_metadata(run.metadata).pass_threshold
        self.index = RolloutIndex(self.pass_threshold)
        self.index.complete = False
        self.places = array("I")
        """Of each slot."""
        self.reached = 0
        self.seq: int | None = None
        """The run's last event when its rows were last read."""
        self._run_id: str = run.id
        self._cost_of = None if price_of(run.model) is None else cost_by_prices(run.model, price_of)

    def read_on(self, connection: Connection) -> list[PlacedEntry]:
        """Read what is new; returns entries that were not stored with their rows. Runs in a thread."""
        unsaved: list[PlacedEntry] = []
        while True:
            batch = read_entries(connection, self._run_id, self.reached)
            self._add(batch.entries)
            unsaved += batch.unsaved
            if len(batch.entries) < AT_ONCE:
                return unsaved

    def _add(self, entries: list[PlacedEntry]) -> None:
        for start in range(0, len(entries), LOCKED_AT_ONCE):
            with self.index.lock:  # between two parts, lists can be read
                for place, packed in entries[start : start + LOCKED_AT_ONCE]:
                    stored = unpack_entry(packed)
                    record = stored.record
                    if self._cost_of is not None:
                        record = replace(record, cost_usd=self._cost_of(stored.line))
                    self.index.add(record, replaces=True)
                    self.places.append(place)
                    self.reached = place


class CountedRows:
    """The rollouts of a run as its report counts them."""

    def __init__(self, pass_threshold: float) -> None:
        self.tally = Tally(pass_threshold)
        self.reached = 0

    def read_on(self, connection: Connection, run_id: str) -> list[PlacedEntry]:
        unsaved: list[PlacedEntry] = []
        while True:
            batch = read_entries(connection, run_id, self.reached)
            for place, packed in batch.entries:
                self.tally.add(unpack_entry(packed).line)
                self.reached = place
            unsaved += batch.unsaved
            if len(batch.entries) < AT_ONCE:
                return unsaved


class OpenRun:
    """One run in memory."""

    def __init__(self, database: Database, run_id: str, price_of: PriceOf) -> None:
        self._database = database
        self.id = run_id
        self._price_of = price_of
        self._rows: IndexedRows | None = None
        self._reading: asyncio.Task[IndexedRows] | None = None
        self._counted: CountedRows | None = None
        self._counting = asyncio.Lock()
        self._summary: Summary | None = None
        self._summary_of: Any = None
        """The state of the run that the report is about."""
        self._stale_at = 0.0
        self.lines = EventLines(run_id)

    @property
    def indexed(self) -> int:
        """How many rollouts are in memory."""
        return 0 if self._rows is None else len(self._rows.index)

    # The index

    async def rows(
        self, run: Row[Any], *, whole: bool = False, patience_seconds: float | None = None
    ) -> IndexedRows:
        """The rollouts as they are now, or as far as they were read when the patience ends."""
        rows = self._rows
        if self._reading is None:
            if rows is not None and rows.seq is not None and rows.seq >= run.last_seq:
                return rows
            self._reading = asyncio.create_task(self._read_rows(run))
            self._reading.add_done_callback(self._note_read)
        task = self._reading
        patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        done, _ = await asyncio.wait({task}, timeout=None if whole else patience)
        if done or self._rows is None:
            return await asyncio.shield(task)
        return self._rows

    async def _read_rows(self, run: Row[Any]) -> IndexedRows:
        rows = self._rows
        if rows is None or rows.pass_threshold != parse_report_metadata(run.metadata).pass_threshold:
            rows = self._rows = IndexedRows(run, self._price_of)
        unsaved = await self._database.read(rows.read_on)
        rows.index.complete = True
        rows.seq = run.last_seq
        if unsaved:
            await self._database.write(save_entries, self.id, unsaved)
        return rows

    def _note_read(self, task: asyncio.Task[IndexedRows]) -> None:
        self._reading = None
        if not task.cancelled():
            task.exception()  # retrieved; those who await it get it too

    # The report

    async def summary(self, run: Row[Any]) -> Summary:
        """The report of the rollouts so far, by the function that makes it when a run ends."""
        async with self._counting:
            metadata = parse_report_metadata(run.metadata)
            state = (run.last_seq, run.planned, run.cost, metadata)
            now = time.monotonic()
            if self._summary is not None and (state == self._summary_of or now < self._stale_at):
                return self._summary
            self._summary = await self._database.read(self._summarize, run, metadata.pass_threshold)
            self._summary_of = state
            took = time.monotonic() - now
            self._stale_at = now + max(FRESH_SECONDS, BUSY_SHARE * took)
            return self._summary

    def _summarize(self, connection: Connection, run: Row[Any], pass_threshold: float) -> Summary:
        counted = self._counted
        if counted is None or counted.tally.pass_threshold != pass_threshold:
            counted = self._counted = CountedRows(pass_threshold)
        counted.read_on(connection, self.id)
        if counted.tally.finished != run.settled + run.failed:  # a rollout was replaced by a later try
            counted = self._counted = CountedRows(pass_threshold)
            counted.read_on(connection, self.id)
        return build_summary(counted.tally, run)

    @property
    def last_summary(self) -> Summary | None:
        """However old it is."""
        return self._summary
