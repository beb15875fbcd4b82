"""Play environments as a run plays them, and with an agent that does as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proctor.contracts import Desk, Environment
from proctor.engine.plan import Plan
from proctor.engine.player import Player, Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import Table
from proctor.models.scripted import Scripted
from proctor.rollout import Rollout


@pytest.fixture
def play() -> Callable[..., list[Rollout]]:
    """Plays every task with a script, or a Scripted model to look at later; keywords are Rules."""

    def play(
        environment: Environment, script: Any = (), *, rollouts_per_task: int = 1, **rules: Any
    ) -> list[Rollout]:
        model = script if isinstance(script, Scripted) else Scripted(script)
        kept: list[Rollout] = []

        def keep(rollouts: Sequence[Rollout]) -> None:
            kept.extend(rollouts)

        async def run() -> None:
            try:
                grouped = {"grouped": environment.traits.grouped, **rules}
                player = Player(environment, Table(model), Rules(**grouped), lambda _: None)
                runner = Runner(player, lambda _: None, keep)
                await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=rollouts_per_task))
            finally:
                await environment.close()

        asyncio.run(run())
        return sorted(kept, key=lambda rollout: rollout.key)

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
        environment: Environment,
        *calls: str | tuple[str, dict[str, Any]],
        rollouts_per_task: int = 1,
        **rules: Any,
    ) -> list[Rollout]:
        made = [("bash", {"command": call}) if isinstance(call, str) else call for call in calls]
        kept: list[Rollout] = []

        async def run() -> None:
            try:
                await environment.check()
                table = Table(Scripted(), agent=Caller(made))
                player = Player(environment, table, Rules(**rules), lambda _: None)
                runner = Runner(player, lambda _: None, kept.extend)
                await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=rollouts_per_task))
            finally:
                await environment.close()

        asyncio.run(run())
        return sorted(kept, key=lambda rollout: rollout.key)

    return work
