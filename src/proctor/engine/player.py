"""Play owed rollouts on one environment: with their retries, their scoring, and as many at once as it bears.

Knows nothing of where the work comes from or what becomes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import msgspec

from proctor.contracts import EnvironmentProtocol, GroupEnvironment, Traits
from proctor.engine.attempt import RolloutAttempt, build_rollout
from proctor.engine.limits import CombinedLimiter, Limiter, ResizableSemaphore, backoff_seconds
from proctor.engine.plan import Slot, Unit
from proctor.engine.scoring import (
    DeferredScorer,
    GroupScorer,
    ImmediateScorer,
    PlayedBarrier,
    Scorer,
    ScoringPolicy,
)
from proctor.engine.seat import Emit, RecordedSeat, RunContext
from proctor.errors import AuthError, ConfigError, ModelError, ProctorError, is_environment_lost
from proctor.events import RolloutRetried, RolloutStarted
from proctor.rollout import Attempt, Rollout
from proctor.support.deadlines import Deadline, Deadlines


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
    start_seconds: float | None = None
    """What opening the environment for a rollout may take."""
    rollout_seconds: float | None = None
    """What playing it may take from then on."""
    scoring_seconds: float | None = None
    first_wait_seconds: float = 1.0
    """Wait before the first retry; doubles with each."""
    columns: tuple[str, ...] = ()
    """State to keep with each rollout."""

    def bounded_by(self, capacity: int | None) -> Rules:
        """The same, with no more in flight than an environment can hold open."""
        if capacity is None or capacity >= self.at_once:
            return self
        return msgspec.structs.replace(self, at_once=capacity)


def check_capacity(traits: Traits, rules: Rules, rollouts_per_task: int) -> None:
    """Refuse what an environment could never hold open."""
    if traits.capacity is None:
        return
    if not rules.interleave:
        raise ConfigError(
            f"Scoring after generation keeps every session open, and this environment holds at most "
            f"{traits.capacity}; leave out --no-interleave-scoring."
        )
    if rules.grouped and rollouts_per_task > traits.capacity:
        raise ConfigError(
            f"A group of {rollouts_per_task} rollouts is scored together, and this environment holds at most "
            f"{traits.capacity} sessions; ask for fewer rollouts per task."
        )


class Player:
    """Plays units on one environment."""

    def __init__(
        self,
        environment: EnvironmentProtocol,
        table: RunContext,
        rules: Rules,
        emit: Emit,
        budget: ResizableSemaphore | None = None,
    ) -> None:
        capacity = environment.traits.capacity
        self.environment = environment
        self.table = table
        self.rules = rules.bounded_by(capacity)
        self.emit = emit
        self.stopping = False
        self.trouble: ProctorError | None = None
        """Why nothing more can be played, if that is so."""
        self.capacity = None if capacity is None else ResizableSemaphore(capacity)
        self.deadlines = Deadlines()
        self.desk = ScoringPolicy(
            self.deadlines,
            None if rules.scoring_at_once is None else ResizableSemaphore(rules.scoring_at_once),
            rules.scoring_seconds,
            rules.max_retries if environment.traits.rescores else 0,
            rules.first_wait_seconds,
        )
        self.place = self._place(budget)
        self._all_played: PlayedBarrier | None = None

    def check(self, rollouts_per_task: int) -> None:
        """Refuse what could never be played."""
        check_capacity(self.environment.traits, self.rules, rollouts_per_task)

    def score_after(self, count: int) -> None:
        """Score nothing before so many rollouts were played, or left out."""
        self._all_played = PlayedBarrier(count)

    def left_out(self, unit: Unit) -> None:
        if self._all_played is not None:
            for _ in unit:
                self._all_played.count_down()

    def stop(self) -> None:
        """Start nothing more; what is in flight is played to its end."""
        self.stopping = True

    async def play(self, unit: Unit) -> Sequence[Rollout]:
        """All rollouts of a unit; none if it was not to be started, or nobody can be asked at all."""
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
        return complete if len(complete) == len(unit) else ()

    def _place(self, budget: ResizableSemaphore | None) -> Limiter | None:
        """Where workers alone do not bound how many are played at once, a gate does."""
        rules = self.rules
        limit = min(rules.at_once, rules.generation_at_once or rules.at_once)
        workers_suffice = rules.interleave and not rules.grouped and limit == rules.at_once
        gates = [] if workers_suffice else [ResizableSemaphore(limit)]
        if budget is not None:
            gates.append(budget)
        return CombinedLimiter(*gates) if len(gates) > 1 else next(iter(gates), None)

    async def _play_together(self, unit: Unit) -> list[Rollout | None]:
        scorer = self._scorer(len(unit))
        started: list[Slot] = []
        async with asyncio.TaskGroup() as group:
            plays = [group.create_task(self._play(slot, scorer, started)) for slot in unit]
        return [play.result() for play in plays]

    def _scorer(self, size: int) -> Scorer:
        scorer: Scorer = ImmediateScorer(self.desk)
        if self.rules.grouped:
            scorer = GroupScorer(self.desk, cast(GroupEnvironment, self.environment), size)
        return scorer if self._all_played is None else DeferredScorer(scorer, self._all_played)

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
            clock = self.deadlines.within(self.rules.start_seconds)
            attempt = self._begin(slot, clock)
            await attempt.run(self.environment, scorer, clock, self.rules.rollout_seconds, self.place)
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
        return build_rollout(attempt, tuple(earlier), scorer.group_size, columns)

    def _begin(self, slot: Slot, clock: Deadline) -> RolloutAttempt:
        key = slot.key
        self.emit(RolloutStarted(key))
        return RolloutAttempt(slot, RecordedSeat(self.table, key, facts_of(slot), clock))

    def _is_worth_a_retry(self, attempt: RolloutAttempt, tries: int) -> bool:
        return (
            tries < self.rules.max_retries
            and not (self.stopping or self.trouble)
            and (attempt.phase in ("setup", "generation") or is_environment_lost(attempt.error))
            and attempt.failure is not None
            and attempt.failure.transient
        )

    def _note_retry(self, slot: Slot, attempt: RolloutAttempt) -> Attempt:
        noted = attempt.as_attempt()
        self.emit(RolloutRetried(slot.key, noted.failure))
        return noted

    def _is_hopeless(self, attempt: RolloutAttempt) -> bool:
        """Nothing was ever answered, and the provider says that nothing will be."""
        error = attempt.error
        if self.table.answered or attempt.phase == "scoring" or not isinstance(error, ModelError):
            return False
        if not (isinstance(error, AuthError) and error.status != 403) and error.status != 404:
            return False  # 403 may be about this one request
        self.trouble = self.trouble or ConfigError(str(error))
        return True


def facts_of(slot: Slot) -> dict[str, object]:
    """What a header from state can always ask for."""
    task, number = slot.key
    return {"example_id": task, "rollout": number, "trajectory_id": f"{task}-{number}"}
