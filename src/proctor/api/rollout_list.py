"""The rollouts of a run in brief: filtered and sorted by the server, one by one, by task, and as a
distribution.

Nothing here assumes who played the run: a field that its rows do not have is None or empty.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proctor.rollout import Outcome
from proctor.task import TaskId

RolloutSort = Literal[
    "arrival", "task", "number", "outcome", "reward", "metric", "seconds", "tokens", "turns", "cost", "error"
]
TaskSort = Literal["task", "mean", "spread", "scored", "failed", "lowest", "highest"]

MOST_ROLLOUTS_LISTED = 1_000
Offset = Annotated[int, Meta(ge=0)]
ListLimit = Annotated[int, Meta(ge=1, le=MOST_ROLLOUTS_LISTED)]


class RolloutEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One finished rollout in a list."""

    task: TaskId
    key: str
    """Stands for the task in addresses: ids may hold anything."""
    number: int
    """Of the task's rollouts, from 0."""
    outcome: Outcome
    settled: bool
    """False for a failure that a resumed run plays again."""
    reward: float | None = None
    metrics: dict[str, float] = {}
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    cost_usd: float | None = None
    error_kind: str = ""
    error: str = ""
    """Its message, cut to one line."""
    stop_condition: str = ""
    started_at: float = 0.0
    env: str = ""
    """Which of several environments that ran as one."""
    attempts: int = 1
    preview: str = ""
    """The beginning of the model's last message."""


class RolloutFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rollouts of a run, in which order."""

    outcome: list[Outcome] = []
    error_kind: list[str] = []
    stop_condition: list[str] = []
    env: list[str] = []
    task: str | None = None
    """The key of one task."""
    passed: bool | None = None
    reward_min: float | None = None
    reward_max: float | None = None
    metric: str | None = None
    """The metric that `metric_min`, `metric_max` and `sort=metric` are about."""
    metric_min: float | None = None
    metric_max: float | None = None
    seconds_min: float | None = None
    seconds_max: float | None = None
    tokens_min: int | None = None
    tokens_max: int | None = None
    q: str | None = None
    """Text that the task's id, the preview or the error contains."""
    sort: RolloutSort = "arrival"
    descending: bool = False


class RolloutQuery(RolloutFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of a run's rollouts."""

    offset: Offset = 0
    limit: ListLimit = 100
    cursor: str | None = None
    """After the last item of a page, wherever that rollout is by now; instead of an offset."""


class RolloutViewQuery(RolloutFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The list that one rollout is read in: its neighbors are those of the list."""

    sort: RolloutSort = "task"
    most_events: Annotated[int, Meta(ge=1)] | None = None
    """Only so many events, from the first on; `total_events` says how many there are."""


class ExportQuery(RolloutFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run's rollouts as a table: all of them, or those that match."""

    format: Literal["csv", "jsonl", "parquet"] = "csv"
    columns: list[str] = []
    """Only these, in this order; all if empty. docs/results.md lists them."""


class RolloutPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[RolloutEntry]
    offset: int
    """The position of the first item among all that match."""
    total: int
    next_cursor: str | None = None
    complete: bool = True
    """False while rows that are there already are still being read: ask again."""


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tasks of a run, in which order."""

    q: str | None = None
    env: list[str] = []
    sort: TaskSort = "task"
    descending: bool = False
    offset: Offset = 0
    limit: ListLimit = 100


class TaskGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The rollouts of one task."""

    task: TaskId
    key: str
    rollouts: int
    scored: int
    failed: int
    passed: int
    mean: float | None = None
    spread: float | None = None
    """The standard deviation of the rewards; None for fewer than two."""
    lowest: float | None = None
    highest: float | None = None
    entries: list[RolloutEntry] = []


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[TaskGroup]
    offset: int
    total: int
    complete: bool = True


class DistributionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    of: Literal["reward", "seconds", "tokens", "turns", "cost", "metric"] = "reward"
    metric: str | None = None
    bins: Annotated[int, Meta(ge=1, le=100)] = 20


class DistributionBin(msgspec.Struct, frozen=True):
    low: float
    high: float
    count: int


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """How a quantity is distributed over a run's rollouts. A quantity with up to ten values, such as a 0/1
    reward, has a bin for each of them, whose `low` and `high` are the same."""

    of: str
    n: int
    missing: int
    """Rollouts that do not have it."""
    bins: list[DistributionBin]
    mean: float | None = None
    median: float | None = None
    p90: float | None = None
    lowest: float | None = None
    highest: float | None = None
    complete: bool = True


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Failures of a run that have one cause."""

    outcome: Outcome
    kind: str
    """The error's class."""
    phase: str = ""
    location: str = ""
    """The line of the author's code that failed."""
    count: int
    message: str
    """Of one of them."""
    next_step: str = ""
    """What to do about it."""
    examples: list[RolloutEntry] = []
    log_at: int | None = None
    """The number of the log line nearest to the first of them."""
