"""Which outcome an exception becomes, whether environment, reward function or model raised it.

Knows errors and phases, and nothing of rollouts.
"""

from __future__ import annotations

import asyncio
from typing import cast

from proctor.errors import (
    EnvError,
    GraderError,
    MissingSecretError,
    RolloutError,
    find_missing_variable,
    is_environment_lost,
    list_causes,
)
from proctor.rollout import Outcome


def outcome_of(error: BaseException, phase: str) -> Outcome:
    """The outcome that names who failed. An error while scoring, a judge's model included, is the grader's,
    unless the environment itself was lost."""
    named = error if isinstance(error, RolloutError) else None
    if named is not None and named.outcome in ("timeout", "excluded"):
        return cast(Outcome, named.outcome)
    if phase == "scoring" and not is_environment_lost(error):
        return "grader_error"
    return cast(Outcome, named.outcome) if named is not None else "environment_error"


def is_real_cancellation(error: BaseException) -> bool:
    """Whether this task was cancelled, rather than environment code raising CancelledError by itself."""
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def find_responsible_error(error: BaseException, phase: str) -> BaseException:
    """The error to blame: where environment code raised its own over a failed model call, the model's."""
    if isinstance(error, asyncio.CancelledError):
        kind, source = (GraderError, "scoring") if phase == "scoring" else (EnvError, "the environment")
        stray = kind(f"{source} raised CancelledError although the rollout was not cancelled")
        stray.__cause__ = error
        return stray
    name = find_missing_variable(error)
    if name is not None and not isinstance(error, MissingSecretError):
        missing = MissingSecretError(name)
        missing.__cause__ = error
        return missing
    if phase == "scoring":
        return error
    hidden = [link for link in list_causes(error) if isinstance(link, RolloutError)]
    return hidden[-1] if hidden and not isinstance(error, RolloutError) else error
