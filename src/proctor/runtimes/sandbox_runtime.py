"""SandboxRuntime: what runtimes that start a sandbox per rollout have in common.

Knows nothing of how a sandbox is created or reached.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from proctor.errors import InfraError
from proctor.runtimes.hello import wait_for_hello
from proctor.runtimes.runtime import Runtime
from proctor.runtimes.serving import Variables
from proctor.task import Task


class SandboxRuntime(ABC):
    """Serves each rollout's environment from a sandbox of its own, on `port`."""

    def __init__(self, image: str, *, port: int, env: Variables | None, start_seconds: float) -> None:
        self.image = image
        self.port = port
        self.env = dict(env or {})
        self.start_seconds = start_seconds
        self.is_local = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.image!r})"

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:
        return self._open_runtime(task)

    @abstractmethod
    def _open_runtime(self, task: Task) -> AbstractAsyncContextManager[Runtime]: ...

    async def _wait_until_ready(self, url: str, look: Callable[[], Awaitable[None]]) -> None:
        """Wait for the environment at the url; `look` raises if its sandbox has ended."""
        try:
            async with asyncio.timeout(self.start_seconds):
                await wait_for_hello(url, look)
        except TimeoutError:
            raise InfraError(
                f"no answer on port {self.port} of {self.image} within {self.start_seconds:g} s"
            ) from None
