"""One run of the server's database, open for one caller.

What the caller may not see is left out here: another's money, their endpoint, their log. Knows nothing of
HTTP.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from proctor.api.log import LogPage, LogQuery
from proctor.api.runs import RunInfo
from proctor.config.prices import Price
from proctor.reading.library import Batch
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.report.summary import Summary
from proctor.run import ENDED
from proctor.server.db.database import Database
from proctor.server.db.tables import rollouts
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, NotFoundError
from proctor.server.reading.open_runs import OpenRuns
from proctor.server.runs import records, sharing
from proctor.server.runs.labels import read_run_labels
from proctor.server.runs.service import RunService
from proctor.server.runs.stored_rows import ROWS_WITH_SEGMENTS, STORED, RowLocation, fetch_packed, stored_row
from proctor.server.storage.blobs import Blobs
from proctor.server.storage.contract import StorageAwayError
from proctor.store.labels import RunLabels
from proctor.task import TaskId

ROWS_AT_ONCE = 100
BATCH_BYTES = 8 * 2**20
"""Of rows that are in memory together: compressed, a row may be a thousand times smaller."""


class ServerRunReader:
    """One run as one caller may read it."""

    def __init__(
        self,
        database: Database,
        runs: RunService,
        opened: OpenRuns,
        row: Row[Any],
        caller: Caller,
        access: sharing.Access,
        server_url: str,
        blobs: Blobs,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._runs = runs
        self._opened = opened
        self._row = row
        self._caller = caller
        self._access = access
        self._server_url = server_url
        self._open = opened.open(row.id)
        self._is_log_away = False

    @property
    def id(self) -> str:
        return str(self._row.id)

    async def info(self) -> RunInfo:
        if self._row.status in ENDED and (self._row.summary is None or self._row.score is None):
            return sharing.limit_to(self._access, await self._runs.read_summarized(self.id))
        found = await self._database.read(records.build_run_info, self._row)
        if self._row.status not in ENDED:
            summary = await self._open.summary(self._row)
            found = replace(
                found,
                score=score_of_summary(summary),
                progress=progress_of_summary(summary, self._row.planned),
                summary=msgspec.to_builtins(summary),
            )
        return sharing.limit_to(self._access, found)

    async def summary(self) -> Summary:
        if self._row.status not in ENDED:
            summary = await self._open.summary(self._row)
        else:
            stored = self._row.summary
            if stored is None or self._row.score is None:
                stored = (await self._runs.read_summarized(self.id)).summary
            summary = msgspec.convert(stored, Summary)
        return sharing.limit_summary(self._access, summary)

    async def metadata(self) -> Mapping[str, Any]:
        return sharing.limit_metadata(self._access, records.with_public_address(self._row, self._server_url))

    # Rows

    async def index(self, *, whole: bool = False, patience_seconds: float | None = None) -> RolloutIndex:
        index = (await self._open.rows(self._row, whole=whole, patience_seconds=patience_seconds)).index
        return index if self._access == "owner" else index.without_costs()

    async def row(self, task: TaskId, number: int) -> bytes:
        name = msgspec.json.encode(task).decode()
        wanted = (rollouts.c.run_id == self.id, rollouts.c.task == name, rollouts.c.number == number)
        query = select(*STORED).select_from(ROWS_WITH_SEGMENTS).where(*wanted)

        def read(connection: Connection) -> list[RowLocation]:
            return [stored_row(row) for row in connection.execute(query)]

        packed = await fetch_packed(self._blobs, await self._database.read(read))
        if not packed:
            raise NotFoundError(f"Run {self.id} has no rollout {number} of task {str(task)[:200]}.")
        return await asyncio.to_thread(zlib.decompress, packed[0])

    async def batches(self, index: RolloutIndex, slots: Sequence[int]) -> AsyncIterator[Batch]:
        rows = await self._open.rows(self._row, patience_seconds=0)
        if rows.index.tasks is not index.tasks:
            raise ConflictError(f"The results of run {self.id} were read anew meanwhile; try again.")
        for start in range(0, len(slots), ROWS_AT_ONCE):
            some = slots[start : start + ROWS_AT_ONCE]
            stored = await self._database.read(
                read_stored_rows, self.id, [rows.places[slot] for slot in some]
            )
            packed = dict(zip(stored, await fetch_packed(self._blobs, list(stored.values())), strict=True))
            left = [(slot, packed[place]) for slot in some if (place := rows.places[slot]) in packed]
            while left:  # without those that a later try has replaced meanwhile
                batch = await asyncio.to_thread(unpack_batch, left)
                yield batch
                left = left[len(batch) :]

    # The log

    async def log(self, query: LogQuery) -> LogPage:
        sharing.need_log_access(self._access)
        is_complete = self._row.status in ENDED
        return await self._runs.event_logs.read(self._open.lines.page, query, is_complete)

    async def log_number_at(self, at: float) -> int | None:
        if self._access == "reader" or self._is_log_away:
            return None
        try:
            return await self._runs.event_logs.read(self._open.lines.number_at, at)
        except StorageAwayError:  # a list of failures can do without a link to the log, and wait only once
            self._is_log_away = True
            return None

    def price_of(self, model: str) -> Price | None:
        return self._opened.price_of(model) if self._access == "owner" else None

    async def labels(self) -> RunLabels:
        def read(connection: Connection) -> RunLabels:
            if sharing.find_access(connection, self._caller, self._row, "") is None:
                raise ForbiddenError(
                    "Labels name people, so a link does not show them; log in to see them.",
                    code="labels_not_shared",
                )
            return read_run_labels(connection, self.id)

        return await self._database.read(read)


def unpack_batch(packed: Sequence[tuple[int, bytes]]) -> Batch:
    """The first of these rows, as many as may be in memory together."""
    batch: Batch = []
    size = 0
    for slot, found in packed:
        batch.append((slot, zlib.decompress(found)))
        size += len(batch[-1][1])
        if size >= BATCH_BYTES:
            break
    return batch


def read_stored_rows(connection: Connection, run_id: str, places: Sequence[int]) -> dict[int, RowLocation]:
    query = select(rollouts.c.place, *STORED).select_from(ROWS_WITH_SEGMENTS)
    found = connection.execute(query.where(rollouts.c.run_id == run_id, rollouts.c.place.in_(places)))
    return {row.place: stored_row(row) for row in found}
