"""Rollout: one finished attempt at one task, with its one outcome.

Knows nothing of how it was played or where it is stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from proctor.errors import Failure, GraderError
from proctor.task import Task, TaskId
from proctor.trace import ModelCall, Trace, Usage

Outcome = Literal[
    "scored",
    "truncated",
    "excluded",
    "agent_error",
    "model_error",
    "environment_error",
    "grader_error",
    "timeout",
    "cancelled",
]

RolloutKey = tuple[TaskId, int]

LARGEST_SCORE = 1e100
"""Of a reward or a metric, above and below 0: sums, means and variances of such numbers stay finite."""
LEGAL_SCORE = f"is a finite number from {-LARGEST_SCORE:g} to {LARGEST_SCORE:g}"
LONG_BITS = 64


class Subscore(msgspec.Struct, frozen=True, omit_defaults=True):
    """One named part of a reward."""

    name: str
    value: float
    weight: float = 1.0
    note: str = ""
    parts: tuple[Subscore, ...] = ()
    """What it is made of, where it is made of others."""


class Score(msgspec.Struct, frozen=True):
    """The reward of a rollout, and what it consists of."""

    reward: float
    metrics: dict[str, float] = {}
    subscores: tuple[Subscore, ...] = ()


class Span(msgspec.Struct, frozen=True, gc=False):
    """A phase of a rollout, in seconds since the epoch."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        return self.end - self.start


class Timing(msgspec.Struct, frozen=True, gc=False):
    """When each phase of a rollout began and ended."""

    setup: Span
    generation: Span
    scoring: Span
    end: float

    @property
    def total(self) -> float:
        return self.end - self.setup.start


class Attempt(msgspec.Struct, frozen=True):
    """A try that failed and was repeated."""

    outcome: Outcome
    failure: Failure
    started_at: float
    seconds: float
    usage: Usage = Usage()
    """Tokens it had already cost."""


class RecordedPlay(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A rollout as it was played before, to be scored again."""

    trace: Trace
    """The evaluated model's calls; those of judges are in `helper_calls`."""
    helper_calls: tuple[ModelCall, ...] = ()
    metrics: dict[str, float] = {}
    """As it was scored then."""
    columns: dict[str, Any] = {}
    """The state that was saved with it."""
    folder: Path | None = None
    """Of the run it belongs to."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One finished attempt at one task."""

    task: Task
    number: int
    outcome: Outcome
    trace: Trace
    timing: Timing
    usage: Usage = Usage()
    """Tokens of the evaluated model."""
    score: Score | None = None
    failure: Failure | None = None
    earlier: tuple[Attempt, ...] = ()
    """Tries before this one, oldest first."""
    cleanup_failure: Failure | None = None
    """The environment failed while closing; the score stands."""
    group_size: int = 1
    """How many rollouts were scored together."""
    columns: dict[str, Any] = {}
    """The state that the user asked to save."""

    @property
    def key(self) -> RolloutKey:
        return (self.task.id, self.number)

    @property
    def reward(self) -> float | None:
        """None if it was not scored."""
        return None if self.score is None else self.score.reward

    @property
    def is_settled(self) -> bool:
        return is_settled(self.outcome, None if self.score is None else self.score.reward)


def is_settled(outcome: str, reward: float | None) -> bool:
    """Whether a resumed run does not owe it again. Time may run out with a score or without."""
    return reward is not None or outcome == "excluded"


def is_score(value: float) -> bool:
    """Whether a number can be a reward or a metric: also the squares of a million such can be added up."""
    return -LARGEST_SCORE <= value <= LARGEST_SCORE


def require_finite_number(value: object, source: str) -> float:
    """Return the value as a score, or raise a GraderError that names the function that returned it."""
    if type(value) is float and -LARGEST_SCORE <= value <= LARGEST_SCORE:
        return value
    if not isinstance(value, (int, float)):
        number = _as_python_number(value)
        if number is None:
            raise GraderError(f"{source} returned {_describe_value(value)}; a score is a number")
        value = number
    if not is_score(value):
        raise GraderError(f"{source} returned {_digits(value)}; a score {LEGAL_SCORE}")
    return float(value)


def validate_score(score: Score) -> Score:
    require_finite_number(score.reward, "the reward")
    for name, value in score.metrics.items():
        if type(value) is not float or not -LARGEST_SCORE <= value <= LARGEST_SCORE:
            require_finite_number(value, f"metric {name!r}")
    return score


def _digits(value: float) -> str:
    """A number in few characters; Python does not even write integers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > LONG_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def _as_python_number(value: object) -> float | None:
    """Numbers of array libraries know how to become a Python number; text and None do not."""
    item = getattr(value, "item", None)
    if not callable(item):
        return None
    number = item()
    return number if isinstance(number, (int, float)) else None


def _describe_value(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '…'}"
