"""Environments played by a script, or by an agent that does as it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proctor.contracts import Desk, EnvironmentProtocol
from proctor.engine.seat import RunContext
from proctor.models.scripted import Scripted
from proctor.rollout import Rollout
from tests.env.playing import played


@pytest.fixture
def play() -> Callable[..., list[Rollout]]:
    """Plays every task with a script, or a Scripted model to look at later; keywords are Rules."""

    def play(
        environment: EnvironmentProtocol, script: Any = (), *, rollouts_per_task: int = 1, **rules: Any
    ) -> list[Rollout]:
        model = script if isinstance(script, Scripted) else Scripted(script)
        return played(environment, RunContext(model), rollouts_per_task=rollouts_per_task, **rules)

    return play


class Caller:
    """An agent that calls tools one after the other, and answers with what it was told."""

    name = "caller"

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        self.calls = calls

    async def __call__(self, desk: Desk) -> str:
        told = []
        for number, (name, arguments) in enumerate(self.calls):
            call = {"id": str(number), "name": name, "arguments": json.dumps(arguments)}
            told.append(str((await desk.use(call))["content"]))
        return "\n".join(told)


@pytest.fixture
def work() -> Callable[..., list[Rollout]]:
    """Plays every task with an agent that makes these calls: a text is one of `bash`."""

    def work(
        environment: EnvironmentProtocol,
        *calls: str | tuple[str, dict[str, Any]],
        rollouts_per_task: int = 1,
        **rules: Any,
    ) -> list[Rollout]:
        made = [("bash", {"command": call}) if isinstance(call, str) else call for call in calls]
        table = RunContext(Scripted(), agent=Caller(made))
        return played(environment, table, rollouts_per_task=rollouts_per_task, **rules)

    return work
