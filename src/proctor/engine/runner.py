"""Run a plan: a bounded set of workers pulls owed rollouts and plays them.

Workers are called up one by one as work is found, so neither a million owed rollouts nor a limit of
thousands costs anything before it is used. One rollout's failure never touches its siblings.
Knows nothing of configuration, files or terminals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import cast

import msgspec

from proctor.contracts import Environment, GroupEnvironment
from proctor.deadlines import Deadlines
from proctor.engine.attempt import Try, finished
from proctor.engine.limits import Gate, backoff_seconds
from proctor.engine.plan import Plan, Slot, Unit
from proctor.engine.scoring import Afterwards, AllPlayed, AtOnce, ScoreDesk, Scorer, Together
from proctor.engine.seat import Emit, RecordedSeat, Table
from proctor.errors import AuthError, ConfigError, EnvError, ModelError, ProctorError, StoreError
from proctor.events import PlanCounted, RolloutRetried, RolloutsFinished, RolloutStarted
from proctor.rollout import Attempt, Rollout

RUSH_SECONDS = 0.01
"""One write every so often is enough: a write for each rollout costs more than its scoring."""

Keep = Callable[[Sequence[Rollout]], None]
"""Makes finished rollouts durable. Raising stops the run: what cannot be kept must not be paid for."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan is to be run."""

    at_once: int = 32
    """Rollouts in flight."""
    generation_at_once: int | None = None
    """Of those, how many may be played at once."""
    scoring_at_once: int | None = None
    """Of those, how many may be scored at once."""
    interleave: bool = True
    """Score while others are still played."""
    grouped: bool = False
    """Score a task's rollouts together."""
    max_retries: int = 0
    rollout_seconds: float | None = None
    scoring_seconds: float | None = None
    first_wait_seconds: float = 1.0
    """Wait before the first retry; doubles with each."""
    columns: tuple[str, ...] = ()
    """State to keep with each rollout."""


class Runner:
    """One run of one plan."""

    def __init__(
        self,
        environment: Environment,
        table: Table,
        rules: Rules,
        emit: Emit,
        keep: Keep,
        ended: Callable[[Rollout], None] = lambda _: None,
    ) -> None:
        self.environment = environment
        self.table = table
        self.rules = rules
        self.emit = emit
        self.keep = keep
        self.ended = ended
        """Told of each rollout the moment it ends, before it is kept and reported."""
        self.stopping = False
        self.trouble: ProctorError | None = None
        """Why the run cannot go on, if it cannot."""
        capacity = environment.traits.capacity
        self.capacity = None if capacity is None else Gate(capacity)
        self.at_once = rules.at_once if capacity is None else min(rules.at_once, capacity)
        self.deadlines = Deadlines()
        self.desk = ScoreDesk(
            self.deadlines,
            None if rules.scoring_at_once is None else Gate(rules.scoring_at_once),
            rules.scoring_seconds,
            rules.max_retries if environment.traits.rescores else 0,
            rules.first_wait_seconds,
        )
        self.place = self._place()
        self._all_played: AllPlayed | None = None
        self._ended: list[Rollout] = []
        self._settled_at = 0.0

    async def run(self, plan: Plan) -> None:
        """Play everything that is owed; return when it is done, or when a stop was asked for."""
        self._check_capacity(plan)
        owed = plan.groups() if self.rules.grouped else plan.slots()
        units = self._pull(self._counted(plan, owed))
        at_once = self.at_once
        if not self.rules.interleave:
            everything = list(units)
            self._all_played = AllPlayed(sum(len(unit) for unit in everything))
            units, at_once = self._pull_counted(iter(everything), self._all_played), len(everything)
        try:
            await Crew(units, at_once, self._play_unit).work()
        finally:
            self._settle()
        if self.trouble is not None:
            raise self.trouble

    def stop(self) -> None:
        """Start nothing more; what is in flight is played to its end."""
        self.stopping = True

    def _place(self) -> Gate | None:
        """Where workers alone do not bound how many are played at once, a gate does."""
        limit = min(self.at_once, self.rules.generation_at_once or self.at_once)
        workers_suffice = self.rules.interleave and not self.rules.grouped and limit == self.at_once
        return None if workers_suffice else Gate(limit)

    def _check_capacity(self, plan: Plan) -> None:
        if self.capacity is None:
            return
        together = plan.rollouts_per_task if self.rules.grouped else 1
        if not self.rules.interleave:
            raise ConfigError(
                f"Scoring after generation keeps every session open, and this environment holds at most "
                f"{self.capacity.limit}; leave out --no-interleave-scoring."
            )
        if together > self.capacity.limit:
            raise ConfigError(
                f"A group of {together} rollouts is scored together, and this environment holds at most "
                f"{self.capacity.limit} sessions; ask for fewer rollouts per task."
            )

    def _counted(self, plan: Plan, units: Iterator[Unit]) -> Iterator[Unit]:
        yield from units
        if plan.planned is None:
            self.emit(PlanCounted(plan.counted * plan.rollouts_per_task))

    def _pull(self, units: Iterator[Unit]) -> Iterator[Unit]:
        """Owed units, until there are no more or a stop is asked for. A broken source stops the run."""
        while not (self.stopping or self.trouble):
            try:
                unit = next(units, None)
            except ProctorError as error:
                self.trouble = error
                return
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                self.trouble = EnvError(f"reading the tasks failed: {type(error).__name__}: {error}")
                self.trouble.__cause__ = error
                return
            if unit is None:
                return
            yield unit

    def _pull_counted(self, units: Iterator[Unit], all_played: AllPlayed) -> Iterator[Unit]:
        """Like _pull, where those that were played wait for all others: never for what is not started."""
        yield from self._pull(units)
        for unit in units:
            for _ in unit:
                all_played.one_more()

    async def _play_unit(self, unit: Unit) -> None:
        if self.capacity is not None:
            await self.capacity.enter(len(unit))
        try:
            if len(unit) == 1:
                rollouts = [await self._play(unit[0], self._scorer(1), [])]
            else:
                rollouts = await self._play_together(unit)
        finally:
            if self.capacity is not None:
                self.capacity.leave(len(unit))
        complete = [rollout for rollout in rollouts if rollout is not None]
        if len(complete) == len(unit):
            self._finish(complete)

    async def _play_together(self, unit: Unit) -> list[Rollout | None]:
        scorer = self._scorer(len(unit))
        started: list[Slot] = []
        async with asyncio.TaskGroup() as group:
            plays = [group.create_task(self._play(slot, scorer, started)) for slot in unit]
        return [play.result() for play in plays]

    def _scorer(self, size: int) -> Scorer:
        scorer: Scorer = AtOnce(self.desk)
        if self.rules.grouped:
            scorer = Together(self.desk, cast(GroupEnvironment, self.environment), size)
        return scorer if self._all_played is None else Afterwards(scorer, self._all_played)

    async def _play(self, slot: Slot, scorer: Scorer, started: list[Slot]) -> Rollout | None:
        """One rollout with its retries; None if it was not to be started, or nobody can be asked at all.

        A group of which anything was started is played whole even after a stop: in part it is worth nothing.
        """
        earlier = list(slot.earlier)
        tries = 0
        while True:
            if self.place is not None:
                await self.place.enter()
                if self.trouble or (self.stopping and not started):
                    self.place.leave()
                    scorer.absent()
                    return None
            started.append(slot)
            attempt = self._begin(slot)
            clock = self.deadlines.within(self.rules.rollout_seconds)
            await attempt.run(self.environment, scorer, clock, self.place)
            earlier += attempt.earlier
            if self._is_hopeless(attempt):
                scorer.absent()
                return None
            if not self._is_worth_a_retry(attempt, tries):
                break
            earlier.append(self._note_retry(slot, attempt))
            await asyncio.sleep(backoff_seconds(tries, self.rules.first_wait_seconds))
            tries += 1
        if attempt.error is not None and attempt.phase != "scoring":
            scorer.absent()
        facts = attempt.seat.facts
        columns = {name: facts[name] for name in self.rules.columns if name in facts}
        return finished(attempt, tuple(earlier), scorer.group_size, columns)

    def _begin(self, slot: Slot) -> Try:
        key = slot.key
        self.emit(RolloutStarted(key))
        return Try(slot, RecordedSeat(self.table, key, facts_of(slot)))

    def _is_worth_a_retry(self, attempt: Try, tries: int) -> bool:
        return (
            tries < self.rules.max_retries
            and not (self.stopping or self.trouble)
            and attempt.phase in ("setup", "generation")
            and attempt.failure is not None
            and attempt.failure.transient
        )

    def _note_retry(self, slot: Slot, attempt: Try) -> Attempt:
        noted = attempt.as_attempt()
        self.emit(RolloutRetried(slot.key, noted.failure))
        return noted

    def _is_hopeless(self, attempt: Try) -> bool:
        """Nothing was ever answered, and the provider says that nothing will be."""
        error = attempt.error
        if self.table.answered or attempt.phase == "scoring" or not isinstance(error, ModelError):
            return False
        if not (isinstance(error, AuthError) and error.status != 403) and error.status != 404:
            return False  # 403 may be about this one request
        self.trouble = self.trouble or ConfigError(str(error))
        return True

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
            self.trouble = self.trouble or unkept(rollouts, error)

    def _settle(self) -> None:
        if not self._ended:
            return
        self._settled_at = asyncio.get_running_loop().time()
        rollouts, self._ended = tuple(self._ended), []
        try:
            self.keep(rollouts)
        except ProctorError as error:
            self.trouble = self.trouble or error
        except Exception as error:
            self.trouble = self.trouble or unkept(rollouts, error)
        self.emit(RolloutsFinished(rollouts))


def facts_of(slot: Slot) -> dict[str, object]:
    """What a header from state can always ask for."""
    task, number = slot.key
    return {"example_id": task, "rollout": number, "trajectory_id": f"{task}-{number}"}


def unkept(rollouts: Sequence[Rollout], error: Exception) -> StoreError:
    trouble = StoreError(
        f"{len(rollouts)} finished rollouts could not be kept: {type(error).__name__}: {error}"
    )
    trouble.__cause__ = error
    return trouble


class Crew:
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
