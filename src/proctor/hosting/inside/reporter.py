"""Tells the server what happens: rows as they stand on disk, and whatever is logged or printed.

What is sent is what was kept: rows are read from the run's own file, so that a row which was never sent, by
this attempt or an earlier one on this machine, is sent now. A report that does not arrive is sent again, with
the same number, for as long as the run has. Knows nothing of engines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.runs import Ending, LogText, Report, Told
from proctor.client.connection import Connection, ServerError
from proctor.errors import StoreError
from proctor.events import Event, PlanCounted, RolloutsFinished, RunStarted
from proctor.logs import log
from proctor.rollout import RolloutKey
from proctor.store.folder import RESULTS, read_line, read_metadata

MOST_ROWS = 200
MOST_BYTES = 8 * 2**20
MOST_LINES = 1_000
LONGEST_LINE = 20_000
"""More than the server keeps of one, so that it can say that there was more."""
TOGETHER_SECONDS = 0.2
PAUSE_SECONDS = 2.0
HEARD = (RunStarted, PlanCounted, RolloutsFinished)
"""Of what the engine tells."""
OVER = frozenset({"run_over", "token_expired", "token_revoked", "unauthenticated"})


class Reporter:
    """One attempt's line to the server."""

    def __init__(
        self,
        server: Connection,
        folder: Path,
        sent: Collection[RolloutKey],
        first_batch: int,
        stop: Callable[[], None],
    ) -> None:
        self._server = server
        self._folder = folder
        self._sent = set(sent)
        self._batch = first_batch
        self._stop = stop
        self._lines: list[LogText] = []
        self._planned: int | None = None
        self._tools_told = False
        self._offset = 0
        self._reading = False
        """Rows are read once the folder was picked up: until then it may be rewritten."""
        self._news = asyncio.Event()
        self._closing = False
        self._sending: asyncio.Task[None] | None = None
        self.is_over = False
        """The server wants to hear nothing more of this attempt."""

    def start(self) -> None:
        self._sending = asyncio.create_task(self._send_on())

    def hear(self, event: Event) -> None:
        """Listen to the engine."""
        if isinstance(event, RunStarted):
            self._reading = True
            self._planned = event.planned
            self._news.set()
        elif isinstance(event, PlanCounted):
            self._planned = event.planned
            self._news.set()
        elif isinstance(event, RolloutsFinished):
            self._news.set()

    def say(self, text: str, level: str = "INFO") -> None:
        self._lines.append(LogText(level, text[:LONGEST_LINE], time.time()))
        self._news.set()

    async def close(self) -> None:
        """Send all that is left."""
        self._closing = True
        self._news.set()
        if self._sending is not None:
            await self._sending

    async def end(self, ending: Ending) -> None:
        """The last word, after everything else was sent."""
        await self.close()
        while not self.is_over:
            try:
                await self._server.tell("/runner/end", ending)
                return
            except ServerError as error:
                await self._wait_or_give_up(error)

    async def _send_on(self) -> None:
        while not self.is_over:
            await self._news.wait()
            self._news.clear()
            if not self._closing:
                await asyncio.sleep(TOGETHER_SECONDS)
            while (report := self._next()) is not None and not self.is_over:
                await self._send(report)
            if self._closing:
                return

    def _next(self) -> Report | None:
        rows = self._read_rows()
        lines, self._lines = self._lines[:MOST_LINES], self._lines[MOST_LINES:]
        planned, self._planned = self._planned, None
        if not rows and not lines and planned is None:
            return None
        number, self._batch = self._batch, self._batch + 1
        return Report(
            batch=number, logs=lines, rows=rows, planned=planned, metadata=self._metadata() if rows else None
        )

    def _read_rows(self) -> list[msgspec.Raw]:
        """The next rows that the server lacks. Those of a group, which were scored together, go together: who
        goes on after a crash would have to play a part of one again."""
        if not self._reading:
            return []
        rows: list[msgspec.Raw] = []
        size, task = 0, None
        with (self._folder / RESULTS).open("rb") as file:
            file.seek(self._offset)
            for raw in file:
                line = read_line(raw)
                if not raw.endswith(b"\n"):
                    break
                if line is not None and line.key not in self._sent:
                    is_full = len(rows) >= MOST_ROWS or size + len(raw) > MOST_BYTES
                    if rows and is_full and line.example_id != task:
                        break
                    rows.append(msgspec.Raw(raw[:-1]))
                    size, task = size + len(raw), line.example_id
                self._offset += len(raw)
        return rows

    def _metadata(self) -> dict[str, Any] | None:
        """Until it names the tools that rows leave out, it goes along with every report."""
        if self._tools_told:
            return None
        try:
            told = read_metadata(self._folder)
        except StoreError:
            return None
        self._tools_told = bool(told.get("tools"))
        return told

    async def _send(self, report: Report) -> None:
        while not self.is_over:
            try:
                told = await self._server.post("/runner/reports", report, Told)
            except ServerError as error:
                await self._wait_or_give_up(error)
                continue
            if told.stop:
                self._stop()
            return

    async def _wait_or_give_up(self, error: ServerError) -> None:
        """The server may be away for a while: the host decides how long that may take."""
        if error.code in OVER:
            self.is_over = True
            self._stop()
        elif not error.is_passing:
            log.error("the server refused a report: %s", error)
            self.is_over = True
            self._stop()
        else:
            await asyncio.sleep(PAUSE_SECONDS)
