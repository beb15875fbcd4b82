"""The scores of one run, task by task: what a comparison is made from.

A builder takes one line per finished rollout and keeps a few bytes of each. Knows nothing of files.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from proctor.contracts import PASS_THRESHOLD
from proctor.report.summary import compute_coverage
from proctor.rollout import Outcome, is_score
from proctor.task import TaskId

Number = TypeVar("Number", int, float)


class ScoreLine(msgspec.Struct, frozen=True, gc=False):
    """The part of a stored rollout that a comparison reads; field names are those of the file."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    task_hash: str = ""
    reward: float | None = None
    metrics: dict[str, float] = {}
    env: Any = ""

    @property
    def is_scored(self) -> bool:
        """Whether all its numbers can be scores."""
        return self.reward is not None and is_score(self.reward) and all(map(is_score, self.metrics.values()))


class TaskScores(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task in one run: the scores of its rollouts."""

    id: TaskId
    hash: str = ""
    """Of its content; empty in files of other tools."""
    member: str = ""
    """Which of several environments that ran as one it belongs to."""
    rollouts: tuple[int, ...] = ()
    """The numbers of the scored rollouts."""
    rewards: tuple[float, ...] = ()
    metrics: Mapping[str, tuple[float, ...]] = {}
    unscored: int = 0
    """Rollouts that ended without a score."""


class RunScores(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what was evaluated, how, and what each task scored."""

    run: str
    """What readers call it: an id, or a folder's name."""
    environment: str = ""
    model: str = ""
    label: str = ""
    settings: Mapping[str, Any] = {}
    """Whatever may explain a difference, by name."""
    planned: int | None = None
    excluded: int = 0
    min_coverage: float = 1.0
    pass_threshold: float = PASS_THRESHOLD
    unreadable: int = 0
    """Lines of its results that could not be read."""
    tasks: Sequence[TaskScores] = ()

    @property
    def scored(self) -> int:
        return sum(len(task.rewards) for task in self.tasks)

    @property
    def coverage(self) -> float | None:
        return compute_coverage(self.scored, self.planned, self.excluded)


class ScoresBuilder:
    """Collects the lines of one run into scores by task."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, TaskId], int] = {}
        self._hashes: list[str] = []
        self._settled: set[tuple[int, int]] = set()
        self._unscored: set[tuple[int, int]] = set()
        self.excluded = 0
        # Flat, because a container for each rollout would cost most of the time and the memory.
        self._task_of, self._numbers, self._rewards = array("q"), array("q"), array("d")
        self._metrics: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, line: ScoreLine) -> None:
        """Count a rollout; of two lines of one rollout, the first that is settled counts."""
        name = (line.env if isinstance(line.env, str) else "", line.example_id)
        task = self._tasks.setdefault(name, len(self._hashes))
        if task == len(self._hashes):
            self._hashes.append(line.task_hash)
        key = (task, line.rollout)
        if key in self._settled:
            return
        reward = line.reward
        if reward is not None and line.is_scored:
            self._settled.add(key)
            self._add_score(task, line, reward)
        elif line.outcome == "excluded":
            self._settled.add(key)
            self.excluded += 1
        else:
            self._unscored.add(key)

    def _add_score(self, task: int, line: ScoreLine, reward: float) -> None:
        self._task_of.append(task)
        self._numbers.append(line.rollout)
        self._rewards.append(reward)
        for name, value in line.metrics.items():
            known = self._metrics.get(name)
            if known is None:
                known = self._metrics[name] = (array("q"), array("d"))
            known[0].append(task)
            known[1].append(value)

    def tasks(self) -> list[TaskScores]:
        count = len(self._hashes)
        numbers = collect_by_task(count, self._task_of, self._numbers)
        rewards = collect_by_task(count, self._task_of, self._rewards)
        metrics = {name: collect_by_task(count, *flat) for name, flat in self._metrics.items()}
        unscored = Counter(task for task, _ in self._unscored - self._settled)
        return [
            TaskScores(
                id=task_id,
                hash=content,
                member=member,
                rollouts=numbers[index],
                rewards=rewards[index],
                metrics={name: values[index] for name, values in metrics.items() if values[index]},
                unscored=unscored[index],
            )
            for index, ((member, task_id), content) in enumerate(zip(self._tasks, self._hashes, strict=True))
        ]


def collect_by_task(count: int, task_of: array[int], values: array[Number]) -> list[tuple[Number, ...]]:
    """The values of each task, in the order they came."""
    groups: list[tuple[Number, ...]] = [()] * count
    for index, task in enumerate(task_of):
        groups[task] += (values[index],)
    return groups
