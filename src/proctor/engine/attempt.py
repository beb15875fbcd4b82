"""Play one owed rollout to its one outcome.

A failure becomes data here and nowhere else. Whatever environment or grader code raises ends this rollout
and nothing else; what was recorded before is kept. Only a real cancellation of the run passes.
Knows nothing of other rollouts.
"""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from proctor.contracts import EnvironmentProtocol, Session, Traits
from proctor.engine.exception_outcome import find_responsible_error, is_real_cancellation, outcome_of
from proctor.engine.limits import Limiter
from proctor.engine.plan import Slot
from proctor.engine.scoring import Scorer, late_scoring
from proctor.engine.seat import RecordedSeat
from proctor.errors import (
    ContextTooLongError,
    DeadlineError,
    EnvError,
    Failure,
    ModelTimeoutError,
    RolloutError,
)
from proctor.optional_contracts import RestoresSessions
from proctor.rollout import Attempt, Outcome, Rollout, Score, Span, Timing
from proctor.support.deadlines import Deadline
from proctor.trace import Usage

CLEANUP_SECONDS = 60.0


class RolloutAttempt:
    """One attempt at a slot: its phase, its times and its result."""

    __slots__ = (
        "cleanup_failure",
        "earlier",
        "ended_by",
        "error",
        "late",
        "limit",
        "model_failure",
        "phase",
        "played_late",
        "score",
        "seat",
        "slot",
        "times",
    )

    def __init__(self, slot: Slot, seat: RecordedSeat) -> None:
        self.slot = slot
        self.seat = seat
        self.phase = "setup"
        self.times = [time.time()]
        self.score: Score | None = None
        self.error: BaseException | None = None
        self.ended_by: BaseException | None = None
        """What playing or scoring raised, before the session was closed."""
        self.late = 0
        """How often the clock had run out by then in the phase that ended."""
        self.played_late = 0
        """How often it had run out before scoring began."""
        self.limit: float | None = None
        """The seconds it counted."""
        self.model_failure: ModelTimeoutError | None = None
        """Why it had run out, if a model that did not answer is to blame."""
        self.cleanup_failure: Failure | None = None
        self.earlier: list[Attempt] = []

    async def run(
        self,
        environment: EnvironmentProtocol,
        scorer: Scorer,
        clock: Deadline,
        play_seconds: float | None,
        limiter: Limiter | None,
    ) -> None:
        """Open, play, score, close. Sets `score` or `error`; raises only if the run is cancelled.

        `clock` bounds the opening, and is moved as each later phase begins. The caller has entered `limiter`;
        it is left when the play is over, so that a rollout which waits for its siblings does not keep others
        from playing.
        """
        try:
            with clock:
                async with self.open(environment) as session:
                    self.enter("generation")
                    clock.move(play_seconds)
                    try:
                        try:
                            await session.play(self.seat)
                        except ContextTooLongError as error:
                            self.cut_short(error)
                        if limiter is not None:
                            limiter.leave()
                            limiter = None
                        self.enter("scoring")
                        self.played_late = clock.expired
                        self.score = await scorer.score(session, self.seat, clock, self.note)
                    except BaseException as error:
                        self.ended_by = error
                        self.note_lateness(clock)
                        raise
                    finally:
                        clock.move(CLEANUP_SECONDS)
                    self.enter("cleanup")
            if self.ended_by is not None:  # and the session swallowed it while closing
                raise self.ended_by
        except BaseException as error:
            if is_real_cancellation(error):
                raise
            self.fail(error, clock, environment.traits)
        finally:
            if limiter is not None:
                limiter.leave()

    def open(self, environment: EnvironmentProtocol) -> AbstractAsyncContextManager[Session]:
        """A session to play, or one that takes over how the rollout was played before."""
        read = self.slot.recorded
        if read is None:
            return environment.open(self.slot.task)
        recorded = read()
        self.seat.take_over(recorded)
        return cast(RestoresSessions, environment).restore(self.slot.task, recorded)

    def cut_short(self, error: ContextTooLongError) -> None:
        """The context is full: score the conversation so far, unless the full context is a helper's."""
        trace = self.seat.trace
        if trace.calls and trace.calls[-1].role != "agent":
            raise error
        trace.truncated = True
        trace.stop_condition = "prompt_too_long"

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.times.append(time.time())

    def fail(self, error: BaseException, clock: Deadline, traits: Traits) -> None:
        """Keep what ended the rollout, and beside it what went wrong while the session was closed."""
        if self.phase == "cleanup":
            self.fail_to_close(error, clock)
            return
        if self.ended_by is None:
            self.note_lateness(clock)
        elif error is not self.ended_by and error.__cause__ is not self.ended_by:
            self.fail_to_close(error, clock)
            error = self.ended_by
        if self.late:
            self.error = self.late_error(traits)
            self.error.__cause__ = self.error.__cause__ or error
        else:
            self.error = find_responsible_error(error, self.phase)

    def note_lateness(self, clock: Deadline) -> None:
        self.late, self.limit = clock.expired - self.played_late, clock.seconds
        if self.late and self.phase == "generation":
            self.model_failure = self.seat.blame_model()

    def late_error(self, traits: Traits) -> RolloutError:
        if self.phase == "scoring":
            return late_scoring(self.limit, traits.scoring_limit)
        if self.phase == "setup":
            return DeadlineError(
                f"starting took more than {self.limit:g} s; give it more with --start-timeout"
            )
        if self.seat.trace.timed_out:
            return DeadlineError(
                f"the environment took more than {self.limit:g} s to continue after the agent's time was up"
            )
        if self.model_failure is not None:
            return self.model_failure
        return DeadlineError(
            f"playing took more than {self.limit:g} s; give it more with {traits.play_limit}"
        )

    def fail_to_close(self, error: BaseException, clock: Deadline) -> None:
        if clock.expired > self.late + self.played_late:
            late = DeadlineError(f"closing the session took more than {CLEANUP_SECONDS:g} s")
            late.__cause__ = error
            error = late
        self.cleanup_failure = Failure.of(error, "cleanup")

    @property
    def failure(self) -> Failure | None:
        return None if self.error is None else Failure.of(self.error, self.phase)

    def note(self, error: RolloutError) -> None:
        """Scoring failed and is tried again; the tokens of playing still count for this attempt."""
        self.earlier.append(self.failed_attempt(error, Usage()))

    def as_attempt(self) -> Attempt:
        """This attempt as a failed one, which is made again from the start."""
        return self.failed_attempt(self.error or EnvError("unknown"), self.seat.trace.usage())

    def failed_attempt(self, error: BaseException, usage: Usage) -> Attempt:
        failure = Failure.of(error, self.phase)
        seconds = time.time() - self.times[0]
        return Attempt(outcome_of(error, self.phase), failure, self.times[0], seconds, usage)

    def timing(self) -> Timing:
        end = time.time()
        started, opened, played, scored = (*self.times, end, end, end)[:4]
        return Timing(Span(started, opened), Span(opened, played), Span(played, scored), end)


def build_rollout(
    attempt: RolloutAttempt, earlier: tuple[Attempt, ...], group_size: int, columns: dict[str, Any]
) -> Rollout:
    """The rollout that an attempt ended in."""
    error, trace = attempt.error, attempt.seat.trace
    outcome: Outcome = "timeout" if trace.timed_out else "truncated" if trace.truncated else "scored"
    if error is not None:
        outcome = outcome_of(error, attempt.phase)
    return Rollout(
        task=attempt.slot.task,
        number=attempt.slot.number,
        outcome=outcome,
        trace=trace,
        timing=attempt.timing(),
        usage=trace.usage(),
        score=attempt.score if error is None else None,
        failure=attempt.failure,
        earlier=earlier,
        cleanup_failure=attempt.cleanup_failure,
        group_size=group_size,
        columns=columns,
    )
