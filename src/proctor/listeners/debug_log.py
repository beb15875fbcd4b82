"""Log every rollout and every model call of a run, for `-v`.

Knows nothing of where debug messages are shown.
"""

from __future__ import annotations

from proctor.events import (
    Event,
    ModelCalled,
    RequestDelayed,
    RolloutRetried,
    RolloutsFinished,
    RolloutStarted,
)
from proctor.rollout import Rollout, RolloutKey
from proctor.support.logs import log
from proctor.trace import ModelCall


def log_event(event: Event) -> None:
    """Log what happened at the level DEBUG."""
    if (text := describe_event(event)) is not None:
        log.debug("%s", text)


def describe_event(event: Event) -> str | None:
    """One line; None for what the display reports itself."""
    match event:
        case RolloutStarted(key):
            return f"{describe_key(key)}: started"
        case ModelCalled(key, call):
            return f"{describe_key(key)}: {describe_call(call)}"
        case RequestDelayed(key, seconds, failure):
            return f"{describe_key(key)}: the request waits {seconds:.1f} s: {failure.message}"
        case RolloutRetried(key, failure):
            return f"{describe_key(key)}: played again after {failure.kind}: {failure.message}"
        case RolloutsFinished(rollouts):
            return "; ".join(map(describe_rollout, rollouts))
        case _:
            return None


def describe_key(key: RolloutKey) -> str:
    task, number = key
    return f"task {task}, rollout {number}"


def describe_call(call: ModelCall) -> str:
    begin = f"{call.model} ({call.role})"
    if call.reply is None:
        return f"{begin} failed after {call.seconds:.2f} s: {call.failure.message if call.failure else ''}"
    usage = call.reply.usage
    return (
        f"{begin} answered after {call.seconds:.2f} s: {call.reply.finish_reason}, "
        f"tokens {usage.input_tokens} in, {usage.output_tokens} out"
    )


def describe_rollout(rollout: Rollout) -> str:
    reward = "no reward" if rollout.score is None else f"reward {rollout.score.reward:.3f}"
    return f"{describe_key(rollout.key)}: {rollout.outcome}, {reward}"
