"""Agents that Harbor checks its tasks with: `oracle` runs the task's solution, `nop` does nothing.

Neither asks a model.
"""

from __future__ import annotations

from proctor.config.endpoints import ModelPreference
from proctor.contracts import Desk, EnvironmentProtocol
from proctor.dialects.harbor.environment import HarborEnvironment, TaskWorkspace
from proctor.errors import AgentError, ConfigError

NO_MODEL = ModelPreference(model="scripted")


class OracleAgent:
    """Runs `solution/solve.sh` in the task's container."""

    name = "oracle"
    prefers = NO_MODEL

    def check(self, environment: EnvironmentProtocol) -> None:
        if not isinstance(environment, HarborEnvironment):
            raise ConfigError(
                "Agent 'oracle' runs the solutions of Harbor's tasks; this environment has none."
            )

    async def __call__(self, desk: Desk) -> str:
        workspace = desk.workspace
        if not isinstance(workspace, TaskWorkspace):
            raise AgentError("this task has no solution to run")
        ran = await workspace.solve()
        desk.ended_by("solved" if ran.code == 0 else "solution_failed")
        return ran.output


class NopAgent:
    """Does nothing: what a task is worth untouched."""

    name = "nop"
    prefers = NO_MODEL

    async def __call__(self, desk: Desk) -> str:
        desk.ended_by("nop")
        return ""
