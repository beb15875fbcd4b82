"""Report to the server: rows as they are on disk, and everything that is logged or printed.

Rows are read from the run's own file, so that one that was never sent, by this attempt or an earlier one on
this machine, is sent now. A report that does not arrive is sent again with the same number, for as long as
the run lasts. Knows nothing of engines.
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
from proctor.api.runner import Ending, LogText, Report, ReportReply
from proctor.client.connection import ServerConnection, ServerError
from proctor.errors import StoreError
from proctor.events import Event, PlanCounted, RolloutsFinished, RunStarted
from proctor.rollout import RolloutKey
from proctor.store.folder import RESULTS, read_line, read_metadata
from proctor.support.logs import cut_text, log

ROWS_AT_ONCE = 200
MOST_BYTES = 4 * 2**20
MOST_BYTES_OF_A_GROUP = 12 * 2**20
"""Up to this many rows of a group are sent together: a server limits the size of a request."""
MOST_LINES = 1_000
MOST_BYTES_OF_LINES = 2**20
LONGEST_LINE = 20_000
"""More than the server keeps of one line, so that it can tell that there was more."""
LONGEST_MESSAGE = 32_000
"""Of a cause; the server keeps less, after it has removed secrets."""
BATCH_SECONDS = 0.2
PAUSE_SECONDS = 2.0
TOO_LARGE = 413
REPORTED_EVENTS = (RunStarted, PlanCounted, RolloutsFinished)
"""The engine's events that are reported."""
RUN_OVER_CODES = frozenset({"run_over", "token_expired", "token_revoked", "unauthenticated"})


class Reporter:
    """One attempt's reports to the server."""

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
        self._tools_sent = False
        self._offset = 0
        self._reading = False
        """Rows are read only after the engine has resumed the folder: until then it may rewrite it."""
        self._news = asyncio.Event()
        self._closing = False
        self._sending: asyncio.Task[None] | None = None
        self.is_over = False
        """The server accepts no more reports from this attempt."""

    def start(self) -> None:
        self._sending = asyncio.create_task(self._send_on())

    def take_event(self, event: Event) -> None:
        """Handle an event of the engine."""
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
        self._lines.append(LogText(level, cut_text(text, LONGEST_LINE), time.time()))
        self._news.set()

    async def close(self) -> None:
        """Send everything that is left."""
        self._closing = True
        self._news.set()
        if self._sending is not None:
            await self._sending

    async def end(self, ending: Ending) -> None:
        """Send the final report, after everything else."""
        await self.close()
        ending = cut_to_fit(ending)
        while not self.is_over:
            try:
                await self._server.send("/runner/end", ending)
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
        """The next rows that the server lacks. Rows of a group, which were scored together, are sent
        together: after a crash, a partial group would have to be played again."""
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
        """Sent with every report until it names the tools that rows refer to."""
        if self._tools_sent:
            return None
        try:
            metadata = read_metadata(self._folder)
        except StoreError:
            return None
        self._tools_sent = bool(metadata.get("tools"))
        return metadata

    async def _send(self, report: Report) -> None:
        while not self.is_over:
            try:
                reply = await self._server.post("/runner/reports", report, ReportReply)
            except ServerError as error:
                if error.status == TOO_LARGE and (report.rows or report.logs):
                    await self._send_in_parts(report)
                    return
                await self._wait_or_give_up(error)
                continue
            if reply.stop:
                self._stop()
            return

    async def _send_in_parts(self, report: Report) -> None:
        """Split what the server rejected as too large; omit, with a log line, what is too large by itself."""
        parts = split_report(report)
        if parts is None:
            self.report_line(
                f"{describe_report(report)} is larger than the server accepts, and was omitted.", "ERROR"
            )
            return
        first, second = parts
        await self._send(first)
        await self._send(replace(second, batch=self._number()))

    async def _wait_or_give_up(self, error: ServerError) -> None:
        """The server may be unreachable for a while: the host decides for how long."""
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
    """As many as fit into one report."""
    size = 0
    for index, line in enumerate(lines[:MOST_LINES]):
        size += len(line.text.encode(errors="replace"))
        if index and size > MOST_BYTES_OF_LINES:
            return lines[:index]
    return lines[:MOST_LINES]


def cut_to_fit(ending: Ending) -> Ending:
    """The final report must arrive: shorten or omit what is too long in it."""
    why = ending.cause
    if why is not None:
        why = replace(why, message=why.message[:LONGEST_MESSAGE], next_step=why.next_step[:LONGEST_MESSAGE])
    is_small = len(msgspec.json.encode(ending.metadata)) <= LARGEST_METADATA
    return replace(ending, cause=why, metadata=ending.metadata if is_small else {})


def split_report(report: Report) -> tuple[Report, Report] | None:
    """The same as two reports, with the metadata that rows rely on in the first; None if it cannot be
    divided."""
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
    """Describe a report that holds a single item."""
    if not report.rows:
        return "A log line"
    (row,) = report.rows
    raw = bytes(row)
    line = read_line(raw + b"\n")
    name = "A row" if line is None else f"The row of task {line.example_id}, rollout {line.rollout},"
    return f"{name} of {len(raw):,} bytes"
