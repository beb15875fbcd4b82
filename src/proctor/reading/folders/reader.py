"""One run folder, open for reading: its metadata, its rows and its log, as they are now.

Files are read in threads. A long results file is read while its first rows can be listed already. Knows
nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.log import LogPage, LogQuery
from proctor.api.refusals import ApiError, NotFoundError
from proctor.api.runs import RunInfo
from proctor.config.prices import Price, find_price
from proctor.reading.entries import EntryRow, cost_by_prices, read_entry, task_key
from proctor.reading.folders.log_file import LogFile
from proctor.reading.folders.rows_file import ReadRows, RowsFile, read_batches
from proctor.reading.folders.run_info import FolderMetadata, build_run_info, read_folder_metadata
from proctor.reading.library import Batch
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.run import ENDED
from proctor.store.folder import METADATA, RESULTS, UNREADABLE
from proctor.store.labels import RunLabels, read_labels
from proctor.task import TaskId

LOGS = ("run.log", "env_server.log")
FRESH_SECONDS = 0.3
"""Files are looked at again after this long."""
PATIENCE_SECONDS = 0.4
"""How long a list waits for rows that are there already."""
MOMENT_SECONDS = 0.05
"""How long the report of an ended run waits for them: it has one of its own."""
BATCH_BYTES = 8 * 2**20
STATUS_SECONDS = 3.0
"""How often to look whether the process of a run is still there."""


class RowsGoneError(ApiError):
    """The results of a run cannot be read."""

    status, code = 409, "results_unreadable"


Stamp = tuple[int, int, int]


class FolderReader:
    """One run folder."""

    def __init__(self, run_id: str, folder: Path) -> None:
        self._id = run_id
        self.folder = folder
        self._metadata = FolderMetadata()
        self._stamp: Stamp | None = None
        self._info: RunInfo | None = None
        self._looked_at = 0.0
        self._rows: RowsFile | None = None
        self._refreshing: asyncio.Task[ReadRows] | None = None
        self._refreshed_at = 0.0
        """When the last reading of rows began."""
        self._changed_at = 0.0
        self._summary: tuple[int, Summary] | None = None
        self._log = LogFile(
            next((folder / name for name in LOGS if (folder / name).exists()), folder / LOGS[0])
        )

    @property
    def id(self) -> str:
        return self._id

    @property
    def indexed(self) -> int:
        """How many rows are in memory."""
        rows = self._read_so_far
        return 0 if rows is None else len(rows.index)

    @property
    def has_ended(self) -> bool:
        """By what its metadata said last."""
        return self._info is not None and self._info.status in ENDED

    @property
    def log_path(self) -> Path:
        return self._log.path

    def forget_rows(self) -> None:
        """Free the memory of the index; it is rebuilt on the next read."""
        if self._rows is not None and self._refreshing is None:
            self._rows.close()
            self._rows = None

    def note_change(self) -> None:
        """Its files have changed: rows that were read before are out of date, however new they are."""
        self._changed_at = time.monotonic()

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()

    # Metadata

    def describe(self) -> RunInfo:
        """The run by its metadata alone; reads the file only if it has changed. Called in a thread."""
        stamp = stamp_of(self.folder / METADATA)
        now = time.monotonic()
        is_old = now - self._looked_at > STATUS_SECONDS
        if self._info is None or stamp != self._stamp or (is_old and self._info.status not in ENDED):
            if self._info is None or stamp != self._stamp:
                self._metadata = read_folder_metadata(self.folder)
            self._info = build_run_info(self._id, self.folder, self._metadata)
            self._stamp, self._looked_at = stamp, now
        return self._info

    async def metadata(self) -> Mapping[str, Any]:
        await asyncio.to_thread(self.describe)
        return self._metadata.fields

    async def info(self) -> RunInfo:
        """With the report of the rows there are, or the stored one while they are still being read."""
        info = await asyncio.to_thread(self.describe)
        try:
            rows = await self._refresh(PATIENCE_SECONDS if info.summary is None else MOMENT_SECONDS)
        except RowsGoneError:
            return info
        if not rows.index.complete and info.summary is not None:
            return info
        summary = await asyncio.to_thread(self.summarize, rows)
        return msgspec.structs.replace(
            self.add_summary(info, summary), summary=msgspec.to_builtins(summary), last_seq=rows.reached
        )

    def add_summary(self, info: RunInfo, summary: Summary) -> RunInfo:
        """A run with what its rows say now. What was metered when it was played stays."""
        return msgspec.structs.replace(
            info,
            progress=progress_of_summary(summary, info.progress.planned),
            score=score_of_summary(summary),
            cost_usd=info.cost_usd if info.cost_usd is not None else summary.cost_usd,
            input_tokens=summary.usage.input_tokens,
            output_tokens=summary.usage.output_tokens,
        )

    # Rows

    async def index(self, *, whole: bool = False, patience_seconds: float | None = None) -> RolloutIndex:
        patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        rows = await self._refresh(None if whole else patience)
        return rows.index

    async def row(self, task: TaskId, number: int) -> bytes:
        rows = await self._refresh(PATIENCE_SECONDS)
        slot = rows.index.find_slot(task_key(task), number)
        if slot is None:
            raise NotFoundError(f"Run {self._id} has no rollout {number} of task {task}.")
        try:
            return await asyncio.to_thread(rows.row, slot)
        except OSError as error:
            raise RowsGoneError(f"{self.folder / RESULTS} cannot be read: {error.strerror}.") from error

    async def batches(self, index: RolloutIndex, slots: Sequence[int]) -> AsyncIterator[Batch]:
        rows = self._read_so_far
        if rows is None or rows.index is not index:
            raise RowsGoneError(
                f"The results of run {self._id} were replaced while they were read; try again."
            )
        found = read_batches(rows, slots, BATCH_BYTES)
        while (batch := await asyncio.to_thread(next, found, None)) is not None:
            yield batch

    async def summary(self) -> Summary:
        rows = await self._refresh(None)
        return await asyncio.to_thread(self.summarize, rows)

    def summarize(self, rows: ReadRows) -> Summary:
        """The report of the rows that were read, by the function that makes it when a run ends."""
        with rows.index.lock:
            version = rows.index.version
            if self._summary is not None and self._summary[0] == version:
                return self._summary[1]
            tally = rows.tally if not rows.replaced else tally_again(rows)
            model = self._metadata.model
            prices = {name: price for name in (model, *tally.other_usage) if (price := find_price(name))}
            planned = self._metadata.get("planned", int, 0) or None
            summary = tally.summary(
                planned=planned,
                rollouts_per_task=self._metadata.rollouts_per_task,
                model=model,
                prices=prices,
            )
        self._summary = (version, summary)
        return summary

    async def _refresh(self, patience: float | None) -> ReadRows:
        """The rows as they are now, or as far as they were read when the patience ends."""
        rows = self._read_so_far
        if self._refreshing is None:
            now = time.monotonic()
            is_fresh = now - self._refreshed_at < FRESH_SECONDS and self._refreshed_at > self._changed_at
            if rows is not None and rows.index.complete and is_fresh:
                return rows
            self._refreshed_at = now
            self._refreshing = asyncio.create_task(self._read_rows())
            self._refreshing.add_done_callback(self._note_refreshed)
        task = self._refreshing
        done, _ = await asyncio.wait({task}, timeout=patience)
        while not done:
            if (rows := self._read_so_far) is not None:
                return rows
            done, _ = await asyncio.wait({task}, timeout=MOMENT_SECONDS)  # until the file is open
        return task.result()

    @property
    def _read_so_far(self) -> ReadRows | None:
        return None if self._rows is None else self._rows.rows

    async def _read_rows(self) -> ReadRows:
        await asyncio.to_thread(self.describe)
        if self._rows is None:
            model = self._metadata.model
            cost_of = None if find_price(model) is None else cost_by_prices(model, find_price)
            self._rows = RowsFile(self.folder / RESULTS, self._metadata.pass_threshold, cost_of)
        try:
            return await asyncio.to_thread(self._rows.refresh)
        except OSError as error:
            raise RowsGoneError(f"{self.folder / RESULTS} cannot be read: {error.strerror}.") from error

    def _note_refreshed(self, task: asyncio.Task[ReadRows]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # retrieved; those who await it get it too

    # The log

    async def log(self, query: LogQuery) -> LogPage:
        info = await asyncio.to_thread(self.describe)
        return await asyncio.to_thread(self._log.page, query, is_complete=info.status in ENDED)

    async def log_number_at(self, at: float) -> int | None:
        return await asyncio.to_thread(self._log.number_at, at)

    def price_of(self, model: str) -> Price | None:
        return find_price(model)

    async def labels(self) -> RunLabels:
        return await asyncio.to_thread(read_labels, self.folder)


def stamp_of(path: Path) -> Stamp | None:
    """Changes when a file does; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def tally_again(rows: ReadRows) -> Tally:
    """The rows that count, where some were replaced by later ones."""
    tally = Tally(rows.index.pass_threshold)
    for slot in rows.index.slots():
        try:
            found: EntryRow = read_entry(rows.row(slot))
        except (OSError, *UNREADABLE):
            continue
        tally.add(found.line)
    return tally
