"""The messages to and from the process that runs an environment, one JSON object per line."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from proctor.checkup.finding import CheckupRewards, Finding
from proctor.config.endpoints import Endpoint
from proctor.config.sources import resolve
from proctor.evaluation.prepare import resolve_endpoint


class CheckupRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to check, and how."""

    env_id: str
    env_dir: str = "./environments"
    arguments: dict[str, Any] = {}
    tasks: int = 5
    """Tasks to play."""
    seconds: float = 60.0
    """How long loading, reading the tasks, one rollout, or its scoring may take."""
    model: str | None = None
    """What answers the environment's own model calls, beside the agent."""
    only_tasks: bool = False
    """Read the tasks, and play nothing."""


def helper_endpoint(order: CheckupRequest) -> Endpoint | None:
    """Where the model that was named is reached; a ConfigError if it cannot be."""
    if order.model is None:
        return None
    config, _ = resolve({"env_id": order.env_id, "model": order.model}, {})
    return resolve_endpoint(config, os.environ)


class StepStarted(msgspec.Struct, frozen=True, tag=True):
    """The next step has started; the next message comes within `seconds`."""

    what: str
    seconds: float


class FindingReported(msgspec.Struct, frozen=True, tag=True):
    finding: Finding


class TasksRead(msgspec.Struct, frozen=True, tag=True):
    content: list[tuple[str, str]]


class TrialPlayed(msgspec.Struct, frozen=True, tag=True):
    figures: CheckupRewards


class CheckupDone(msgspec.Struct, frozen=True, tag=True):
    """Everything was looked at."""


CheckupMessage = StepStarted | FindingReported | TasksRead | TrialPlayed | CheckupDone
