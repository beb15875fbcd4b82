"""Rollouts to put into files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proctor.errors import Failure
from proctor.rollout import Rollout, Score, Span, Timing
from proctor.task import Task
from proctor.trace import Trace


@pytest.fixture
def made() -> Callable[..., Rollout]:
    """A rollout that nobody played: scored with 1, unless it is given a failure or another outcome."""

    def made(
        task: int | str = 0,
        number: int = 0,
        outcome: str = "scored",
        failure: Failure | None = None,
        info: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Rollout:
        question = {"role": "user", "content": f"say {task}"}
        told = {
            "task": Task(id=task, prompt=(question,), answer=f"say {task}", info=info or {}),
            "number": number,
            "outcome": "model_error" if failure and outcome == "scored" else outcome,
            "trace": Trace(prompt=[question], stop_condition="max_turns_reached"),
            "timing": Timing(Span(1.0, 1.5), Span(1.5, 3.0), Span(3.0, 3.25), 3.5),
            "score": None if failure or outcome == "excluded" else Score(1.0, {"repeats": 1.0}),
            "failure": failure,
        }
        return Rollout(**{**told, **settings})

    return made
