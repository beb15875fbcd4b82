"""A runtime for each rollout of a HUD environment: a process of its own, served by the `hud` package.

Knows nothing of tasks, or of how they are played.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from proctor.dialects.process import ForeignProcess
from proctor.errors import EnvError, EnvLostError, InfraError
from proctor.runtimes.runtime import Runtime
from proctor.support.cancellation import finish
from proctor.task import Task

START_SECONDS = 120.0


class HudRuntime:
    """Asks the child for a process that serves the task's environment, and has it ended afterwards."""

    is_local = True

    def __init__(self, process: ForeignProcess) -> None:
        self.process = process

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        served = await self._start(task.env)
        try:
            yield Runtime(f"tcp://127.0.0.1:{served['port']}")
        finally:
            await finish(self._end(served["pid"]))

    async def close(self) -> None:
        await self.process.close()

    async def _start(self, env: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(START_SECONDS):
                served: dict[str, Any] = await self.process.call("serve", env=env)
                return served
        except TimeoutError as error:
            raise InfraError(f"environment {env!r} was not served after {START_SECONDS:g} s") from error

    async def _end(self, pid: int) -> None:
        with suppress(EnvLostError, EnvError):  # the child is gone, and all its processes with it
            await self.process.call("end", pid=pid)
