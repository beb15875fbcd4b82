"""A run that another tool recorded, in our terms, and the rows it consists of.

What the source does not say is absent: no time, token count or score is made up. Knows nothing of files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from proctor.rollout import Outcome, is_score
from proctor.run import EndedStatus
from proctor.store.rows import choose_free_name
from proctor.task import Task, TaskId
from proctor.trace import Message

Row = dict[str, Any]


class LeftOut(msgspec.Struct, frozen=True):
    """A part of a source that could not be read, and why."""

    where: str
    problem: str


class ForeignRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of another tool: one environment with one model."""

    tool: str
    source: Path
    env_id: str
    model: str
    rows: Callable[[], Iterator[Row | LeftOut]]
    """Reads the rollouts one by one; called once per import."""
    id: str = ""
    """What the tool calls the run."""
    tool_version: str = ""
    label: str = ""
    """Which of several variants of one run this is."""
    status: EndedStatus = "finished"
    note: str = ""
    """Why it failed or was stopped."""
    started_at: float | None = None
    seconds: float | None = None
    planned: int | None = None
    """How many rollouts were asked for, if the source says so."""
    rollouts_per_example: int | None = None
    env_args: Mapping[str, Any] = {}
    sampling_args: Mapping[str, Any] = {}
    agent: str = ""
    """What worked on the tasks."""
    base_url: str = ""
    pass_threshold: float | None = None
    details: Mapping[str, Any] = {}
    """What else the source says about the run."""


class RowParts(msgspec.Struct, kw_only=True):
    """What a source says about one rollout."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    prompt: Sequence[Message] = ()
    completion: Sequence[Message] = ()
    answer: Any = None
    reward: float | None = None
    metrics: Mapping[str, float] = {}
    info: Mapping[str, Any] = {}
    error: Mapping[str, Any] | None = None
    timing: Mapping[str, Any] = {}
    token_usage: Mapping[str, int] = {}
    other_usage: Mapping[str, Any] = {}
    stop_condition: str | None = None
    is_truncated: bool | None = None
    model_calls: Sequence[Mapping[str, Any]] = ()
    columns: Mapping[str, Any] = {}
    """Fields of the source that have no counterpart here."""


def build_row(parts: RowParts) -> Row:
    task = Task(id=parts.example_id, prompt=tuple(parts.prompt), answer=parts.answer, info=dict(parts.info))
    row: Row = {
        "example_id": parts.example_id,
        "task_hash": task.hash,
        "rollout": parts.rollout,
        "outcome": parts.outcome,
        "prompt": list(parts.prompt),
        "completion": list(parts.completion),
        "answer": parts.answer,
        "reward": parts.reward,
        "metrics": dict(parts.metrics),
        "error": parts.error,
        "timing": dict(parts.timing),
        "is_completed": parts.error is None,
        "stop_condition": parts.stop_condition,
        "token_usage": dict(parts.token_usage),
        "model_calls": list(parts.model_calls),
    }
    if parts.is_truncated is not None:
        row["is_truncated"] = parts.is_truncated
    if parts.info:
        row["info"] = dict(parts.info)
    if parts.other_usage:
        row["other_usage"] = dict(parts.other_usage)
    for name, value in parts.columns.items():
        row[choose_free_name(name, row)] = value
    return row


class RolloutNumbers:
    """Numbers the rollouts of each task in the order they appear, for sources that do not number them."""

    def __init__(self) -> None:
        self._seen: Counter[TaskId] = Counter()

    def next(self, example_id: TaskId) -> int:
        number = self._seen[example_id]
        self._seen[example_id] += 1
        return number


def build_error(kind: str, message: str, traceback: str = "") -> dict[str, Any]:
    error: dict[str, Any] = {"error": kind, "message": message, "error_chain_str": f"{kind}: {message}"}
    if traceback:
        error["traceback"] = traceback.splitlines()
    return error


def keep_scores(values: Mapping[str, Any]) -> dict[str, float]:
    """The entries that can be metrics: finite numbers and flags."""
    return {name: float(value) for name, value in values.items() if is_number(value) and is_score(value)}


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)


def parse_time(text: Any) -> float | None:
    """Seconds since the epoch of an ISO date, or of a number of seconds; None for anything else."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    if not isinstance(text, str) or not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def build_timing(start: float | None, total: float | None, **phases: float | None) -> dict[str, Any]:
    """The spans that the source names; the others are absent."""
    timing: dict[str, Any] = {}
    if start is not None:
        timing["start_time"] = start
    if total is not None:
        timing["total"] = total
    for name, seconds in phases.items():
        if seconds is not None:
            timing[name] = {"duration": seconds}
    return timing
