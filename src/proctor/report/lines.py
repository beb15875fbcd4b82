"""One finished rollout as a report reads it: live, or back from a file."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.errors import Failure
from proctor.rollout import LARGEST_SCORE, LEGAL_SCORE, Attempt, Outcome, Rollout, RolloutKey, is_settled
from proctor.task import TaskId
from proctor.trace import Usage


class ErrorLine(msgspec.Struct, frozen=True):
    """The part of a stored error that a report reads."""

    error: str
    message: str = ""
    phase: str = ""
    location: str = ""


class TimingLine(msgspec.Struct, frozen=True, gc=False):
    total: float = 0.0
    start_time: float = 0.0


class AttemptLine(msgspec.Struct, frozen=True):
    """A try before the one that counts."""

    outcome: Outcome
    error: ErrorLine
    start: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()


class ReusedReplies(msgspec.Struct, frozen=True):
    """Replies of one model that were not asked for, and so not paid for: of a cache, or of an earlier run."""

    calls: int = 0
    usage: Usage = Usage()

    def __add__(self, other: ReusedReplies) -> ReusedReplies:
        return ReusedReplies(self.calls + other.calls, self.usage + other.usage)


class RolloutLine(msgspec.Struct, frozen=True):
    """The part of a stored rollout that a report reads; field names are those of the file."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    task_hash: str = ""
    reward: float | None = None
    metrics: dict[str, float] = {}
    stop_condition: str | None = None
    token_usage: Usage = Usage()
    other_usage: dict[str, Usage] = {}
    timing: TimingLine = TimingLine()
    error: ErrorLine | None = None
    cleanup_error: ErrorLine | None = None
    attempts: int = 1
    earlier_attempts: tuple[AttemptLine, ...] = ()
    env: Any = ""
    """Which of several environments it belongs to; files of others may hold anything there."""
    reused_replies: dict[str, ReusedReplies] = {}
    """By model."""

    @property
    def key(self) -> RolloutKey:
        return (self.example_id, self.rollout)

    @property
    def is_settled(self) -> bool:
        return is_settled(self.outcome, self.reward)

    @property
    def illegal_score(self) -> str:
        """Which of its numbers cannot be a score, as a sentence; empty if all can."""
        reward = self.reward
        if reward is not None and not -LARGEST_SCORE <= reward <= LARGEST_SCORE:
            return f"the reward is {reward}; a score {LEGAL_SCORE}"
        for name, value in self.metrics.items():
            if not -LARGEST_SCORE <= value <= LARGEST_SCORE:
                return f"metric {name!r} is {value}; a score {LEGAL_SCORE}"
        return ""


def rollout_line(rollout: Rollout) -> RolloutLine:
    score, failure, cleanup = rollout.score, rollout.failure, rollout.cleanup_failure
    return RolloutLine(
        rollout.task.id,
        rollout.number,
        rollout.outcome,
        rollout.task.hash,
        None if score is None else score.reward,
        {} if score is None else score.metrics,
        rollout.trace.stop_condition,
        rollout.usage,
        helper_usage(rollout),
        TimingLine(rollout.timing.total),
        None if failure is None else error_line(failure),
        None if cleanup is None else error_line(cleanup),
        1 + len(rollout.earlier),
        tuple(map(attempt_line, rollout.earlier)),
        rollout.task.member,
        count_reused(rollout),
    )


def error_line(failure: Failure) -> ErrorLine:
    return ErrorLine(failure.kind, failure.message, failure.phase, failure.location)


def attempt_line(attempt: Attempt) -> AttemptLine:
    error = error_line(attempt.failure)
    return AttemptLine(attempt.outcome, error, attempt.started_at, attempt.seconds, attempt.usage)


def helper_usage(rollout: Rollout) -> dict[str, Usage]:
    """Tokens of judges and other helpers, by model."""
    usage: dict[str, Usage] = {}
    for call in rollout.trace.calls:
        if call.reply is not None and call.role != "agent":
            usage[call.model] = usage.get(call.model, Usage()) + call.reply.usage
    return usage


def count_reused(rollout: Rollout) -> dict[str, ReusedReplies]:
    """Replies that cost nothing this time, by model."""
    reused: dict[str, ReusedReplies] = {}
    for call in rollout.trace.calls:
        if call.reused and call.reply is not None:
            known = reused.get(call.model, ReusedReplies())
            reused[call.model] = known + ReusedReplies(1, call.reply.usage)
    return reused


def drop_score(line: RolloutLine, problem: str) -> RolloutLine:
    """Normalize a line from a file that Proctor may not have written."""
    error = ErrorLine("GraderError", problem, "scoring")
    return msgspec.structs.replace(line, outcome="grader_error", reward=None, metrics={}, error=error)
