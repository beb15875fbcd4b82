"""Run a plan: a bounded set of workers pulls owed rollouts, has them played, keeps and reports them.

Workers are called up one by one as work is found, so neither a million owed rollouts nor a limit of
thousands costs anything before it is used. Knows nothing of configuration, files or terminals, nor of where
rollouts are played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from proctor.engine.plan import Plan, Unit
from proctor.engine.player import Rules
from proctor.engine.seat import Emit
from proctor.errors import EnvError, ProctorError, StoreError
from proctor.events import PlanCounted, RolloutsFinished
from proctor.rollout import Rollout

RUSH_SECONDS = 0.01
"""One write every so often is enough: a write for each rollout costs more than its scoring."""

SaveRollouts = Callable[[Sequence[Rollout]], None]
"""Makes finished rollouts durable. Raising stops the run: what cannot be kept must not be paid for."""


class UnitPlayer(Protocol):
    """Who plays: a Player in this process, or workers in their own."""

    rules: Rules
    trouble: ProctorError | None
    """Why the run cannot go on, if it cannot."""

    def check(self, rollouts_per_task: int) -> None: ...
    async def play(self, unit: Unit) -> Sequence[Rollout]: ...
    def stop(self) -> None: ...
    def score_after(self, count: int) -> None: ...
    def left_out(self, unit: Unit) -> None: ...


class Runner:
    """One run of one plan."""

    def __init__(
        self,
        player: UnitPlayer,
        emit: Emit,
        keep: SaveRollouts,
        ended: Callable[[Rollout], None] = lambda _: None,
    ) -> None:
        self.player = player
        self.emit = emit
        self.keep = keep
        self.ended = ended
        """Told of each rollout the moment it ends, before it is kept and reported."""
        self.stopping = False
        self._ended: list[Rollout] = []
        self._settled_at = 0.0

    async def run(self, plan: Plan) -> None:
        """Play everything that is owed; return when it is done, or when a stop was asked for."""
        rules = self.player.rules
        self.player.check(plan.rollouts_per_task)
        owed = plan.groups() if rules.grouped else plan.slots()
        units = self._pull(self._counted(plan, owed))
        at_once = rules.at_once
        if not rules.interleave:
            everything = list(units)
            self.player.score_after(sum(len(unit) for unit in everything))
            units, at_once = self._pull_counted(iter(everything)), len(everything)
        try:
            await WorkerCrew(units, at_once, self._play_unit).work()
        finally:
            self._settle()
        if self.player.trouble is not None:
            raise self.player.trouble

    def stop(self) -> None:
        """Start nothing more; what is in flight is played to its end."""
        self.stopping = True
        self.player.stop()

    async def _play_unit(self, unit: Unit) -> None:
        rollouts = await self.player.play(unit)
        if rollouts:
            self._finish(rollouts)

    def _counted(self, plan: Plan, units: Iterator[Unit]) -> Iterator[Unit]:
        yield from units
        if plan.planned is None:
            self.emit(PlanCounted(plan.counted * plan.rollouts_per_task))

    def _pull(self, units: Iterator[Unit]) -> Iterator[Unit]:
        """Owed units, until there are no more or a stop is asked for. A broken source stops the run."""
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
        """Like _pull, where those that were played wait for all others: never for what is not started."""
        yield from self._pull(units)
        for unit in units:
            self.player.left_out(unit)

    def _finish(self, rollouts: Sequence[Rollout]) -> None:
        """Keep rollouts and then report them: at once, or, in a rush, with those of the next moment."""
        if not self._ended:
            loop = asyncio.get_running_loop()
            soon = max(0.0, self._settled_at + RUSH_SECONDS - loop.time())
            loop.call_later(soon, self._settle)
        self._ended += rollouts
        try:
            for rollout in rollouts:
                self.ended(rollout)
        except Exception as error:
            self.player.trouble = self.player.trouble or unsaved_error(rollouts, error)

    def _settle(self) -> None:
        if not self._ended:
            return
        self._settled_at = asyncio.get_running_loop().time()
        rollouts, self._ended = tuple(self._ended), []
        try:
            self.keep(rollouts)
        except ProctorError as error:
            self.player.trouble = self.player.trouble or error
        except Exception as error:
            self.player.trouble = self.player.trouble or unsaved_error(rollouts, error)
        self.emit(RolloutsFinished(rollouts))


def unsaved_error(rollouts: Sequence[Rollout], error: Exception) -> StoreError:
    trouble = StoreError(
        f"{len(rollouts)} finished rollouts could not be kept: {type(error).__name__}: {error}"
    )
    trouble.__cause__ = error
    return trouble


class WorkerCrew:
    """Workers that share one source of work; each one who finds work calls up the next."""

    def __init__(self, units: Iterator[Unit], most: int, play: Callable[[Unit], Awaitable[None]]) -> None:
        self.units = units
        self.most = most
        self.play = play
        self.size = 0

    async def work(self) -> None:
        async with asyncio.TaskGroup() as group:
            self.group = group
            self.call_up()

    def call_up(self) -> None:
        if self.size < self.most:
            self.size += 1
            self.group.create_task(self.worker())

    async def worker(self) -> None:
        for unit in self.units:
            self.call_up()
            await self.play(unit)
