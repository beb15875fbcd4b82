"""The failures of a run, grouped by cause: what failed, where, how often, and what to do about it.

Knows an index and nothing of where its rows are.
"""

from __future__ import annotations

from collections import defaultdict

from proctor.api.rollout_list import FailureGroup
from proctor.reading.rollout_index import OUTCOMES, RolloutIndex
from proctor.rollout import Outcome

MOST_GROUPS = 200
EXAMPLES = 5
EXCLUDED = OUTCOMES.index("excluded")

BY_KIND = {
    "AuthError": "Check the API key of the model's endpoint.",
    "RateLimitError": "Lower max_concurrent, or set the endpoint's rates; then resume the run.",
    "OverloadedError": "The provider was overloaded; resume the run to play these again.",
    "UnreachableError": "Check that the model's endpoint is up and reachable; then resume the run.",
    "ModelTimeoutError": "Raise the time limit of model calls, or lower max_concurrent; then resume the run.",
    "MalformedReplyError": "Check that the endpoint speaks the API that it is configured for.",
    "RequestRefusedError": "The provider refused the request; the message says which part of it.",
    "MissingSecretError": "Set the environment variable that the message names, then resume the run.",
    "EnvLostError": "The environment's process or container ended; the log says why.",
    "InfraError": "The environment's infrastructure failed; resume the run to play these again.",
}
BY_OUTCOME: dict[Outcome, str] = {
    "agent_error": "The agent's program failed; its last messages and the log say why.",
    "model_error": "The model could not answer; resume the run to play these again.",
    "environment_error": "The environment's code failed at the line above; fix it, then play these again.",
    "grader_error": "Scoring failed at the line above; fix the reward function, then play these again.",
    "timeout": "Raise the time limit that the message names, then resume the run.",
    "cancelled": "The run was stopped before these were finished; resume it to play them again.",
}


def list_failures(index: RolloutIndex) -> list[FailureGroup]:
    """The most frequent first. A rollout that has a score did not fail."""
    with index.lock:
        groups: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
        for slot in index.slots():
            if index.reward[slot] != index.reward[slot] and index.outcome[slot] != EXCLUDED:
                groups[cause_of(index, slot)].append(slot)
        ranked = sorted(groups.values(), key=len, reverse=True)[:MOST_GROUPS]
        return [build_failure_group(index, slots) for slots in ranked]


def cause_of(index: RolloutIndex, slot: int) -> tuple[int, int, int, int]:
    return (
        index.outcome[slot],
        index.error_kind.column[slot],
        index.phase.column[slot],
        index.location.column[slot],
    )


def build_failure_group(index: RolloutIndex, slots: list[int]) -> FailureGroup:
    first = slots[0]
    outcome, kind = OUTCOMES[index.outcome[first]], index.error_kind.of(first)
    return FailureGroup(
        outcome=outcome,
        kind=kind,
        phase=index.phase.of(first),
        location=index.location.of(first),
        count=len(slots),
        message=index.texts(first)[0],
        next_step=BY_KIND.get(kind) or BY_OUTCOME.get(outcome, ""),
        examples=index.entries(slots[:EXAMPLES]),
    )


def find_end_time(group: FailureGroup) -> float | None:
    """When the first of a group's examples ended, if it says."""
    times = [entry.started_at + entry.seconds for entry in group.examples if entry.started_at]
    return min(times, default=None)
