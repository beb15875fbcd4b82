"""The rollouts of a run by task: how many, their mean and their spread.

Knows an index and nothing of where its rows are.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import msgspec

from proctor.api.rollout_list import TaskGroup, TaskPage, TaskQuery
from proctor.reading.rollout_index import OUTCOMES, RolloutIndex

EXCLUDED = OUTCOMES.index("excluded")
MOST_ENTRIES_SHOWN = 200
"""Rollouts that a task lists with it; the others are in the list of rollouts."""


class TaskFigures(msgspec.Struct, frozen=True):
    """One column per figure, one value per task."""

    rollouts: list[int]
    scored: list[int]
    failed: list[int]
    passed: list[int]
    total: list[float]
    lowest: list[float]
    highest: list[float]
    squares: list[float]
    """Of the differences from the mean, summed up."""

    def mean(self, task: int) -> float | None:
        return self.total[task] / self.scored[task] if self.scored[task] else None

    def spread(self, task: int) -> float | None:
        scored = self.scored[task]
        return math.sqrt(self.squares[task] / (scored - 1)) if scored > 1 else None


def list_tasks(index: RolloutIndex, query: TaskQuery) -> TaskPage:
    with index.lock:
        figures: TaskFigures = index.get_or_build("task figures", lambda: compute_figures(index))
        tasks = sort_tasks(filter_tasks(index, figures, query), figures, query)
        shown = tasks[query.offset : query.offset + query.limit]
        return TaskPage(
            items=[build_group(index, figures, task) for task in shown],
            offset=query.offset,
            total=len(tasks),
            complete=index.complete,
        )


def compute_figures(index: RolloutIndex) -> TaskFigures:
    count = len(index.tasks)
    rollouts, scored, failed, passed = [0] * count, [0] * count, [0] * count, [0] * count
    total, squares = [0.0] * count, [0.0] * count
    lowest, highest = [math.inf] * count, [-math.inf] * count
    threshold = index.pass_threshold
    slots = index.in_task_order
    for slot in slots:
        task, reward = index.task[slot], index.reward[slot]
        rollouts[task] += 1
        if reward != reward:
            failed[task] += index.outcome[slot] != EXCLUDED
            continue
        scored[task] += 1
        total[task] += reward
        passed[task] += reward >= threshold
        if reward < lowest[task]:
            lowest[task] = reward
        if reward > highest[task]:
            highest[task] = reward
    for slot in slots:
        task, reward = index.task[slot], index.reward[slot]
        if reward == reward and scored[task] > 1:
            squares[task] += (reward - total[task] / scored[task]) ** 2
    return TaskFigures(rollouts, scored, failed, passed, total, lowest, highest, squares)


def filter_tasks(index: RolloutIndex, figures: TaskFigures, query: TaskQuery) -> list[int]:
    ranks = index.task_ranks
    tasks = sorted(range(len(index.tasks)), key=ranks.__getitem__)
    tasks = [task for task in tasks if figures.rollouts[task]]
    if query.env:
        numbers = index.env.find(query.env)
        there = {index.task[slot] for slot in index.slots() if index.env.column[slot] in numbers}
        tasks = [task for task in tasks if task in there]
    if query.q and (wanted := query.q.strip().lower()):
        tasks = [task for task in tasks if wanted in str(index.tasks[task]).lower()]
    return tasks


def sort_tasks(tasks: list[int], figures: TaskFigures, query: TaskQuery) -> list[int]:
    """In their order; tasks that lack the figure come last in both directions."""
    if query.sort == "task":
        return tasks[::-1] if query.descending else tasks
    columns: dict[str, Callable[[int], float | None]] = {
        "mean": figures.mean,
        "spread": figures.spread,
        "scored": figures.scored.__getitem__,
        "failed": figures.failed.__getitem__,
        "lowest": lambda task: figures.lowest[task] if figures.scored[task] else None,
        "highest": lambda task: figures.highest[task] if figures.scored[task] else None,
    }
    values = [(columns[query.sort](task), task) for task in tasks]
    valued = [(value, task) for value, task in values if value is not None]
    valued.sort(key=lambda pair: pair[0], reverse=query.descending)
    return [task for _, task in valued] + [task for value, task in values if value is None]


def build_group(index: RolloutIndex, figures: TaskFigures, task: int) -> TaskGroup:
    has_scores = figures.scored[task] > 0
    return TaskGroup(
        task=index.tasks[task],
        key=f"{index.keys[task]:016x}",
        rollouts=figures.rollouts[task],
        scored=figures.scored[task],
        failed=figures.failed[task],
        passed=figures.passed[task],
        mean=figures.mean(task),
        spread=figures.spread(task),
        lowest=figures.lowest[task] if has_scores else None,
        highest=figures.highest[task] if has_scores else None,
        entries=index.entries(slots_of_task(index, task)[:MOST_ENTRIES_SHOWN]),
    )


def slots_of_task(index: RolloutIndex, task: int) -> list[int]:
    """The slots of one task that count, by number."""
    rank, slots = index.task_ranks[task], index.in_task_order

    def rank_of(slot: int) -> int:
        return index.task_ranks[index.task[slot]]

    return slots[bisect_left(slots, rank, key=rank_of) : bisect_right(slots, rank, key=rank_of)]
