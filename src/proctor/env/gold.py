"""Gold: what a perfect model would say to a task. Lets a check see whether being right is rewarded.

Knows nothing of how it is played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.task import Task

Gold = str | Sequence[str | Mapping[str, Any]]
"""One text for every turn, or one entry per turn, of which the last is repeated. An entry is a text, or a
message such as `{"tool_calls": [{"name": "count", "arguments": {"item": "pears"}}]}`."""


def answer_text(answer: Any) -> str:
    """A task's answer as somebody would say it; nothing where it is no text and no number."""
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
        return ""
    return str(answer)


def gold_of(environment: EnvironmentProtocol, task: Task) -> Gold:
    """What the environment's `gold(task)` gives, or else the task's answer; empty if neither is there."""
    offered = getattr(environment, "gold", None)
    return (offered(task) if callable(offered) else answer_text(task.answer)) or ""
