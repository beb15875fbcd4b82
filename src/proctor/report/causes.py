"""Failures by their cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.report.limits import MOST_NAMES, OTHERS, SAMPLE_LENGTH
from proctor.report.lines import ErrorLine, RolloutLine
from proctor.task import TaskId


class ErrorGroup(msgspec.Struct, frozen=True):
    """All failures of one kind, with one of them."""

    outcome: str
    kind: str
    count: int
    sample: str
    task: TaskId
    rollout: int
    phase: str = ""
    location: str = ""
    """The line of the author's code that failed."""


def count_error(errors: dict[tuple[str, str], ErrorGroup], line: RolloutLine, error: ErrorLine) -> None:
    cause = (line.outcome, error.error)
    if cause not in errors and len(errors) >= MOST_NAMES:
        cause = (line.outcome, OTHERS)
    known = errors.get(cause)
    if known is None:
        sample = error.message[:SAMPLE_LENGTH].encode("utf-8", "replace").decode()
        where = (line.example_id, line.rollout, error.phase, error.location)
        known = ErrorGroup(cause[0], cause[1], 0, sample, *where)
    errors[cause] = msgspec.structs.replace(known, count=known.count + 1)


def rank_errors(errors: Mapping[Any, ErrorGroup]) -> tuple[ErrorGroup, ...]:
    return tuple(sorted(errors.values(), key=lambda group: -group.count))
