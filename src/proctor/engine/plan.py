"""Decide which rollouts are still owed.

Knows tasks and counts. Knows nothing of models, stores or clocks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

import msgspec

from proctor.errors import ConfigError
from proctor.rollout import Attempt, RecordedPlay, RolloutKey
from proctor.task import Task, TaskId


class Slot(msgspec.Struct, frozen=True, eq=False):
    """One rollout that is owed."""

    task: Task
    number: int
    earlier: tuple[Attempt, ...] = ()
    recorded: Callable[[], RecordedPlay] | None = None
    """Reads how it was played before; then it is only scored again."""

    @property
    def key(self) -> RolloutKey:
        return (self.task.id, self.number)


Unit = tuple[Slot, ...]
"""Slots that are played side by side and end together."""


def _accept(_: Task) -> None: ...


def _never() -> bool:
    return False


class Plan(msgspec.Struct, kw_only=True):
    """Tasks times rollouts, less what is finished. Read once, lazily."""

    tasks: Iterable[Task]
    rollouts_per_task: int
    finished: Mapping[RolloutKey, object] = {}
    """Rollouts that need not be played again."""
    only: AbstractSet[RolloutKey] | None = None
    """Play no others, if given."""
    earlier: Mapping[RolloutKey, tuple[Attempt, ...]] = {}
    """Failed attempts at rollouts that are owed again."""
    recorded: Mapping[RolloutKey, Callable[[], RecordedPlay]] = {}
    """Rollouts that are only scored again."""
    whole_groups: bool = False
    """A group with anything owed is owed whole, because it is scored as one."""
    on_task: Callable[[Task], None] = _accept
    """Called with each task as it is reached; may refuse the plan by raising."""
    is_enough: Callable[[], bool] = _never
    """Asked before each task; the first True ends the plan."""
    at_least: int = 0
    """Tasks that are played without asking: they, or later ones, were begun before."""
    ended_early: bool = False
    """Whether tasks were left out because there was enough."""
    counted: int = 0
    """Tasks reached so far."""

    @property
    def planned(self) -> int | None:
        """How many rollouts there are in all, where the tasks can be counted without reading them."""
        if self.ended_early:
            return self.counted * self.rollouts_per_task
        return len(self.tasks) * self.rollouts_per_task if isinstance(self.tasks, Sequence) else None

    def groups(self) -> Iterator[Unit]:
        """The owed slots of each task that owes any."""
        seen: set[TaskId] = set()
        for task in self.tasks:
            if self.counted >= self.at_least and self.is_enough():
                self.ended_early = True
                return
            if task.id in seen:
                raise ConfigError(f"Two tasks have the id {task.id!r}; give each task an id of its own.")
            seen.add(task.id)
            self.on_task(task)
            self.counted += 1
            slots = self.slots_of(task)
            if slots:
                yield slots

    def slots(self) -> Iterator[Unit]:
        """Every owed slot on its own."""
        for group in self.groups():
            for slot in group:
                yield (slot,)

    def slots_of(self, task: Task) -> Unit:
        finished, keys = self.finished, [(task.id, number) for number in range(self.rollouts_per_task)]
        owed = [key for key in keys if key not in finished]
        if self.only is not None:
            owed = [key for key in owed if key in self.only]
        if not owed:
            return ()
        if self.whole_groups:
            owed = keys
        earlier, recorded = self.earlier, self.recorded
        return tuple([Slot(task, key[1], earlier.get(key, ()), recorded.get(key)) for key in owed])


def select(tasks: Iterable[Task], count: int, shuffle_seed: int | None = None) -> Iterable[Task]:
    """The first `count` tasks (-1: all), or that many in a seeded random order. Stays lazy where it can."""
    if shuffle_seed is not None:
        chosen = list(tasks)
        random.Random(shuffle_seed).shuffle(chosen)
        return chosen if count < 0 else chosen[:count]
    if count < 0:
        return tasks
    if isinstance(tasks, Sequence):
        return tasks[:count]
    return islice(iter(tasks), count)
