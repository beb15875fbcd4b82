"""Whether a v1 taskset of verifiers can be played on this machine, and if not, why and what to do.

Runs in the taskset's own Python; knows nothing of Proctor or of how rollouts are played.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.runtimes import SubprocessConfig, runtime_is_local
from verifiers.v1.utils.loaders import default_harness_id, environment_class, harness_class

SEAT = "agent"
CHAT_HARNESS = "null"
"""The framework's own that only talks. Its default, `bash`, runs what the model says, and wants a sandbox."""
IN_DOCKER = """-a '{"agent": {"runtime": {"type": "docker"}}}'"""
UNPROTECTED = """-a '{"agent": {"runtime": {"type": "subprocess"}}}'"""


class NotPlayableError(Exception):
    """The taskset needs what is not here; the message says what, and the way out."""

    proctor_details: ClassVar[Mapping[str, bool]] = {"is_refusal": True}


def complete_config(taskset_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The framework's `[env]` block for this taskset, on this machine unless it says otherwise."""
    env_class = environment_class(taskset_id, str(given.get("id", "")))
    if not issubclass(env_class, SingleAgentEnv):
        raise NotPlayableError(
            f"its environment {env_class.__name__} plays several agents in one episode, and Proctor plays "
            f"tasksets of one agent; leave it out of `__all__` to evaluate the taskset alone"
        )
    seat = dict(given.get(SEAT, {}))
    if "harness" not in seat and default_harness_id(taskset_id) == "bash":
        seat["harness"] = {"id": CHAT_HARNESS}
    seat.setdefault("runtime", {"type": "subprocess"})
    return {**given, "taskset": {**given.get("taskset", {}), "id": taskset_id}, SEAT: seat}


def require_place(config: Any, task_class: type, tasks: Iterable[Any], *, is_chosen: bool) -> None:
    """Raise NotPlayableError unless the tasks can be played where the config says, which the user chose or
    nobody did."""
    runtime, harness_id = config.agent.runtime, config.agent_harnesses()[SEAT].id
    harness = harness_class(harness_id)
    if not runtime_is_local(runtime):
        raise NotPlayableError(
            f"its {runtime.type} sandboxes reach the model only through a tunnel of Prime Intellect, which "
            f"Proctor does not open; play it in containers of this machine: {IN_DOCKER}"
        )
    if not isinstance(runtime, SubprocessConfig):
        return
    if harness.NEEDS_CONTAINER or getattr(task_class, "NEEDS_CONTAINER", False):
        raise NotPlayableError(f"it needs a container; play it in those of this machine: {IN_DOCKER}")
    if any(task.data.image is not None for task in tasks):
        raise NotPlayableError(f"its tasks name container images; play it in containers: {IN_DOCKER}")
    if harness.EXECUTES_CODE and not is_chosen:
        raise NotPlayableError(
            f"its harness {harness_id!r} may run what the model says, and nothing would keep that from your "
            f"files; play it in a container ({IN_DOCKER}), or accept that ({UNPROTECTED})"
        )
