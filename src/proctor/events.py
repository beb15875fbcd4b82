"""Events that the engine emits while it works.

Events are values: a listener may keep, print or send them. Knows nothing of the listeners.
"""

from __future__ import annotations

import msgspec

from proctor.errors import Failure
from proctor.rollout import Rollout, RolloutKey
from proctor.run import Run
from proctor.trace import ModelCall


class RunStarted(msgspec.Struct, frozen=True, tag=True):
    run: Run
    planned: int | None
    """Rollouts the whole run has, or None while the number of tasks is not known."""
    finished_before: int = 0
    folder: str = ""
    """Where its rows are stored, each before it is reported."""


class PlanCounted(msgspec.Struct, frozen=True, tag=True):
    """The tasks have run out, so the size of the plan is known now."""

    planned: int


class RolloutStarted(msgspec.Struct, frozen=True, tag=True):
    key: RolloutKey


class ModelCalled(msgspec.Struct, frozen=True, tag=True):
    key: RolloutKey
    call: ModelCall


class RequestDelayed(msgspec.Struct, frozen=True, tag=True):
    """The provider asked for time or failed, so a request waits before it is sent again."""

    key: RolloutKey
    seconds: float
    failure: Failure


class RolloutRetried(msgspec.Struct, frozen=True, tag=True):
    key: RolloutKey
    failure: Failure


class RolloutsFinished(msgspec.Struct, frozen=True, tag=True):
    """Rollouts that ended together: one, or a group that was scored as one."""

    rollouts: tuple[Rollout, ...]


class LogLine(msgspec.Struct, frozen=True, tag=True):
    level: str
    text: str
    at: float


class RunEnded(msgspec.Struct, frozen=True, tag=True):
    run: Run


Event = (
    RunStarted
    | PlanCounted
    | RolloutStarted
    | ModelCalled
    | RequestDelayed
    | RolloutRetried
    | RolloutsFinished
    | LogLine
    | RunEnded
)
