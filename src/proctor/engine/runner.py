"""Run a plan: a bounded number of tasks pull owed rollouts, have them played and hand them over to be kept.

Tasks start one by one as work is found, so neither a million owed rollouts nor a limit of thousands costs
anything before it is used. Knows nothing of configuration, files or terminals, nor of where rollouts are
played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from proctor.engine.plan import Plan, Unit
from proctor.engine.player import Rules
from proctor.engine.seat import Emit
from proctor.errors import EnvError, ProctorError, StoreError
from proctor.events import PlanCounted
from proctor.rollout import Rollout

SaveRollouts = Callable[[Sequence[Rollout]], None]
"""Takes finished rollouts to make them durable. Raising stops the run: a rollout that cannot be kept must
not be paid for."""


class UnitPlayer(Protocol):
    """Plays units: a Player in this process, or worker processes."""

    rules: Rules
    trouble: ProctorError | None
    """Why the run cannot continue, if it cannot."""

    def check(self, rollouts_per_task: int) -> None: ...
    def play(self, unit: Unit) -> Awaitable[Sequence[Rollout]]: ...
    def stop(self) -> None: ...
    def score_after(self, count: int) -> None: ...
    def left_out(self, unit: Unit) -> None: ...


class StartLimit(Protocol):
    """Decides whether one more rollout, or group, may start beside those in flight."""

    def may_start(self) -> bool:
        """Asked before each start; after False it is asked again when something in flight has ended."""


class Runner:
    """One run of one plan."""

    def __init__(
        self, player: UnitPlayer, emit: Emit, keep: SaveRollouts, limit: StartLimit | None = None
    ) -> None:
        self.player = player
        self.emit = emit
        self.keep = keep
        self.limit = limit
        self.stopping = False
        self._started = 0
        self._held: Unit | None = None
        """Pulled, but not to start before something in flight has ended."""

    async def run(self, plan: Plan) -> None:
        """Play everything that is owed; return when it is done or when a requested stop has completed."""
        rules = self.player.rules
        self.player.check(plan.rollouts_per_task)
        owed = plan.groups() if rules.grouped else plan.slots()
        units = self._pull(self._announce_count(plan, owed))
        at_once = rules.at_once
        if not rules.interleave:
            everything = list(units)
            self.player.score_after(sum(len(unit) for unit in everything))
            units, at_once = self._pull_counted(iter(everything)), len(everything)
        async with asyncio.TaskGroup() as group:
            self._start_task(group, units, at_once)
        if self.player.trouble is not None:
            raise self.player.trouble

    def stop(self) -> None:
        """Start nothing more; rollouts in flight are played to their end."""
        self.stopping = True
        self.player.stop()

    def fail(self, error: ProctorError) -> None:
        """Start nothing more, and have `run` raise this error once rollouts in flight have ended."""
        self.player.trouble = self.player.trouble or error

    def _start_task(self, group: asyncio.TaskGroup, units: Iterator[Unit], at_once: int) -> None:
        if self._started < at_once:
            self._started += 1
            group.create_task(self._play_units(group, units, at_once))

    async def _play_units(self, group: asyncio.TaskGroup, units: Iterator[Unit], at_once: int) -> None:
        while (unit := self._next_unit(units)) is not None:
            self._start_task(group, units, at_once)
            rollouts = await self.player.play(unit)
            if not rollouts:
                continue
            try:
                self.keep(rollouts)
            except Exception as error:
                self.fail(as_store_error(rollouts, error))

    def _next_unit(self, units: Iterator[Unit]) -> Unit | None:
        """The next to play; None if there is none, or if what is in flight must end before another starts."""
        unit, self._held = self._held or next(units, None), None
        if unit is None or self.limit is None or self.limit.may_start():
            return unit
        self._held = unit
        self._started -= 1  # whoever ends next may start this task again
        return None

    def _announce_count(self, plan: Plan, units: Iterator[Unit]) -> Iterator[Unit]:
        yield from units
        if plan.planned is None or plan.ended_early:
            self.emit(PlanCounted(plan.counted * plan.rollouts_per_task))

    def _pull(self, units: Iterator[Unit]) -> Iterator[Unit]:
        """Owed units, until there are no more or the run stops. A broken source of tasks stops the run."""
        while not (self.stopping or self.player.trouble):
            try:
                unit = next(units, None)
            except ProctorError as error:
                self.player.trouble = error
                return
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                self.player.trouble = EnvError(f"reading the tasks failed: {type(error).__name__}: {error}")
                self.player.trouble.__cause__ = error
                return
            if unit is None:
                return
            yield unit

    def _pull_counted(self, units: Iterator[Unit]) -> Iterator[Unit]:
        """Like _pull, where played rollouts wait for all others: units that never start are counted off."""
        yield from self._pull(units)
        for unit in units:
            self.player.left_out(unit)


def as_store_error(rollouts: Sequence[Rollout], error: Exception) -> ProctorError:
    """The error that a failed save means; an unexpected one becomes a StoreError."""
    if isinstance(error, ProctorError):
        return error
    unsaved = StoreError(
        f"{len(rollouts)} finished rollouts could not be kept: {type(error).__name__}: {error}"
    )
    unsaved.__cause__ = error
    return unsaved
