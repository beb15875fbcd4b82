"""What moved when a run was scored again: rollout by rollout, task by task, and on the whole.

Knows rewards, and nothing of how they were computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from proctor.errors import StoreError
from proctor.evaluation.reuse import ReusePlan
from proctor.rollout import RolloutKey
from proctor.stats.paired import PairedComparison, compare_paired
from proctor.stats.samples import is_close
from proctor.store.folder import RESULTS, read_line
from proctor.task import TaskId

Rewards = Mapping[RolloutKey, float | None]


class TaskMove(msgspec.Struct, frozen=True):
    """A task of which some rollout has another reward than before."""

    task: TaskId
    before: float | None
    """Mean over its rollouts that had a reward; None if none had."""
    after: float | None
    moved: int
    rollouts: int

    @property
    def change(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)


class ScoreMoves(msgspec.Struct, frozen=True):
    """What scoring again changed."""

    rollouts: int
    """That were scored again."""
    moved: int
    up: int
    down: int
    newly_scored: int
    no_longer_scored: int
    tasks: tuple[TaskMove, ...]
    """Those that moved, the largest move first."""
    before: float | None
    """Mean over the tasks that have a reward before and after."""
    after: float | None
    comparison: PairedComparison | None
    """After against before, over those tasks."""


def find_moves(reuse: ReusePlan, folder: Path) -> ScoreMoves:
    """Compare the run in a folder with the one it was scored again from."""
    keys = reuse.keys("rescore")
    before = {key: reuse.plays.lines[reuse.stored_key(key)].reward for key in keys}
    return compare_rewards(before, read_rewards(folder, frozenset(keys)))


def read_rewards(folder: Path, keys: frozenset[RolloutKey]) -> dict[RolloutKey, float | None]:
    try:
        with (folder / RESULTS).open("rb") as file:
            lines = (read_line(raw) for raw in file)
            return {line.key: line.reward for line in lines if line is not None and line.key in keys}
    except OSError as error:
        raise StoreError(f"{folder / RESULTS} cannot be read: {error.strerror}.") from error


def compare_rewards(before: Rewards, after: Rewards) -> ScoreMoves:
    pairs = [(key[0], was, after[key]) for key, was in before.items() if key in after]
    scored = [(was, now) for _, was, now in pairs if was is not None and now is not None]
    changes = [now - was for was, now in scored if not is_close(was, now)]
    by_task: dict[TaskId, list[tuple[float | None, float | None]]] = {}
    for task, was, now in pairs:
        by_task.setdefault(task, []).append((was, now))
    means = {
        task: (mean(was for was, _ in rewards), mean(now for _, now in rewards))
        for task, rewards in by_task.items()
    }
    both = [(was, now) for was, now in means.values() if was is not None and now is not None]
    newly = sum(was is None and now is not None for _, was, now in pairs)
    lost = sum(was is not None and now is None for _, was, now in pairs)
    return ScoreMoves(
        rollouts=len(pairs),
        moved=len(changes) + newly + lost,
        up=sum(change > 0 for change in changes),
        down=sum(change < 0 for change in changes),
        newly_scored=newly,
        no_longer_scored=lost,
        tasks=rank_moves(by_task, means),
        before=mean(was for was, _ in both),
        after=mean(now for _, now in both),
        comparison=compare_paired([now for _, now in both], [was for was, _ in both]) if both else None,
    )


def rank_moves(
    by_task: Mapping[TaskId, list[tuple[float | None, float | None]]],
    means: Mapping[TaskId, tuple[float | None, float | None]],
) -> tuple[TaskMove, ...]:
    moves = []
    for task, rewards in by_task.items():
        moved = sum(not is_same_reward(was, now) for was, now in rewards)
        if moved:
            moves.append(TaskMove(task, *means[task], moved, len(rewards)))
    return tuple(sorted(moves, key=lambda move: -abs(move.change)))


def is_same_reward(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is now
    return is_close(was, now)


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
