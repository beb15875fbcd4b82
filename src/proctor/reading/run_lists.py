"""Lists of runs in memory: filtered, sorted, in pages, with facets; and sweeps as matrices.

Knows the descriptions of runs and nothing of where they come from.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from proctor.api.cursors import decode_cursor, encode_cursor
from proctor.api.run_list import (
    FacetValue,
    RunFacets,
    RunListQuery,
    RunPage,
    SuiteCell,
    SuiteInfo,
)
from proctor.api.runs import RunInfo, RunKind, RunOrigin, RunScore
from proctor.run import RunStatus

MOST_FACET_VALUES = 200
MATRIX_FIELDS = ("environment", "model", "agent")
"""What runs of a sweep may differ in besides their settings."""


class ListedRun(Protocol):
    """What lists read of a run."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> RunKind: ...
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def team(self) -> str | None: ...
    @property
    def agent(self) -> str | None: ...
    @property
    def environment(self) -> str: ...
    @property
    def version(self) -> str | None: ...
    @property
    def model(self) -> str: ...
    @property
    def status(self) -> RunStatus: ...
    @property
    def score(self) -> RunScore | None: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def suite(self) -> str | None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def rescored_from(self) -> str | None: ...
    @property
    def created_at(self) -> float: ...
    @property
    def started_at(self) -> float | None: ...
    @property
    def ended_at(self) -> float | None: ...
    @property
    def origin(self) -> RunOrigin | None: ...


R = TypeVar("R", bound=ListedRun)
ValuesOf = Callable[[ListedRun], Iterable[str]]
FILTERS: dict[str, ValuesOf] = {
    "status": lambda run: [run.status],
    "kind": lambda run: [run.kind],
    "environment": lambda run: [run.environment, f"{run.environment}@{run.version}"],
    "version": lambda run: [run.version or ""],
    "model": lambda run: [run.model],
    "agent": lambda run: [run.agent or ""],
    "owner": lambda run: [run.owner],
    "team": lambda run: [run.team or ""],
    "dataset": lambda run: [] if run.origin is None else [run.origin.dataset.name],
    "tag": lambda run: run.tags,
    "rescored_from": lambda run: [run.rescored_from or ""],
}
FACETS: dict[str, ValuesOf] = {
    **{name: values_of for name, values_of in FILTERS.items() if name in RunFacets.__struct_fields__},
    "environment": lambda run: [run.environment],
}
SINGLE: dict[str, Callable[[ListedRun], str | None]] = {
    "suite": lambda run: run.suite,
    "repository": lambda run: None if run.origin is None else run.origin.repository,
    "config_hash": lambda run: None if run.origin is None else run.origin.config_hash,
    "commit_sha": lambda run: None if run.origin is None else run.origin.commit_sha,
}
SORTS: dict[str, Callable[[ListedRun], Any]] = {
    "created": lambda run: run.created_at,
    "ended": lambda run: run.ended_at,
    "score": lambda run: None if run.score is None else run.score.mean,
    "coverage": lambda run: None if run.score is None else run.score.coverage,
    "cost": lambda run: run.cost_usd,
    "duration": lambda run: (
        None if run.ended_at is None else run.ended_at - (run.started_at or run.created_at)
    ),
    "environment": lambda run: run.environment,
    "model": lambda run: run.model,
    "name": lambda run: run.name or None,
}


class SelectedRuns(msgspec.Struct, Generic[R], frozen=True):
    """A page of runs."""

    items: list[R]
    total: int
    next_cursor: str | None


def list_page(runs: Sequence[RunInfo], query: RunListQuery) -> RunPage:
    """A page of the runs that match."""
    page = select_page(runs, query)
    return RunPage(items=[shorten(run) for run in page.items], total=page.total, next_cursor=page.next_cursor)


def select_page(runs: Sequence[R], query: RunListQuery) -> SelectedRuns[R]:
    """The runs of a page; those that lack what they are sorted by come last."""
    ordered = sort_runs(filter_runs(runs, query), query)
    start = position_after(ordered, query)
    shown = ordered[start : start + query.limit]
    more = bool(shown) and start + len(shown) < len(ordered)
    cursor = encode_cursor(shown[-1].id, start + len(shown)) if more else None
    return SelectedRuns(shown, len(ordered), cursor)


def shorten(run: RunInfo) -> RunInfo:
    """A run as lists have it, without what only its own page shows."""
    return msgspec.structs.replace(run, settings={}, resolved={}, summary=None)


def position_after(ordered: Sequence[ListedRun], query: RunListQuery) -> int:
    """After the run that the last page ended with, wherever it is by now; or where it was, if it is gone."""
    after = decode_cursor(query.cursor, str, int)
    if after is None:
        return 0
    last, position = after
    return next((at + 1 for at, run in enumerate(ordered) if run.id == last), max(0, position - 1))


def filter_runs(runs: Iterable[R], query: RunListQuery, but: str = "") -> list[R]:
    """The runs that match all filters, except one that is named."""
    found = [run for run in runs if is_in_time(run, query)]
    for name, values_of in FILTERS.items():
        wanted = set(getattr(query, name))
        if wanted and name != but:
            found = [run for run in found if not wanted.isdisjoint(values_of(run))]
    for name, value_of in SINGLE.items():
        if (value := getattr(query, name)) is not None:
            found = [run for run in found if value_of(run) == value]
    if query.name is not None:
        found = [run for run in found if query.name in run.name]
    if query.q and (text := query.q.strip().lower()):
        found = [run for run in found if text in searched_text(run)]
    return found


def is_in_time(run: ListedRun, query: RunListQuery) -> bool:
    after = query.since is None or run.created_at >= query.since
    return after and (query.until is None or run.created_at <= query.until)


def searched_text(run: ListedRun) -> str:
    return "\n".join((run.id, run.name, run.environment, run.model, run.owner, run.agent or "")).lower()


def sort_runs(runs: list[R], query: RunListQuery) -> list[R]:
    value_of = SORTS[query.sort]
    runs = sorted(runs, key=lambda run: (run.created_at, run.id), reverse=True)
    valued = [run for run in runs if value_of(run) is not None]
    return sorted(valued, key=value_of, reverse=query.descending) + [
        run for run in runs if value_of(run) is None
    ]


def count_facets(runs: Sequence[ListedRun], query: RunListQuery) -> RunFacets:
    """The values of each filter, given the other filters."""
    matching = filter_runs(runs, query)
    counted: dict[str, Any] = {}
    for name, values_of in FACETS.items():
        found = filter_runs(runs, query, but=name) if getattr(query, name) else matching
        counts = Counter(value for run in found for value in set(values_of(run)) if value)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_FACET_VALUES]
        counted[name] = [FacetValue(value, count) for value, count in ranked]
    return RunFacets(total=len(matching), **counted)


# Sweeps


def list_suites(runs: Iterable[RunInfo], labels: Callable[[RunInfo], dict[str, str]]) -> list[SuiteInfo]:
    """Runs that were started together, the newest sweep first."""
    by_suite: dict[str, list[RunInfo]] = defaultdict(list)
    for run in runs:
        if run.suite:
            by_suite[run.suite].append(run)
    suites = [build_suite(suite, found, labels) for suite, found in by_suite.items()]
    return sorted(suites, key=lambda suite: suite.created_at, reverse=True)


def build_suite(suite_id: str, runs: list[RunInfo], labels: Callable[[RunInfo], dict[str, str]]) -> SuiteInfo:
    """A sweep with an axis for everything its runs differ in."""
    runs = sorted(runs, key=lambda run: (run.created_at, run.id))
    coordinates = [describe_coordinates(run, labels(run)) for run in runs]
    axes = find_axes(coordinates)
    cells = [
        SuiteCell(run=shorten(run), at={name: each.get(name, "") for name in axes})
        for run, each in zip(runs, coordinates, strict=True)
    ]
    return SuiteInfo(id=suite_id, created_at=runs[0].created_at, axes=axes, cells=cells)


def find_axes(coordinates: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """What the places differ in. Of names that always change together, as a model and its alias do, only the
    first is an axis. Runs of a sweep start at once, so their order says nothing: values are sorted."""
    axes: dict[str, list[str]] = {}
    known: set[tuple[int, ...]] = set()
    for name in dict.fromkeys(name for each in coordinates for name in each):
        values = sorted({each.get(name, "") for each in coordinates}, key=order_of)
        firsts = list(dict.fromkeys(each.get(name, "") for each in coordinates))
        pattern = tuple(firsts.index(each.get(name, "")) for each in coordinates)
        if len(values) > 1 and pattern not in known:
            known.add(pattern)
            axes[name] = values
    return axes


def order_of(value: str) -> tuple[float, str]:
    """Numbers by their size, then words."""
    try:
        return float(value), value
    except ValueError:
        return math.inf, value


def describe_coordinates(run: RunInfo, label: dict[str, str]) -> dict[str, str]:
    """A run's value on each axis that there might be."""
    fields = {name: str(getattr(run, name) or "") for name in MATRIX_FIELDS}
    return {**fields, **label}
