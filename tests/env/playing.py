"""Play environments as a run plays them, and read what came of it."""

from __future__ import annotations

from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.engine.plan import Plan
from proctor.engine.player import Player, Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import RunContext
from proctor.rollout import Rollout
from tests.steady_time import run_steadily


def played(
    environment: EnvironmentProtocol,
    table: RunContext,
    *,
    rollouts_per_task: int = 1,
    closes: bool = True,
    **rules: Any,
) -> list[Rollout]:
    """Every task, played at a table; keywords are Rules."""
    kept: list[Rollout] = []

    async def run() -> None:
        try:
            await environment.check()
            grouped = {"grouped": environment.traits.grouped, **rules}
            player = Player(environment, table, Rules(**grouped), lambda _: None)
            runner = Runner(player, lambda _: None, kept.extend)
            await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=rollouts_per_task))
        finally:
            if closes:
                await environment.close()

    run_steadily(run())
    return sorted(kept, key=lambda rollout: rollout.key)


def reward(rollout: Rollout) -> float:
    assert rollout.failure is None, rollout.failure
    assert rollout.score is not None
    return rollout.score.reward
