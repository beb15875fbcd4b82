"""Compare runs by their indexes: the verdicts of proctor.comparison, and their tasks side by side.

Tasks are paired as the verdicts pair them: by content first, then by id. Knows nothing of stores or HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.api.comparisons import (
    CompareQuery,
    ComparisonPage,
    ScatterPoint,
    TaskComparison,
    TaskSide,
)
from proctor.api.refusals import InvalidError
from proctor.api.rollout_view import RolloutAddress
from proctor.api.runs import RunInfo
from proctor.comparison.compare import Comparison, compare_all
from proctor.comparison.measure import ComparisonOptions
from proctor.comparison.pairing import PooledTask, pair_tasks, pool_tasks
from proctor.comparison.scores import RunScores, TaskScores
from proctor.reading.entries import task_key
from proctor.reading.rollout_index import OUTCOMES, RolloutIndex
from proctor.stats.samples import is_close, mean_of
from proctor.store.scores import assemble_scores

EXCLUDED = OUTCOMES.index("excluded")
MOST_POINTS = 2_000
GRID = 100
"""More points than that are drawn on a square grid of this size."""


class TaskRow(msgspec.Struct, frozen=True):
    """One task of the base, or of a run that has it alone, with its partner in every run."""

    tasks: tuple[PooledTask | None, ...]
    means: tuple[float | None, ...]
    difference: float | None
    flipped: bool

    @property
    def first(self) -> PooledTask:
        return next(task for task in self.tasks if task is not None)


class ComparedRuns(msgspec.Struct, frozen=True):
    """Runs that were compared, to be read in pages."""

    ids: tuple[str, ...]
    base: int
    threshold: float
    metrics: list[str]
    metric: str | None
    comparisons: list[Comparison]
    rows: list[TaskRow]
    """In the order of tasks."""


# The scores of a run


def collect_scores(index: RolloutIndex, run: str, metadata: Mapping[str, Any]) -> RunScores:
    """The scores that an index holds, task by task."""
    with index.lock:
        tasks = [collect_task(index, slots) for slots in split_by_task(index)]
        excluded = sum(index.outcome[slot] == EXCLUDED for slot in index.slots())
    return assemble_scores(metadata, run, tasks, None, excluded)


def split_by_task(index: RolloutIndex) -> list[list[int]]:
    """The slots of each task, by number."""
    groups: list[list[int]] = []
    last = -1
    for slot in index.in_task_order:
        if index.task[slot] != last:
            last = index.task[slot]
            groups.append([])
        groups[-1].append(slot)
    return groups


def collect_task(index: RolloutIndex, slots: Sequence[int]) -> TaskScores:
    task = index.task[slots[0]]
    scored = [slot for slot in slots if index.reward[slot] == index.reward[slot]]
    values: dict[str, list[float]] = {}
    for slot in scored:
        for name, value in index.metrics.of(slot).items():
            values.setdefault(name, []).append(value)
    content = index.hashes[task]
    return TaskScores(
        id=index.tasks[task],
        hash=f"{content:016x}" if content else "",
        member=index.env.of(slots[0]),
        rollouts=tuple(index.number[slot] for slot in scored),
        rewards=tuple(index.reward[slot] for slot in scored),
        metrics={name: tuple(each) for name, each in values.items()},
        unscored=sum(
            index.outcome[slot] != EXCLUDED for slot in slots if index.reward[slot] != index.reward[slot]
        ),
    )


# Comparing


def compare_scores(runs: Sequence[RunScores], base: int, query: CompareQuery) -> ComparedRuns:
    others = [run for index, run in enumerate(runs) if index != base]
    options = ComparisonOptions(margin=query.margin, most_tasks=0)
    comparisons = compare_all([([runs[base]], [other]) for other in others], options)
    metrics = list(dict.fromkeys(measure.name for each in comparisons for measure in each.metrics))
    known = {name for run in runs for task in run.tasks for name in task.metrics}
    if query.metric is not None and query.metric not in known:
        raise InvalidError(f"None of these runs has a metric {query.metric!r}.", field="metric")
    return ComparedRuns(
        ids=tuple(run.run for run in runs),
        base=base,
        threshold=runs[base].pass_threshold,
        metrics=metrics,
        metric=query.metric,
        comparisons=comparisons,
        rows=line_up_tasks(runs, base, query.metric),
    )


def line_up_tasks(runs: Sequence[RunScores], base: int, metric: str | None) -> list[TaskRow]:
    """Every task once, with its partner in each run."""
    pooled = [pool_tasks([run]) for run in runs]
    partners = [pair_up(pooled[base], tasks) for tasks in pooled]
    threshold = runs[base].pass_threshold if metric is None else None
    rows = [
        build_row([found.get(id(task)) for found in partners], base, metric, threshold)
        for task in pooled[base]
    ]
    for index, tasks in enumerate(pooled):
        if index != base:
            taken = {id(task) for task in partners[index].values()}
            for task in tasks:
                if id(task) not in taken:
                    sides = [task if at == index else None for at in range(len(runs))]
                    rows.append(build_row(sides, base, metric, threshold))
    return rows


def pair_up(base: Sequence[PooledTask], other: Sequence[PooledTask]) -> dict[int, PooledTask]:
    """The partner of each task of the base in another run, scored or not."""
    if base is other:
        return {id(task): task for task in base}
    pairs, _ = pair_tasks(base, other)
    found = {id(pair.baseline): pair.candidate for pair in pairs}
    taken = {id(task) for task in found.values()}
    unscored = {(task.member, task.id): task for task in other if id(task) not in taken}
    for task in base:
        if id(task) not in found and (partner := unscored.get((task.member, task.id))) is not None:
            found[id(task)] = partner
    return found


def build_row(
    tasks: Sequence[PooledTask | None], base: int, metric: str | None, threshold: float | None
) -> TaskRow:
    means = tuple(None if task is None else task_mean(task, metric) for task in tasks)
    own = means[base]
    differences = [mean - own for mean in means if mean is not None and own is not None]
    largest = max(differences, key=abs, default=None) if len(differences) > 1 else None
    flipped = (
        threshold is not None
        and own is not None
        and any((mean >= threshold) != (own >= threshold) for mean in means if mean is not None)
    )
    return TaskRow(tuple(tasks), means, largest, flipped)


def task_mean(task: PooledTask, metric: str | None) -> float | None:
    values = task.rewards if metric is None else task.values(metric)
    return mean_of(values) if values else None


# Pages


def build_page(compared: ComparedRuns, infos: Sequence[RunInfo], query: CompareQuery) -> ComparisonPage:
    rows = sort_rows(filter_rows(compared.rows, query), query)
    shown = rows[query.offset : query.offset + query.limit]
    return ComparisonPage(
        base=compared.ids[compared.base],
        runs=list(infos),
        comparisons=compared.comparisons,
        metrics=compared.metrics,
        items=[describe_row(row, compared) for row in shown],
        offset=query.offset,
        total=len(rows),
        scatter=build_scatter(compared) if query.offset == 0 else [],
    )


def filter_rows(rows: Sequence[TaskRow], query: CompareQuery) -> list[TaskRow]:
    found = list(rows)
    if query.only == "flips":
        found = [row for row in found if row.flipped]
    elif query.only == "differences":
        found = [row for row in found if row.difference is not None and not is_close(row.difference, 0.0)]
    if query.q and (wanted := query.q.strip().lower()):
        found = [row for row in found if wanted in str(row.first.id).lower()]
    return found


def sort_rows(rows: list[TaskRow], query: CompareQuery) -> list[TaskRow]:
    if query.sort == "task":
        return rows
    return sorted(rows, key=lambda row: (not row.flipped, -abs(row.difference or 0.0)))


def describe_row(row: TaskRow, compared: ComparedRuns) -> TaskComparison:
    first = row.first
    rose = (row.difference or 0.0) > 0
    contents = {task.hash for task in row.tasks if task is not None}
    return TaskComparison(
        task=first.id,
        member=first.member,
        same_content=len(contents) == 1 and "" not in contents,
        flipped=row.flipped,
        difference=row.difference,
        sides=[
            describe_side(task, mean, compared, index, highest=rose != (index == compared.base))
            for index, (task, mean) in enumerate(zip(row.tasks, row.means, strict=True))
        ],
    )


def describe_side(
    task: PooledTask | None, mean: float | None, compared: ComparedRuns, index: int, *, highest: bool
) -> TaskSide:
    if task is None:
        return TaskSide()
    ((_, scores),) = task.parts
    chosen = choose_rollout(scores, highest)
    return TaskSide(
        mean=mean,
        scored=len(scores.rewards),
        unscored=scores.unscored,
        passed=mean is not None and compared.metric is None and mean >= compared.threshold,
        rollout=None
        if chosen is None
        else RolloutAddress(run=compared.ids[index], key=task_key(task.id), number=chosen),
    )


def choose_rollout(scores: TaskScores, highest: bool) -> int | None:
    """The number of the rollout with the highest or the lowest reward; the first of several."""
    if not scores.rollouts:
        return None
    pairs = zip(scores.rewards, scores.rollouts, strict=True)
    choose = max if highest else min
    return choose(pairs, key=lambda pair: pair[0])[1]


def build_scatter(compared: ComparedRuns) -> list[ScatterPoint]:
    """Each task as a point: its mean in the base, and in another run."""
    points: list[ScatterPoint] = []
    for index, run in enumerate(compared.ids):
        if index == compared.base:
            continue
        both = [(row.means[compared.base], row.means[index]) for row in compared.rows]
        counted = count_points([(x, y) for x, y in both if x is not None and y is not None])
        points += [ScatterPoint(run=run, base_mean=x, mean=y, tasks=n) for (x, y), n in counted.items()]
    return points


def count_points(points: Sequence[tuple[float, float]]) -> Counter[tuple[float, float]]:
    counted = Counter(points)
    if len(counted) <= MOST_POINTS:
        return counted
    values = [value for point in counted for value in point]
    low = min(values)
    width = (max(values) - low) / GRID or 1.0

    def snap(value: float) -> float:
        return low + round((value - low) / width) * width

    grid: Counter[tuple[float, float]] = Counter()
    for (x, y), count in counted.items():
        grid[snap(x), snap(y)] += count
    return grid
