"""Play one owed rollout to its one outcome.

The one place where a failure becomes data. Whatever environment or grader code raises ends this rollout
and nothing else; what was recorded before is kept. Only a real cancellation of the run flies past.
Knows nothing of other rollouts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, cast

from proctor.contracts import Environment, Seat
from proctor.engine.deadlines import Deadline
from proctor.engine.limits import Gate
from proctor.engine.plan import Slot
from proctor.engine.scoring import Scorer
from proctor.errors import ContextTooLongError, DeadlineError, EnvError, Failure, RolloutError, causes
from proctor.rollout import Attempt, Outcome, Rollout, Score, Span, Timing

CLEANUP_SECONDS = 60.0


class Try:
    """One try at a slot: its phase, its clock, and what came of it."""

    __slots__ = ("cleanup_failure", "earlier", "error", "phase", "score", "seat", "slot", "times")

    def __init__(self, slot: Slot, seat: Seat) -> None:
        self.slot = slot
        self.seat = seat
        self.phase = "setup"
        self.times = [time.time()]
        self.score: Score | None = None
        self.error: BaseException | None = None
        self.cleanup_failure: Failure | None = None
        self.earlier: list[Attempt] = []

    async def run(
        self, environment: Environment, scorer: Scorer, clock: Deadline, place: Gate | None
    ) -> None:
        """Open, play, score, close. Sets `score` or `error`; raises only if the run is cancelled.

        The caller has entered `place`; it is left when the play is over, so that a rollout which waits
        for its siblings does not keep others from playing.
        """
        try:
            async with clock, environment.open(self.slot.task) as session:
                self.enter("generation")
                try:
                    await session.play(self.seat)
                except ContextTooLongError:
                    if not self.is_about_the_conversation():
                        raise
                    self.seat.trace.truncated = True
                    self.seat.trace.stop_condition = "prompt_too_long"
                clock.move(None)  # waiting for siblings to be played is nobody's delay
                if place is not None:
                    place.leave()
                    place = None
                self.enter("scoring")
                self.score = await scorer.score(session, self.seat, self.note)
                self.enter("cleanup")
                clock.move(CLEANUP_SECONDS)
        except BaseException as error:
            if is_real_cancellation(error):
                raise
            self.fail(error, clock.seconds if clock.expired else None)
        finally:
            if place is not None:
                place.leave()

    def is_about_the_conversation(self) -> bool:
        """Whether it was the evaluated model that was asked last, and not a helper."""
        calls = self.seat.trace.calls
        return not calls or calls[-1].role == "agent"

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.times.append(time.time())

    def fail(self, error: BaseException, expired_after: float | None) -> None:
        if self.phase == "cleanup":
            self.cleanup_failure = Failure.of(error, "cleanup")
        elif expired_after is not None:
            self.error = DeadlineError(f"the rollout took more than {expired_after:g} s (in {self.phase})")
            self.error.__cause__ = error
        elif self.phase != "scoring":
            self.error = first_raised(error)
        else:
            self.error = error

    @property
    def failure(self) -> Failure | None:
        return None if self.error is None else Failure.of(self.error, self.phase)

    def note(self, error: RolloutError) -> None:
        """Scoring failed and is tried again."""
        self.earlier.append(self.as_attempt(error))

    def as_attempt(self, error: BaseException | None = None) -> Attempt:
        error = error or self.error or EnvError("unknown")
        failure = Failure.of(error, self.phase)
        return Attempt(outcome_of(error, self.phase), failure, self.times[0], time.time() - self.times[0])

    def timing(self) -> Timing:
        end = time.time()
        times = [*self.times, end, end, end][:4]
        return Timing(Span(times[0], times[1]), Span(times[1], times[2]), Span(times[2], times[3]), end)


def finished(
    attempt: Try, earlier: tuple[Attempt, ...], group_size: int, columns: Mapping[str, Any]
) -> Rollout:
    """The rollout that a try ended in."""
    error, trace = attempt.error, attempt.seat.trace
    outcome: Outcome = "truncated" if trace.truncated else "scored"
    if error is not None:
        outcome = outcome_of(error, attempt.phase)
    return Rollout(
        task=attempt.slot.task,
        number=attempt.slot.number,
        outcome=outcome,
        trace=trace,
        timing=attempt.timing(),
        score=attempt.score if error is None else None,
        failure=attempt.failure,
        earlier=earlier,
        cleanup_failure=attempt.cleanup_failure,
        group_size=group_size,
        columns=dict(columns),
    )


def outcome_of(error: BaseException, phase: str) -> Outcome:
    """Who failed. Whatever goes wrong while scoring, a judge's model included, is the grader's."""
    named = error if isinstance(error, RolloutError) else None
    if named is not None and named.outcome in ("timeout", "excluded"):
        return cast(Outcome, named.outcome)
    if phase == "scoring":
        return "grader_error"
    return cast(Outcome, named.outcome) if named is not None else "environment_error"


def is_real_cancellation(error: BaseException) -> bool:
    """Someone cancelled this task, rather than environment code raising CancelledError by itself."""
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def first_raised(error: BaseException) -> BaseException:
    """What ended the play, where closing the session then failed too and hid it."""
    if isinstance(error, asyncio.CancelledError):
        stray = EnvError("the environment raised CancelledError although nobody cancelled the rollout")
        stray.__cause__ = error
        return stray
    hidden = [link for link in causes(error) if isinstance(link, RolloutError)]
    return hidden[-1] if hidden and not isinstance(error, RolloutError) else error
