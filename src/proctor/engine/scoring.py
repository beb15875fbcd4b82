"""When a played rollout is scored: at once, together with its group, or after all others were played.

A scorer is notified of every rollout of its unit, failed ones included, so that the others do not wait for
them. Knows nothing of what a score means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from proctor.contracts import GroupEnvironment, Seat, Session, Traits
from proctor.engine.limits import ResizableSemaphore, backoff_seconds
from proctor.errors import DeadlineError, GraderError, RolloutError, is_transient
from proctor.rollout import Score, validate_score
from proctor.support.deadlines import Deadline, Deadlines

T = TypeVar("T")

RecordFailure = Callable[[RolloutError], None]
"""Records a failed try that is made again."""


class Scorer(Protocol):
    """Scores the rollouts of one unit."""

    def score(self, session: Session, seat: Seat, clock: Deadline, note: RecordFailure) -> Awaitable[Score]:
        """Score one rollout. `clock` counts its play until the scorer moves it."""

    def absent(self) -> None:
        """A rollout of the unit failed before it could be scored."""

    @property
    def group_size(self) -> int: ...


class ScoringPolicy:
    """What all scorers of a run share: concurrency, time limit and retries."""

    def __init__(
        self,
        deadlines: Deadlines,
        semaphore: ResizableSemaphore | None = None,
        seconds: float | None = None,
        retries: int = 0,
        first_wait_seconds: float = 1.0,
        limit: str = Traits().scoring_limit,
    ) -> None:
        self.limit = limit
        """The setting that `seconds` come from."""
        self.deadlines = deadlines
        self.semaphore = semaphore
        self.seconds = seconds
        self.retries = retries
        self.first_wait_seconds = first_wait_seconds

    async def one(self, session: Session, seat: Seat, clock: Deadline, note: RecordFailure) -> Score:
        """Score one rollout. Where it is scored once and at once, the rollout's own clock counts."""
        if self.retries or self.semaphore is not None:
            clock.move(None)
            return validate_score(await self.patiently(lambda _: session.score(seat), note))
        clock.move(self.seconds)
        try:
            return validate_score(await session.score(seat))
        except TimeoutError as error:
            raise own_timeout(error) from error

    async def group(
        self, environment: GroupEnvironment, played: Sequence[tuple[Session, Seat]], note: RecordFailure
    ) -> Sequence[Score | RolloutError]:
        async def scored(last_try: bool) -> Sequence[Score | RolloutError]:
            scores = await environment.score_group(played)
            errors = [score for score in scores if isinstance(score, RolloutError) and is_transient(score)]
            if errors and not last_try:
                raise errors[0]
            return scores

        scores = await self.patiently(scored, note, len(played))
        if len(scores) != len(played):
            raise GraderError(f"scoring a group of {len(played)} returned {len(scores)} scores")
        return scores

    async def patiently(
        self, scoring: Callable[[bool], Awaitable[T]], note: RecordFailure, rollouts: int = 1
    ) -> T:
        """Score so many rollouts; where the failure is transient, score again without playing again.

        `scoring` is called with whether this is the last try.
        """
        tries = 0
        while True:
            try:
                if self.semaphore is None:
                    return await self.in_time(scoring, tries >= self.retries)
                async with self.semaphore.hold(rollouts):
                    return await self.in_time(scoring, tries >= self.retries)
            except RolloutError as error:
                if tries >= self.retries or not is_transient(error):
                    raise
                note(error)
            await asyncio.sleep(backoff_seconds(tries, self.first_wait_seconds))
            tries += 1

    async def in_time(self, scoring: Callable[[bool], Awaitable[T]], last_try: bool) -> T:
        clock = self.deadlines.within(self.seconds)
        try:
            with clock:
                return await scoring(last_try)
        except TimeoutError as error:
            raise (late_scoring(self.seconds, self.limit) if clock.expired else own_timeout(error)) from error


def own_timeout(error: TimeoutError) -> GraderError:
    """A TimeoutError that scoring raised by itself."""
    return GraderError(str(error) or "scoring raised TimeoutError")


def late_scoring(seconds: float | None, limit: str) -> DeadlineError:
    return DeadlineError(f"scoring took more than {seconds:g} s; give it more with {limit}")


class ImmediateScorer:
    """Each rollout is scored as soon as it was played."""

    group_size = 1

    def __init__(self, policy: ScoringPolicy) -> None:
        self.policy = policy

    def score(self, session: Session, seat: Seat, clock: Deadline, note: RecordFailure) -> Awaitable[Score]:
        return self.policy.one(session, seat, clock, note)

    def absent(self) -> None:
        pass


class GroupScorer:
    """A unit's rollouts are scored in one go when the last of them was played."""

    def __init__(self, policy: ScoringPolicy, environment: GroupEnvironment, expected: int) -> None:
        self.policy = policy
        self.environment = environment
        self.expected = expected
        self.played: list[tuple[Session, Seat]] = []
        self.notes: list[RecordFailure] = []
        self.results: Sequence[Score | RolloutError] = ()
        self.error: BaseException | None = None
        self._all_played = asyncio.Event()
        self._scored = asyncio.Event()

    @property
    def group_size(self) -> int:
        return len(self.played)

    async def score(
        self,
        session: Session,
        seat: Seat,
        clock: Deadline,
        note: RecordFailure,
    ) -> Score:
        clock.move(None)  # waiting for siblings is not this rollout's delay
        index = len(self.played)
        self.played.append((session, seat))
        self.notes.append(note)
        self._check()
        await self._all_played.wait()
        if index == 0:
            await self._score_group()
        await self._scored.wait()
        return self._result(index)

    def absent(self) -> None:
        self.expected -= 1
        self._check()

    def _check(self) -> None:
        if len(self.played) >= self.expected:
            self._all_played.set()

    async def _score_group(self) -> None:
        try:
            self.results = await self.policy.group(self.environment, self.played, self._note_all)
        except BaseException as error:
            self.error = error
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._scored.set()

    def _note_all(self, error: RolloutError) -> None:
        for note in self.notes:
            note(error)

    def _result(self, index: int) -> Score:
        if isinstance(self.error, DeadlineError):
            raise DeadlineError(str(self.error)) from self.error
        if self.error is not None:
            reason = str(self.error) or type(self.error).__name__
            raise GraderError(f"scoring the group failed: {reason}") from self.error
        result = self.results[index]
        if isinstance(result, RolloutError):
            raise result
        return validate_score(result)


class PlayedBarrier:
    """Opens when the given number of rollouts have been played or have failed."""

    def __init__(self, expected: int) -> None:
        self.missing = expected
        self._open = asyncio.Event()

    def count_down(self) -> None:
        self.missing -= 1
        if self.missing <= 0:
            self._open.set()

    async def wait(self) -> None:
        await self._open.wait()


class DeferredScorer:
    """No rollout of the run is scored before the last one was played."""

    def __init__(self, scorer: Scorer, all_played: PlayedBarrier) -> None:
        self.scorer = scorer
        self.all_played = all_played

    @property
    def group_size(self) -> int:
        return self.scorer.group_size

    async def score(self, session: Session, seat: Seat, clock: Deadline, note: RecordFailure) -> Score:
        clock.move(None)
        self.all_played.count_down()
        await self.all_played.wait()
        return await self.scorer.score(session, seat, clock, note)

    def absent(self) -> None:
        self.all_played.count_down()
        self.scorer.absent()
