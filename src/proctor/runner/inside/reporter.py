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
from msgspec.structs import replace

from proctor.api.bounds import LARGEST_METADATA, MOST_ROWS
from proctor.api.runs import Ending, LogText, Report, ReportReply
from proctor.client.connection import ServerConnection, ServerError
from proctor.errors import StoreError
from proctor.events import Event, PlanCounted, RolloutsFinished, RunStarted
from proctor.rollout import RolloutKey
from proctor.store.folder import RESULTS, read_line, read_metadata
from proctor.support.logs import log

ROWS_AT_ONCE = 200
MOST_BYTES = 4 * 2**20
MOST_BYTES_OF_A_GROUP = 12 * 2**20
"""So much of a group goes together, and no more: what a server takes in one request has an end."""
MOST_LINES = 1_000
MOST_BYTES_OF_LINES = 2**20
LONGEST_LINE = 20_000
"""More than the server keeps of one, so that it can say that there was more."""
LONGEST_MESSAGE = 32_000
"""Of a cause; the server keeps less, once it has taken secrets out."""
BATCH_SECONDS = 0.2
PAUSE_SECONDS = 2.0
TOO_LARGE = 413
REPORTED_EVENTS = (RunStarted, PlanCounted, RolloutsFinished)
"""Of what the engine tells."""
RUN_OVER_CODES = frozenset({"run_over", "token_expired", "token_revoked", "unauthenticated"})


class Reporter:
    """One attempt's line to the server."""

    def __init__(
        self,
        server: ServerConnection,
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

    def report_line(self, text: str, level: str = "INFO") -> None:
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
        ending = cut_to_fit(ending)
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
                await asyncio.sleep(BATCH_SECONDS)
            while (report := self._next()) is not None and not self.is_over:
                await self._send(report)
            if self._closing:
                return

    def _next(self) -> Report | None:
        rows = self._read_rows()
        lines = first_lines(self._lines)
        self._lines = self._lines[len(lines) :]
        planned, self._planned = self._planned, None
        if not rows and not lines and planned is None:
            return None
        return Report(
            batch=self._number(),
            logs=lines,
            rows=rows,
            planned=planned,
            metadata=self._metadata() if rows else None,
        )

    def _number(self) -> int:
        number, self._batch = self._batch, self._batch + 1
        return number

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
                    is_full = len(rows) >= ROWS_AT_ONCE or size + len(raw) > MOST_BYTES
                    is_over_full = len(rows) >= MOST_ROWS or size + len(raw) > MOST_BYTES_OF_A_GROUP
                    if rows and (is_over_full or (is_full and line.example_id != task)):
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
                told = await self._server.post("/runner/reports", report, ReportReply)
            except ServerError as error:
                if error.status == TOO_LARGE and (report.rows or report.logs):
                    await self._send_in_parts(report)
                    return
                await self._wait_or_give_up(error)
                continue
            if told.stop:
                self._stop()
            return

    async def _send_in_parts(self, report: Report) -> None:
        """What the server found too large as a whole; what is too large by itself is left out, and that is
        said."""
        parts = split_report(report)
        if parts is None:
            self.report_line(
                f"{describe_report(report)} is larger than the server takes, and was left out.", "ERROR"
            )
            return
        first, second = parts
        await self._send(first)
        await self._send(replace(second, batch=self._number()))

    async def _wait_or_give_up(self, error: ServerError) -> None:
        """The server may be away for a while: the host decides how long that may take."""
        if error.code in RUN_OVER_CODES:
            self.is_over = True
            self._stop()
        elif not error.is_transient:
            log.error("the server refused a report: %s", error)
            self.is_over = True
            self._stop()
        else:
            await asyncio.sleep(PAUSE_SECONDS)


def first_lines(lines: list[LogText]) -> list[LogText]:
    """As many as go into one report."""
    size = 0
    for place, line in enumerate(lines[:MOST_LINES]):
        size += len(line.text.encode(errors="replace"))
        if place and size > MOST_BYTES_OF_LINES:
            return lines[:place]
    return lines[:MOST_LINES]


def cut_to_fit(ending: Ending) -> Ending:
    """The last word must arrive: what is too long in it is cut, or left out."""
    why = ending.cause
    if why is not None:
        why = replace(why, message=why.message[:LONGEST_MESSAGE], next_step=why.next_step[:LONGEST_MESSAGE])
    is_small = len(msgspec.json.encode(ending.metadata)) <= LARGEST_METADATA
    return replace(ending, cause=why, metadata=ending.metadata if is_small else {})


def split_report(report: Report) -> tuple[Report, Report] | None:
    """The same in two reports, what rows rely on before them; None where there is nothing to divide."""
    logs, rows, batch = report.logs, report.rows, report.batch
    if report.planned is not None or report.metadata is not None:
        return replace(report, logs=[], rows=[]), Report(batch=batch, logs=logs, rows=rows)
    if logs and rows:
        return Report(batch=batch, logs=logs), Report(batch=batch, rows=rows)
    middle = max(len(rows), len(logs)) // 2
    if not middle:
        return None
    return (
        Report(batch=batch, logs=logs[:middle], rows=rows[:middle]),
        Report(batch=batch, logs=logs[middle:], rows=rows[middle:]),
    )


def describe_report(report: Report) -> str:
    """A report of one thing, in words."""
    if not report.rows:
        return "A line of the log"
    (row,) = report.rows
    raw = bytes(row)
    line = read_line(raw + b"\n")
    name = "A row" if line is None else f"The row of task {line.example_id}, rollout {line.rollout},"
    return f"{name} of {len(raw):,} bytes"
