"""Play owed rollouts on one environment: with their retries and their scoring, within its capacity.

Knows nothing of where the work comes from or what becomes of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import msgspec

from proctor.contracts import EnvironmentProtocol, GroupEnvironment, Traits
from proctor.engine.attempt import RolloutAttempt, build_rollout
from proctor.engine.exception_outcome import outcome_of
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
from proctor.errors import AuthError, ConfigError, ModelError, ProctorError, did_you_mean, is_environment_lost
from proctor.events import RolloutRetried, RolloutStarted
from proctor.rollout import Attempt, Rollout
from proctor.support.deadlines import Deadlines
from proctor.support.logs import FILE_ONLY, log


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan is to be run."""

    at_once: int = 32
    """Rollouts in flight."""
    generation_at_once: int | None = None
    """Of those, how many may be played at once."""
    scoring_at_once: int | None = None
    """How many may be scored at once; None for as many as may be in flight."""
    interleave: bool = True
    """Score while others are still played."""
    grouped: bool = False
    """Score a task's rollouts together."""
    max_retries: int = 0
    start_seconds: float | None = None
    """How long opening the environment for a rollout may take."""
    rollout_seconds: float | None = None
    """How long playing it may take after that."""
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
        context: RunContext,
        rules: Rules,
        emit: Emit,
        budget: ResizableSemaphore | None = None,
    ) -> None:
        capacity = environment.traits.capacity
        self.environment = environment
        self.context = context
        self.rules = rules.bounded_by(capacity)
        self.emit = emit
        self.stopping = False
        self.trouble: ProctorError | None = None
        """Why nothing more can be played, if that is so."""
        self.capacity = None if capacity is None else ResizableSemaphore(capacity)
        self.deadlines = Deadlines()
        self.scoring = ScoringPolicy(
            self.deadlines,
            build_scoring_semaphore(self.rules),
            rules.scoring_seconds,
            rules.max_retries if environment.traits.rescores else 0,
            rules.first_wait_seconds,
            environment.traits.scoring_limit,
        )
        self.limiter = self._build_limiter(budget)
        self._immediate = ImmediateScorer(self.scoring)
        self._all_played: PlayedBarrier | None = None
        self._state_checked = False
        """The first scored rollout shows which state there is to save and to send."""

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

    def play(self, unit: Unit) -> Awaitable[Sequence[Rollout]]:
        """All rollouts of a unit; none if the run is stopping or no model call can succeed."""
        if len(unit) == 1 and self.capacity is None:
            return self._play(unit[0], self._scorer(1), [])
        return self._play_together(unit)

    def _build_limiter(self, budget: ResizableSemaphore | None) -> Limiter | None:
        """Bounds how many rollouts are played at once, where the runner's own tasks do not."""
        rules = self.rules
        limit = min(rules.at_once, rules.generation_at_once or rules.at_once)
        tasks_suffice = rules.interleave and not rules.grouped and limit == rules.at_once
        semaphores = [] if tasks_suffice else [ResizableSemaphore(limit)]
        if budget is not None:
            semaphores.append(budget)
        return CombinedLimiter(*semaphores) if len(semaphores) > 1 else next(iter(semaphores), None)

    async def _play_together(self, unit: Unit) -> Sequence[Rollout]:
        if self.capacity is not None:
            await self.capacity.enter(len(unit))
        try:
            scorer = self._scorer(len(unit))
            started: list[Slot] = []
            async with asyncio.TaskGroup() as group:
                plays = [group.create_task(self._play(slot, scorer, started)) for slot in unit]
        finally:
            if self.capacity is not None:
                self.capacity.leave(len(unit))
        rollouts = [rollout for play in plays for rollout in play.result()]
        return rollouts if len(rollouts) == len(unit) else ()

    def _scorer(self, size: int) -> Scorer:
        scorer: Scorer = self._immediate
        if self.rules.grouped:
            scorer = GroupScorer(self.scoring, cast(GroupEnvironment, self.environment), size)
        return scorer if self._all_played is None else DeferredScorer(scorer, self._all_played)

    async def _play(self, slot: Slot, scorer: Scorer, started: list[Slot]) -> Sequence[Rollout]:
        """One rollout with its retries; none if the run is stopping or no model call can succeed.

        A group of which anything was started is played whole even after a stop: in part it is worth nothing.
        """
        rules, limiter, key = self.rules, self.limiter, slot.key
        earlier = slot.earlier
        tries = 0
        while True:
            if limiter is not None:
                await limiter.enter()
                if self.trouble or (self.stopping and not started):
                    limiter.leave()
                    scorer.absent()
                    return ()
            started.append(slot)
            self.emit(RolloutStarted(key))
            clock = self.deadlines.within(rules.start_seconds)
            attempt = RolloutAttempt(slot, RecordedSeat(self.context, key, facts_of(slot), clock))
            await attempt.run(self.environment, scorer, clock, rules.rollout_seconds, limiter)
            earlier = (*earlier, *attempt.earlier)
            if attempt.error is None:
                break
            if self._is_hopeless(attempt):
                scorer.absent()
                return ()
            is_last = not self._is_worth_a_retry(attempt, tries)
            log_failure(attempt, is_last=is_last)
            if is_last:
                if attempt.phase != "scoring":
                    scorer.absent()
                break
            earlier = (*earlier, self._note_retry(slot, attempt))
            await asyncio.sleep(backoff_seconds(tries, rules.first_wait_seconds))
            tries += 1
        if attempt.error is None and not self._state_checked:
            self._state_checked = True
            self._warn_of_missing_state(attempt)
        columns = self._select_columns(attempt) if rules.columns else {}
        attempt.seat.facts = {}  # a state that refers to its seat would wait for the garbage collector
        return (build_rollout(attempt, earlier, scorer.group_size, columns),)

    def _warn_of_missing_state(self, attempt: RolloutAttempt) -> None:
        facts = attempt.seat.facts
        headers = attempt.seat.context.headers_from_state
        uses = [(name, "which -C asks to save") for name in self.rules.columns]
        uses += [(key, f"which the header {name} is to be read from") for name, key in headers.items()]
        for key, use in uses:
            if key not in facts:
                log.warning(
                    "The state of task %s has no %r, %s%s",
                    *(attempt.slot.task.id, key, use, did_you_mean(key, facts)),
                )

    def _select_columns(self, attempt: RolloutAttempt) -> dict[str, Any]:
        facts, wanted = attempt.seat.facts, self.rules.columns
        return {name: facts[name] for name in wanted if name in facts}

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
        if self.context.answered or attempt.phase == "scoring" or not isinstance(error, ModelError):
            return False
        if not (isinstance(error, AuthError) and error.status != 403) and error.status != 404:
            return False  # 403 may be about this one request
        self.trouble = self.trouble or ConfigError(str(error))
        return True


def build_scoring_semaphore(rules: Rules) -> ResizableSemaphore | None:
    """Bounds how many rollouts are scored at once, where the runner's own tasks do not: with `-N` and in
    groups, more of them are waiting to be scored than are in flight."""
    limit = min(rules.at_once, rules.scoring_at_once or rules.at_once)
    tasks_suffice = rules.interleave and not rules.grouped and limit == rules.at_once
    return None if tasks_suffice else ResizableSemaphore(limit)


def log_failure(attempt: RolloutAttempt, *, is_last: bool) -> None:
    """Write the error of a rollout to the run's log, with its traceback unless the model is to blame."""
    error = attempt.error
    assert error is not None
    task, number = attempt.slot.key
    outcome = outcome_of(error, attempt.phase)
    log.log(
        logging.INFO if outcome == "excluded" else logging.ERROR if is_last else logging.WARNING,
        "task %s, rollout %d: %s while in %s%s: %s: %s",
        *(task, number, outcome, attempt.phase, "" if is_last else ", played again"),
        *(type(error).__name__, error),
        exc_info=None if isinstance(error, ModelError) or outcome == "excluded" else error,
        extra=FILE_ONLY,
    )


def facts_of(slot: Slot) -> dict[str, object]:
    """Facts that a header from state can always use."""
    task, number = slot.key
    facts: dict[str, object] = {"example_id": task, "rollout": number, "trajectory_id": f"{task}-{number}"}
    return {**facts, "env": slot.task.member} if slot.task.member else facts
