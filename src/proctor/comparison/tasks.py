"""The tasks on which two sides differ, those that flipped first, each with the rollouts to look at."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from proctor.comparison.pairing import PooledTask, TaskPair
from proctor.stats.samples import is_close, mean_of
from proctor.task import TaskId

Flip = Literal["lost", "won", "none"]
FLIPS: tuple[Flip, ...] = ("lost", "won", "none")


class ComparedRollout(msgspec.Struct, frozen=True):
    """A rollout worth a look."""

    run: str
    task: TaskId
    rollout: int
    reward: float


class TaskDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One task on which the sides differ."""

    task: TaskId
    member: str
    same_content: bool
    baseline: float
    """Mean reward of its rollouts."""
    candidate: float
    difference: float
    flip: Flip
    """Whether it passes on one side only: its mean reward reaches the pass threshold there."""
    baseline_rollout: ComparedRollout
    """Of the rollouts, the pair that differs most."""
    candidate_rollout: ComparedRollout


class DifferingTasks(msgspec.Struct, frozen=True):
    """How many tasks differ, listed or not."""

    count: int
    lost: int
    """Passed only on the baseline."""
    won: int
    """Passed only on the candidate."""


def list_task_differences(
    pairs: Sequence[TaskPair], threshold: float, most: int
) -> tuple[tuple[TaskDifference, ...], DifferingTasks]:
    """The differing tasks, lost ones first, then won ones, then by size; and how many there are."""
    rated: list[tuple[int, float, int, float, float]] = []
    for position, pair in enumerate(pairs):
        theirs, ours = mean_of(pair.baseline.rewards), mean_of(pair.candidate.rewards)
        if not is_close(theirs, ours):
            flip = find_flip(theirs, ours, threshold)
            rated.append((FLIPS.index(flip), -abs(ours - theirs), position, theirs, ours))
    first = heapq.nsmallest(most, rated) if 0 <= most < len(rated) else sorted(rated)
    found = tuple(
        describe_pair(pairs[position], theirs, ours, threshold) for _, _, position, theirs, ours in first
    )
    counts = Counter(rank for rank, *_ in rated)
    return found, DifferingTasks(len(rated), lost=counts[0], won=counts[1])


def find_flip(baseline: float, candidate: float, threshold: float) -> Flip:
    if (baseline >= threshold) == (candidate >= threshold):
        return "none"
    return "won" if candidate >= threshold else "lost"


def describe_pair(pair: TaskPair, baseline: float, candidate: float, threshold: float) -> TaskDifference:
    rose = candidate > baseline
    return TaskDifference(
        task=pair.candidate.id,
        member=pair.candidate.member,
        same_content=pair.has_same_content,
        baseline=baseline,
        candidate=candidate,
        difference=candidate - baseline,
        flip=find_flip(baseline, candidate, threshold),
        baseline_rollout=find_extreme(pair.baseline, highest=not rose),
        candidate_rollout=find_extreme(pair.candidate, highest=rose),
    )


def find_extreme(task: PooledTask, highest: bool) -> ComparedRollout:
    """The rollout with the highest or the lowest reward; the first of several."""
    rollouts = [
        ComparedRollout(run, task.id, number, reward)
        for run, scores in task.parts
        for number, reward in zip(scores.rollouts, scores.rewards, strict=True)
    ]
    choose = max if highest else min
    return choose(rollouts, key=lambda rollout: rollout.reward)
