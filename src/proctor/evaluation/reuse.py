"""Decide what a new run can take from an old one: a rollout's row, its play to be scored again, or nothing.

Tasks are matched by content, then by id. Everything is decided from hashes and settings, and every decision
has a reason. Knows nothing of how rollouts are played or displayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from proctor.errors import ConfigError, StoreError
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.read_tasks import list_tasks
from proctor.optional_contracts import explain_unrestorable
from proctor.rollout import RolloutKey
from proctor.store import metadata
from proctor.store.folder import UNREADABLE, read_metadata
from proctor.store.recorded import StoredPlays
from proctor.store.resume_rules import IDENTITY, describe_difference, is_same
from proctor.task import Task, TaskId, canonical_bytes

Action = Literal["reuse", "rescore", "rerun"]
Kind = Literal["rescore", "reuse"]

PLAY_SETTINGS = (
    "agent",
    "agent_args",
    "max_steps",
    "model",
    "base_url",
    "api_client_type",
    "sampling_args",
)
"""Whatever else is the same, another value of these is another play."""
ENVIRONMENT_SETTINGS = ("env_args", "extra_env_kwargs")
"""The environment's fingerprint tells what they change, where it has one."""
UNCHANGED = "nothing has changed"
NOT_PLAYED = "not played in that run"


class Decision(msgspec.Struct, frozen=True):
    """What becomes of one rollout, and why."""

    task: TaskId
    rollout: int
    action: Action
    reason: str

    @property
    def key(self) -> RolloutKey:
        return (self.task, self.rollout)


class SourceRun(msgspec.Struct, frozen=True):
    """The run that another one was made from; stored in its metadata."""

    kind: Kind
    run_id: str
    folder: str


class ReusePlan(msgspec.Struct, frozen=True, eq=False):
    """What a new run takes from an old one."""

    origin: SourceRun
    plays: StoredPlays
    tasks: Sequence[Task]
    decisions: Sequence[Decision]
    matches: Mapping[TaskId, TaskId]
    """The id that a task has in the old run, by its id now."""
    left_out: tuple[TaskId, ...] = ()
    """Tasks of the old run that are not among the tasks now."""

    def keys(self, action: Action) -> list[RolloutKey]:
        return [decision.key for decision in self.decisions if decision.action == action]

    def stored_key(self, key: RolloutKey) -> RolloutKey:
        return (self.matches.get(key[0], key[0]), key[1])

    def count(self) -> dict[Action, int]:
        counted = Counter(decision.action for decision in self.decisions)
        return {action: counted[action] for action in ("reuse", "rescore", "rerun")}


class RunChanges(msgspec.Struct, frozen=True):
    """What differs between an old run and a new one, for all rollouts alike."""

    play: tuple[str, ...] = ()
    """Reasons to play again."""
    scoring: tuple[str, ...] = ()
    """Reasons to score again."""


# A whole run


def plan_rescore(prepared: Prepared, folder: Path) -> ReusePlan:
    """Score again all that was played in a run; keep what failed before it could be scored."""
    require_restorable(prepared, folder)
    stored = read_origin(folder)
    plays = StoredPlays(folder, stored)
    tasks, matches, left_out = match_tasks(prepared, plays)
    decisions = []
    for task in tasks:
        for number in range(plays.rollouts_per_task):
            line = plays.lines.get((matches[task.id], number))
            if line is not None:
                action: Action = "rescore" if line.was_played else "reuse"
                reason = "" if line.was_played else f"{line.outcome}, so there is nothing to score"
                decisions.append(Decision(task.id, number, action, reason))
    if not any(decision.action == "rescore" for decision in decisions):
        raise ConfigError(f"{folder} has no rollout that could be scored again with {prepared.name}.")
    return ReusePlan(
        SourceRun("rescore", folder.resolve().name, str(folder.resolve())),
        plays,
        tasks,
        decisions,
        matches,
        left_out,
    )


def plan_reuse(prepared: Prepared, folder: Path) -> ReusePlan:
    """Take from a run what is still valid under today's code and settings."""
    stored = read_origin(folder)
    plays = StoredPlays(folder, stored)
    changes = find_changes(prepared, stored)
    tasks, matches, left_out = match_tasks(prepared, plays, known_only=False)
    decisions: list[Decision] = []
    for task in tasks:
        group = [
            decide(prepared, task, number, matches, plays, changes)
            for number in range(prepared.config.rollouts_per_example)
        ]
        decisions += decide_group(group) if prepared.grouped else group
    return ReusePlan(
        SourceRun("reuse", folder.resolve().name, str(folder.resolve())),
        plays,
        tasks,
        decisions,
        matches,
        left_out,
    )


def read_origin(folder: Path) -> dict[str, Any]:
    try:
        return read_metadata(folder)
    except StoreError as error:
        raise ConfigError(f"{error} Name a run by its folder, its id, or 'latest'.") from error


def require_restorable(prepared: Prepared, folder: Path) -> None:
    reason = explain_unrestorable(prepared.environment)
    if reason is not None:
        raise ConfigError(
            f"The rollouts of {prepared.name} cannot be scored from their record: {reason}. Play them again "
            f"with: proctor eval rerun {folder.resolve().name}"
        )


def match_tasks(
    prepared: Prepared, plays: StoredPlays, *, known_only: bool = True
) -> tuple[list[Task], dict[TaskId, TaskId], tuple[TaskId, ...]]:
    """Today's tasks, the id that each has in the old run, and the ids of that run that no task has."""
    by_hash: dict[str, list[TaskId]] = {}
    hash_of: dict[TaskId, str] = {}
    for (task_id, _), line in plays.lines.items():
        if task_id not in hash_of:
            hash_of[task_id] = line.task_hash
            by_hash.setdefault(line.task_hash, []).append(task_id)
    tasks = list_tasks(prepared)
    same = {task.id: task.id for task in tasks if hash_of.get(task.id) == task.hash}
    taken = set(same.values())
    matches: dict[TaskId, TaskId] = dict(same)
    for task in tasks:
        if task.id not in matches:
            free = (known for known in by_hash.get(task.hash, ()) if known not in taken)
            found = next(free, None)
            if found is not None:
                matches[task.id] = found
                taken.add(found)
    for task in tasks:  # the content has changed, and only the id tells
        if task.id not in matches and task.id in hash_of and task.id not in taken:
            matches[task.id] = task.id
            taken.add(task.id)
    kept = [task for task in tasks if task.id in matches] if known_only else tasks
    return kept, matches, tuple(known for known in hash_of if known not in taken)


# One rollout


def decide(
    prepared: Prepared,
    task: Task,
    number: int,
    matches: Mapping[TaskId, TaskId],
    plays: StoredPlays,
    changes: RunChanges,
) -> Decision:
    """What becomes of one rollout; the first reason to do more decides."""
    key = (matches.get(task.id, task.id), number)
    line = plays.lines.get(key) if task.id in matches else None
    if line is None:
        return Decision(task.id, number, "rerun", NOT_PLAYED)
    if changes.play:
        return Decision(task.id, number, "rerun", "; ".join(changes.play))
    if not line.was_played:
        return Decision(task.id, number, "rerun", f"it ended in {line.outcome}")
    again = list(changes.scoring)
    if line.task_hash != task.hash:
        if not is_only_graded_differently(prepared, task, plays, key):
            return Decision(task.id, number, "rerun", "the task has changed")
        again.insert(0, "the task's answer or info has changed")
    if not line.is_settled:
        again.append("it could not be scored")
    if not again:
        return Decision(task.id, number, "reuse", UNCHANGED)
    unrestorable = explain_unrestorable(prepared.environment)
    if unrestorable is not None:
        return Decision(task.id, number, "rerun", f"{'; '.join(again)}, and {unrestorable}")
    return Decision(task.id, number, "rescore", "; ".join(again))


def decide_group(group: Sequence[Decision]) -> list[Decision]:
    """A task's rollouts that are scored together: if one has to be, all have."""
    if all(decision.action == "reuse" for decision in group):
        return list(group)
    return [
        decision
        if decision.action != "reuse"
        else msgspec.structs.replace(decision, action="rescore", reason="scored together with its group")
        for decision in group
    ]


def is_only_graded_differently(prepared: Prepared, task: Task, plays: StoredPlays, key: RolloutKey) -> bool:
    """Whether the model got the same request, and its answer ended the rollout, so that nothing but scoring
    could depend on what has changed."""
    if getattr(prepared.environment, "max_turns", None) != 1:
        return False
    try:
        recorded = plays.reader(key)()
    except (StoreError, *UNREADABLE):
        return False
    return canonical_bytes(task.prompt) == canonical_bytes(recorded.trace.prompt)


# Settings and code


def find_changes(prepared: Prepared, stored: Mapping[str, Any]) -> RunChanges:
    current = metadata.run_identity(prepared.config, prepared.endpoint)
    play = [
        describe_difference(IDENTITY[name], stored.get(name), current.get(name))
        for name in PLAY_SETTINGS
        if not is_same(stored.get(name), current.get(name))
    ]
    settings = [
        describe_difference(IDENTITY[name], stored.get(name), current.get(name))
        for name in ENVIRONMENT_SETTINGS
        if not is_same(stored.get(name), current.get(name))
    ]
    return compare_code(stored.get("environment") or {}, prepared.provenance, tuple(play), tuple(settings))


def compare_code(
    then: Mapping[str, Any], now: Mapping[str, Any], play: tuple[str, ...], settings: tuple[str, ...]
) -> RunChanges:
    """What changes of code and of the environment's settings mean for play and for scoring."""
    hashes = ("play_hash", "scoring_hash")
    if all(then.get(name) is not None and now.get(name) is not None for name in hashes):
        if then["play_hash"] != now["play_hash"]:
            play = (*play, *(settings or ("the code that plays has changed",)))
        changed = then["scoring_hash"] != now["scoring_hash"]
        return RunChanges(play, ("the code that scores has changed",) if changed else ())
    if settings:
        return RunChanges((*play, *settings))
    known = then.get("content_hash"), now.get("content_hash")
    if None in known:
        return RunChanges((*play, "whether the environment's code has changed is not known"))
    return RunChanges(play if known[0] == known[1] else (*play, "the environment's code has changed"))
