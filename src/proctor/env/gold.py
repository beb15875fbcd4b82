"""Gold: what a perfect model would answer. Lets `proctor env check` see whether right answers are rewarded.

Knows nothing of how tasks are played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.optional_contracts import OffersGold
from proctor.task import Task

Gold = str | Sequence[str | Mapping[str, Any]]
"""One text for every turn, or one entry per turn, the last of which repeats. An entry is a text, or a message
such as `{"tool_calls": [{"name": "count", "arguments": {"item": "pears"}}]}`."""


def answer_text(answer: Any) -> str:
    """A task's answer as text; empty unless it is a text or a number."""
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
        return ""
    return str(answer)


def gold_of(environment: EnvironmentProtocol, task: Task) -> Gold:
    """The result of the environment's `gold(task)`, or else the task's answer; empty if there is neither."""
    offered = environment.gold(task) if isinstance(environment, OffersGold) else answer_text(task.answer)
    return offered or ""
