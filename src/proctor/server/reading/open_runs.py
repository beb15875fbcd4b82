"""The runs that are kept in memory for readers: the most recently requested ones, as many as fit.

Knows nothing of readers or HTTP.
"""

from __future__ import annotations

from collections import OrderedDict

from proctor.server.db.database import Database
from proctor.server.reading.open_run import OpenRun, PriceOf

KEPT_RUNS = 64
KEPT_ROLLOUTS = 400_000
"""Of runs whose rollouts stay indexed in memory, about 120 MB; the run asked for last always does."""


class OpenRuns:
    """Runs in memory, by id."""

    def __init__(self, database: Database, price_of: PriceOf) -> None:
        self._database = database
        self.price_of = price_of
        self._kept: OrderedDict[str, OpenRun] = OrderedDict()

    def open(self, run_id: str) -> OpenRun:
        run = self._kept.get(run_id)
        if run is None:
            run = self._kept[run_id] = OpenRun(self._database, run_id, self.price_of)
        self._kept.move_to_end(run_id)
        self._forget_oldest()
        return run

    def find(self, run_id: str) -> OpenRun | None:
        """A run that is in memory already."""
        return self._kept.get(run_id)

    def forget(self, run_id: str) -> None:
        self._kept.pop(run_id, None)

    def _forget_oldest(self) -> None:
        rollouts = sum(each.indexed for each in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > KEPT_RUNS or rollouts > KEPT_ROLLOUTS):
            _, oldest = self._kept.popitem(last=False)
            rollouts -= oldest.indexed
