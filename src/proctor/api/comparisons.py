"""Runs compared on the tasks they share: the verdict of each against a base, and their tasks in pages."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.api.bounds import Name
from proctor.api.rollout_list import ListLimit, Offset
from proctor.api.rollout_view import RolloutAddress
from proctor.api.runs import RunInfo
from proctor.comparison.compare import Comparison
from proctor.task import TaskId

MOST_RUNS_COMPARED = 8

ComparedTasks = Literal["all", "flips", "differences"]
TaskComparisonSort = Literal["difference", "task"]


class CompareQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to compare, and which of their tasks to list."""

    run: Annotated[list[Name], Meta(min_length=2, max_length=MOST_RUNS_COMPARED)]
    base: Name | None = None
    """One of the runs, which the others are compared with; the first if None."""
    metric: Name | None = None
    """What tasks are listed and drawn by; the reward if None."""
    margin: Annotated[float, Meta(gt=0)] | None = None
    """The largest difference that does not matter: ask for equivalence as well."""
    only: ComparedTasks = "all"
    q: str | None = None
    """Text that the task's id contains."""
    sort: TaskComparisonSort = "difference"
    """`difference`: tasks that flipped first, then by the size of the largest difference."""
    offset: Offset = 0
    limit: ListLimit = 100


class TaskSide(msgspec.Struct, frozen=True, kw_only=True):
    """One task in one of the compared runs."""

    mean: float | None = None
    """None if it was not scored there."""
    scored: int = 0
    unscored: int = 0
    """Its rollouts there that have no score; if both are 0, the run does not have the task."""
    passed: bool = False
    """Its mean reaches the pass threshold."""
    rollout: RolloutAddress | None = None
    """The rollout to look at: of several, the one that differs most from the other run."""


class TaskComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One task in all compared runs."""

    task: TaskId
    member: str = ""
    """Which of several environments that ran as one."""
    same_content: bool = True
    flipped: bool = False
    """It passes in the base and not in another run, or the other way round."""
    difference: float | None = None
    """The largest difference from the base."""
    sides: list[TaskSide]
    """In the order of the runs."""


class ScatterPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks whose means are the same, or nearly so if there are many."""

    run: str
    base_mean: float
    mean: float
    tasks: int


class ComparisonPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs compared with a base."""

    base: str
    runs: list[RunInfo]
    """In the order they were asked for."""
    comparisons: list[Comparison]
    """Of each run but the base, in that order, with the base as the baseline; `tasks` is empty, because the
    tasks of all runs stand below."""
    metrics: list[str]
    """That tasks can be listed by."""
    items: list[TaskComparison]
    offset: int
    total: int
    scatter: list[ScatterPoint]
    """On the first page only."""
