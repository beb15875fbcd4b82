"""The handler of the route that compares runs. A comparison is kept for its next page."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from proctor.api.comparisons import CompareQuery, ComparisonPage
from proctor.api.refusals import InvalidError
from proctor.reading.compared_runs import ComparedRuns, build_page, collect_scores, compare_scores
from proctor.reading.exchange import ReadRequest
from proctor.reading.library import RunLibrary
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.run_lists import shorten

KEPT = 4

Inputs = Sequence[tuple[str, RolloutIndex, Mapping[str, Any]]]


class KeptComparisons:
    """The last few comparisons, by the state of their runs."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, tuple[Inputs, ComparedRuns]] = OrderedDict()
        self._lock = Lock()

    def compare(self, inputs: Inputs, base: int, query: CompareQuery) -> ComparedRuns:
        """Runs in a thread."""
        state = [(run, id(index), index.version) for run, index, _ in inputs]
        name = (tuple(state), base, query.metric, query.margin)
        with self._lock:
            if name in self._kept:
                return self._kept[name][1]
        runs = [collect_scores(index, run, metadata) for run, index, metadata in inputs]
        compared = compare_scores(runs, base, query)
        with self._lock:
            self._kept[name] = (inputs, compared)  # with the indexes, so that no other gets the id of one
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return compared


kept = KeptComparisons()


async def get_comparison(library: RunLibrary, request: ReadRequest) -> ComparisonPage:
    query: CompareQuery = request.query
    ids = list(dict.fromkeys(query.run))
    if len(ids) < 2:
        raise InvalidError("Name two different runs to compare.", field="run")
    base = query.base if query.base is not None else ids[0]
    if base not in ids:
        raise InvalidError(f"The base {base!r} is not one of the runs to compare.", field="base")
    readers = [await library.open(run_id) for run_id in ids]
    inputs = [(each.id, await each.index(whole=True), await each.metadata()) for each in readers]
    compared = await asyncio.to_thread(kept.compare, inputs, ids.index(base), query)
    infos = [shorten(await each.info()) for each in readers]
    return await asyncio.to_thread(build_page, compared, infos, query)
