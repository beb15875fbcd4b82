"""One run of the server's database, open for one caller.

What the caller may not see is left out here: another's money, their endpoint, their log. Knows nothing of
HTTP.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from proctor.api.log import LogPage, LogQuery
from proctor.api.runs import RunInfo
from proctor.config.prices import Price
from proctor.reading.port import Batch
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.report import Summary
from proctor.run import ENDED
from proctor.server.db.database import Database
from proctor.server.db.tables import rollouts
from proctor.server.problems import ConflictError, NotFoundError
from proctor.server.reading.open_runs import OpenRuns
from proctor.server.runs import records, sharing
from proctor.server.runs.service import RunService
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
        access: sharing.Access,
        server_url: str,
    ) -> None:
        self._database = database
        self._runs = runs
        self._opened = opened
        self._row = row
        self._access = access
        self._server_url = server_url
        self._open = opened.open(row.id)

    @property
    def id(self) -> str:
        return str(self._row.id)

    async def info(self) -> RunInfo:
        if self._row.status in ENDED and (self._row.summary is None or self._row.score is None):
            return sharing.limit_to(self._access, await self._runs.read_summarised(self.id))
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
            told = self._row.summary
            if told is None or self._row.score is None:
                told = (await self._runs.read_summarised(self.id)).summary
            summary = msgspec.convert(told, Summary)
        return sharing.limit_summary(self._access, summary)

    async def metadata(self) -> Mapping[str, Any]:
        return sharing.limit_metadata(self._access, records.with_public_address(self._row, self._server_url))

    # Rows

    async def index(self, *, whole: bool = False) -> RolloutIndex:
        index = (await self._open.rows(self._row, whole=whole)).index
        return index if self._access == "owner" else index.without_costs()

    async def row(self, task: TaskId, number: int) -> bytes:
        name = msgspec.json.encode(task).decode()
        query = select(rollouts.c.row).where(
            rollouts.c.run_id == self.id, rollouts.c.task == name, rollouts.c.number == number
        )

        def read(connection: Connection) -> bytes | None:
            packed = connection.execute(query).scalar_one_or_none()
            return None if packed is None else zlib.decompress(packed)

        raw = await self._database.read(read)
        if raw is None:
            raise NotFoundError(f"Run {self.id} has no rollout {number} of task {str(task)[:200]}.")
        return raw

    async def batches(self, index: RolloutIndex, slots: Sequence[int]) -> AsyncIterator[Batch]:
        rows = await self._open.rows(self._row, whole=True)
        if rows.index.tasks is not index.tasks:
            raise ConflictError(f"The results of run {self.id} were read anew meanwhile; try again.")
        for start in range(0, len(slots), ROWS_AT_ONCE):
            some = slots[start : start + ROWS_AT_ONCE]
            packed = await self._database.read(
                read_packed_rows, self.id, [rows.places[slot] for slot in some]
            )
            batch: Batch = []
            size = 0
            for slot in some:
                if (found := packed.get(rows.places[slot])) is None:
                    continue  # replaced by a later try meanwhile
                raw = zlib.decompress(found)
                batch.append((slot, raw))
                size += len(raw)
                if size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch

    # The log

    async def log(self, query: LogQuery) -> LogPage:
        sharing.need_log_access(self._access)
        is_complete = self._row.status in ENDED
        return await self._database.read(self._open.lines.page, query, is_complete)

    async def log_number_at(self, at: float) -> int | None:
        if self._access == "reader":
            return None
        return await self._database.read(self._open.lines.number_at, at)

    def price_of(self, model: str) -> Price | None:
        return self._opened.price_of(model) if self._access == "owner" else None


def read_packed_rows(connection: Connection, run_id: str, places: Sequence[int]) -> dict[int, bytes]:
    query = select(rollouts.c.place, rollouts.c.row).where(
        rollouts.c.run_id == run_id, rollouts.c.place.in_(places)
    )
    return {row.place: row.row for row in connection.execute(query)}
