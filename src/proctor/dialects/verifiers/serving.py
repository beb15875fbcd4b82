"""A v1 environment of verifiers that is up: its tool servers, and the server between harness and model.

Runs in the environment's own Python; knows nothing of Proctor or of tasks.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

MOST_ROLLOUTS = 100
"""The framework keeps an HTTP client for each rollout's key until its server ends; then a new one starts."""


class Serving:
    """Comes up for its first rollout; goes down when it is closed, and the last rollout has left."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._entered = 0
        self._inside = 0
        self._is_closed = False
        self._empty = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Its context managers must be left in the task that entered them.
        self._life = asyncio.create_task(self._serve())

    @property
    def is_worn(self) -> bool:
        return self._is_closed or self._entered >= MOST_ROLLOUTS or self._life.done()

    async def __aenter__(self) -> Any:
        self._entered += 1
        self._inside += 1
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            self._leave()
            raise
        return self.env

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def retire(self) -> None:
        """Take no more rollouts, and go down after the last."""
        self._is_closed = True
        if self._inside == 0:
            self._empty.set()

    async def close(self) -> None:
        self.retire()
        await asyncio.wait([self._life])

    def _leave(self) -> None:
        self._inside -= 1
        if self._is_closed and self._inside == 0:
            self._empty.set()

    async def _serve(self) -> None:
        try:
            async with self.env.serving():
                self._ready.set_result(None)
                await self._empty.wait()
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
