"""What a store of runs gives to its readers. A server's database and run folders are two such stores.

A library belongs to one reader: it has the runs that this reader may see, and nothing tells whether others
exist. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from proctor.api.feed import FeedEvent
from proctor.api.log import LogPage, LogQuery
from proctor.api.run_list import RunFacets, RunListQuery, RunPage, SuiteInfo
from proctor.api.runs import RunInfo
from proctor.config.prices import Price
from proctor.reading.rollout_index import RolloutIndex
from proctor.report.summary import Summary
from proctor.store.labels import RunLabels
from proctor.task import TaskId

Batch = list[tuple[int, bytes]]
"""Slots and their rows."""


class RunReader(Protocol):
    """One run, open for reading."""

    @property
    def id(self) -> str: ...

    async def info(self) -> RunInfo:
        """With settings, `resolved` and `summary`; of a run in progress, at most a second old."""
        ...

    async def summary(self) -> Summary: ...

    async def metadata(self) -> Mapping[str, Any]:
        """Its metadata.json."""
        ...

    async def index(self, *, whole: bool = False, patience_seconds: float | None = None) -> RolloutIndex:
        """The rollouts that there are now; the same index grows. Its `complete` is False while rows that are
        there already are still being read; `whole` waits for those, `patience_seconds` so long, and by
        default as long as a list may take."""
        ...

    async def row(self, task: TaskId, number: int) -> bytes:
        """The row of a rollout, as JSON. Raises NotFoundError."""
        ...

    def batches(self, index: RolloutIndex, slots: Sequence[int]) -> AsyncIterator[Batch]:
        """The rows in slots of an index, in their order, as many at once as may be in memory together.
        The index may still be growing."""
        ...

    async def log(self, query: LogQuery) -> LogPage: ...

    async def log_number_at(self, at: float) -> int | None:
        """The number of the log line nearest to a time; None if there is no log."""
        ...

    def price_of(self, model: str) -> Price | None: ...

    async def labels(self) -> RunLabels:
        """What people say about its rollouts."""
        ...


class RunLibrary(Protocol):
    """The runs that one reader may see."""

    async def list_runs(self, query: RunListQuery) -> RunPage: ...

    async def facets(self, query: RunListQuery) -> RunFacets: ...

    async def open(self, run_id: str) -> RunReader:
        """Raises NotFoundError."""
        ...

    async def suites(self) -> list[SuiteInfo]: ...

    async def suite(self, suite_id: str) -> SuiteInfo:
        """Raises NotFoundError."""
        ...

    def changes(self) -> AsyncIterator[FeedEvent | None]:
        """What changes from the first None on; others come every few seconds while nothing does."""
        ...
