"""Pair the tasks of two sides: by content first, then by id. Knows nothing of scores' meaning.

A side is one run, or several runs of one recipe whose rollouts are pooled task by task.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from proctor.comparison.scores import RunScores, TaskScores
from proctor.task import TaskId

NAMED_TASKS = 20
"""Unmatched tasks that are named; the others are counted."""


class PooledTask(msgspec.Struct, frozen=True, gc=False):
    """One task of a side, with its scores in each of the side's runs."""

    id: TaskId
    hash: str
    member: str
    parts: tuple[tuple[str, TaskScores], ...]
    """Pairs of a run's name and its scores."""
    rewards: tuple[float, ...]
    """Of all its runs."""

    def values(self, metric: str) -> tuple[float, ...]:
        return join_values([scores.metrics.get(metric, ()) for _, scores in self.parts])


def join_values(parts: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))


class TaskPair(msgspec.Struct, frozen=True, gc=False):
    """One task on both sides."""

    baseline: PooledTask
    candidate: PooledTask

    @property
    def has_same_content(self) -> bool:
        return bool(self.baseline.hash) and self.baseline.hash == self.candidate.hash

    @property
    def has_other_content(self) -> bool:
        """Known to differ; the content of tasks in files of other tools is not known."""
        return bool(self.baseline.hash and self.candidate.hash) and not self.has_same_content


class UnmatchedTasks(msgspec.Struct, frozen=True):
    """Tasks of one side without a partner that was scored."""

    count: int
    named: tuple[TaskId, ...]
    """The first of them."""


class PairingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How the tasks of two sides were matched."""

    paired: int
    """Tasks that both sides scored."""
    paired_by_id: int
    """Of the paired, those whose content differs or is unknown; they share only their id."""
    only_baseline: UnmatchedTasks
    only_candidate: UnmatchedTasks
    unscored: UnmatchedTasks
    """Tasks that both sides have, but that at least one of them has no score for."""


def pool_tasks(runs: Sequence[RunScores]) -> list[PooledTask]:
    """The tasks of a side, each with its scores in every run."""
    parts: dict[tuple[str, TaskId, str], list[tuple[str, TaskScores]]] = {}
    for run in runs:
        for task in run.tasks:
            parts.setdefault((task.member, task.id, task.hash), []).append((run.run, task))
    return [
        PooledTask(task_id, content, member, tuple(each), join_values([scores.rewards for _, scores in each]))
        for (member, task_id, content), each in parts.items()
    ]


def pair_tasks(
    baseline: Sequence[PooledTask], candidate: Sequence[PooledTask]
) -> tuple[list[TaskPair], PairingSummary]:
    """Every task that has a partner: of the same content and id, of the same content, or of the same id."""
    pairs: list[TaskPair] = []
    left, right = list(baseline), list(candidate)
    for key in (_content_and_id, _content, _id):
        left, right = _match(left, right, key, pairs)
    scored = [pair for pair in pairs if pair.baseline.rewards and pair.candidate.rewards]
    unscored = [pair.baseline for pair in pairs if not (pair.baseline.rewards and pair.candidate.rewards)]
    return scored, PairingSummary(
        paired=len(scored),
        paired_by_id=sum(not pair.has_same_content for pair in scored),
        only_baseline=_name(left),
        only_candidate=_name(right),
        unscored=_name(unscored),
    )


def find_content_problem(baseline: Sequence[RunScores], candidate: Sequence[RunScores]) -> str:
    """Whether two environments have nothing in common but the numbers of their tasks; empty if not."""
    theirs, ours = ({base_name(run.environment) for run in side} for side in (baseline, candidate))
    if theirs & ours or not (theirs and ours):
        return ""
    pairs, _ = pair_tasks(pool_tasks(baseline), pool_tasks(candidate))
    if not pairs or not all(pair.has_other_content for pair in pairs):
        return ""
    names = [" and ".join(sorted(side)) for side in (theirs, ours)]
    return f"{names[0]} and {names[1]} have no task in common; only the ids of their tasks agree"


def base_name(environment: str) -> str:
    """An environment's name without its owner and version."""
    return environment.partition("@")[0].rpartition("/")[2]


def _match(
    left: Sequence[PooledTask],
    right: Sequence[PooledTask],
    key: Callable[[PooledTask], Hashable],
    pairs: list[TaskPair],
) -> tuple[list[PooledTask], list[PooledTask]]:
    """Move tasks with equal keys into `pairs`, each once; return what is left of both sides."""
    waiting: dict[Hashable, list[PooledTask]] = {}
    for task in reversed(right):  # partners are taken from the end, so that the first comes first
        waiting.setdefault(key(task), []).append(task)
    waiting.pop(None, None)
    alone, taken = [], set()
    for task in left:
        if partners := waiting.get(key(task)):
            partner = partners.pop()
            taken.add(id(partner))
            pairs.append(TaskPair(task, partner))
        else:
            alone.append(task)
    return alone, [task for task in right if id(task) not in taken]


def _content_and_id(task: PooledTask) -> Hashable:
    return (task.member, task.hash, task.id) if task.hash else None


def _content(task: PooledTask) -> Hashable:
    return (task.member, task.hash) if task.hash else None


def _id(task: PooledTask) -> Hashable:
    return (task.member, task.id)


def _name(tasks: Iterable[PooledTask]) -> UnmatchedTasks:
    tasks = list(tasks)
    return UnmatchedTasks(len(tasks), tuple(task.id for task in tasks[:NAMED_TASKS]))


def find_metrics(pairs: Sequence[TaskPair]) -> list[str]:
    """Names of the metrics that both sides have for some task, without those that repeat the reward."""
    found: dict[str, None] = {}
    for pair in pairs:
        for _, scores in pair.baseline.parts:
            found.update(dict.fromkeys(scores.metrics))
    return [name for name in found if _is_in_candidate(name, pairs) and not _is_reward(name, pairs)]


def _is_in_candidate(name: str, pairs: Sequence[TaskPair]) -> bool:
    return any(pair.candidate.values(name) for pair in pairs)


def _is_reward(name: str, pairs: Sequence[TaskPair]) -> bool:
    sides = (side for pair in pairs for side in (pair.baseline, pair.candidate))
    return all(side.values(name) == side.rewards for side in sides)


def group_by_member(pairs: Sequence[TaskPair]) -> Mapping[str, list[TaskPair]]:
    """Pairs by the environment they belong to; nothing where there is only one."""
    groups: dict[str, list[TaskPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.baseline.member, []).append(pair)
    return dict(sorted(groups.items())) if len(groups) > 1 else {}
