"""May a stored run be continued with today's settings? Only if its numbers would still mean one thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from proctor.errors import ConfigError

IDENTITY = {
    "env_id": "environment",
    "env_args": "environment arguments (-a)",
    "extra_env_kwargs": "environment settings (-x)",
    "agent": "agent",
    "agent_args": "agent settings (--agent-args)",
    "max_steps": "--max-steps",
    "model": "model (-m)",
    "base_url": "endpoint (-b)",
    "api_client_type": "client type",
    "sampling_args": "sampling (-t, -T, -S)",
    "task_ids": "--task-ids",
    "shuffle": "--shuffle",
    "seed": "--seed",
}
"""What must be the same, by its key in the metadata."""
ACCEPTABLE = {"api_base_url": "base_url"}
"""Settings that may change if the user says so: rollouts stay comparable if the same server moved."""
GROWABLE = ("num_examples", "rollouts_per_example")
"""What may grow."""


def find_differences(
    stored: Mapping[str, Any], current: Mapping[str, Any], accepted: Collection[str] = ()
) -> list[str]:
    """What changed since the run was started, one phrase each; empty if it may be resumed."""
    ignored = {ACCEPTABLE[setting] for setting in accepted}
    changed = [
        describe_difference(IDENTITY[key], stored.get(key), current.get(key))
        for key in list_changed_keys(stored, current)
        if key not in ignored
    ]
    return changed + find_shrunken_sizes(stored, current)


def list_changed_keys(stored: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    return [
        key
        for key in IDENTITY
        if not is_same(stored.get(key), current.get(key))
        and not (key == "seed" and not current.get("shuffle"))
    ]


def list_accepted_changes(
    stored: Mapping[str, Any], current: Mapping[str, Any], accepted: Collection[str], at: str
) -> list[dict[str, Any]]:
    """The accepted changes as the metadata records them, those of earlier resumes first."""
    changed = list_changed_keys(stored, current)
    new = [
        {"setting": setting, "before": stored.get(key), "after": current.get(key), "at": at}
        for setting, key in ACCEPTABLE.items()
        if setting in accepted and key in changed
    ]
    return [*stored.get("accepted_changes", ()), *new]


def check_accepted(accepted: Collection[str], resumes: bool) -> None:
    """Refuse settings that would make it another run, and consent that nothing asks for."""
    for setting in accepted:
        if setting not in ACCEPTABLE:
            raise ConfigError(
                f"--accept-changed takes {', '.join(ACCEPTABLE)}, not {setting!r}: with other settings the "
                "rollouts of before and after could not be compared. Start a new run."
            )
    if accepted and not resumes:
        raise ConfigError("--accept-changed is about a run to resume; pass --resume as well.")


def describe_difference(words: str, stored: Any, current: Any) -> str:
    """What changed; of two tables, only the values that differ."""
    if not (isinstance(stored, Mapping) and isinstance(current, Mapping)):
        return describe_change(words, stored, current)
    names = [name for name in {**stored, **current} if stored.get(name) != current.get(name)]
    each = (describe_change(name, stored.get(name), current.get(name)) for name in names)
    return f"{words}: {', '.join(each)}"


def describe_change(name: str, stored: Any, current: Any) -> str:
    before, now = ("not set" if value is None else repr(value) for value in (stored, current))
    return f"{name} was {before} and is now {now}"


def is_same(stored: Any, current: Any) -> bool:
    """Whether two settings mean the same; older runs say nothing where there was nothing."""
    return (stored or None) == (current or None)


def find_shrunken_sizes(stored: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """More tasks or rollouts are welcome; fewer would leave finished ones out of the plan."""
    phrases = []
    tasks, tasks_now = stored.get("num_examples", 0), current.get("num_examples", 0)
    if tasks_now != -1 and (tasks == -1 or tasks > tasks_now):
        phrases.append(f"-n was {tasks} and is now {tasks_now}, which is fewer tasks")
    rollouts, rollouts_now = stored.get("rollouts_per_example", 0), current.get("rollouts_per_example", 0)
    if rollouts > rollouts_now:
        phrases.append(f"-r was {rollouts} and is now {rollouts_now}, which is fewer rollouts")
    return phrases


def is_unfinished(stored: Mapping[str, Any], current: Mapping[str, Any], planned: int | None) -> bool:
    """Whether the run has rollouts left to do under today's plan, which may be of unknown size."""
    if stored.get("status") != "finished":
        return True
    if planned is None:
        asked_more = any(stored.get(key) != current.get(key) for key in GROWABLE)
        planned = None if asked_more else stored.get("planned")
    return planned is None or stored.get("settled", 0) < planned
