"""Play environments as a run plays them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proctor.contracts import Environment
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
