"""CloudRuntime: what runtimes have in common that rent a sandbox per rollout from a vendor.

A sandbox is removed with its rollout, and the vendor ends it after `lease_seconds` at the latest, so a killed
run does not leave one behind for long. Knows nothing of any vendor.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, NamedTuple

from proctor.runtimes.runtime import Runtime
from proctor.runtimes.sandbox_runtime import SandboxRuntime
from proctor.runtimes.serving import (
    TOKEN_VARIABLE,
    Command,
    Variables,
    fresh_token,
    resolve_serve_command,
    resolve_variables,
)
from proctor.support.cancellation import create_or_undo, finish
from proctor.support.logs import log
from proctor.support.relay import StreamFarEnd, open_relay
from proctor.task import Task

REMOVE_SECONDS = 30.0


class SandboxAccess(NamedTuple):
    """How to reach the environment in a sandbox."""

    connect: Callable[[], AbstractAsyncContextManager[StreamFarEnd]]
    raise_if_ended: Callable[[], Awaitable[None]]


class CloudRuntime(SandboxRuntime):
    """Serves each rollout's environment from a vendor's sandbox."""

    vendor: ClassVar[str]

    def __init__(
        self,
        image: str,
        *,
        port: int,
        command: Command | None,
        env: Variables | None,
        start_seconds: float,
        lease_seconds: float,
    ) -> None:
        super().__init__(image, port=port, env=env, start_seconds=start_seconds)
        self.command = resolve_serve_command(command, port)
        self.lease_seconds = lease_seconds

    @asynccontextmanager
    async def _open_runtime(self, task: Task) -> AsyncIterator[Runtime]:
        token = fresh_token()
        variables = {**resolve_variables(self.env), TOKEN_VARIABLE: token}
        sandbox = await create_or_undo(self._create(task, variables), self._remove)
        try:
            async with self._access(sandbox) as access, open_relay(access.connect) as url:
                await self._wait_until_ready(url, access.raise_if_ended)
                yield Runtime(url, token=token)
        finally:
            await finish(self._remove(sandbox))

    @abstractmethod
    async def _create(self, task: Task, variables: Mapping[str, str]) -> Any:
        """Create a sandbox with these environment variables."""

    @abstractmethod
    def _access(self, sandbox: Any) -> AbstractAsyncContextManager[SandboxAccess]:
        """Start what serves the environment, if the sandbox does not, and find out how to reach it."""

    @abstractmethod
    async def _delete(self, sandbox: Any) -> None: ...

    @property
    @abstractmethod
    def _vendor_error(self) -> type[Exception]:
        """What the vendor's package raises."""

    async def _remove(self, sandbox: Any) -> None:
        try:
            async with asyncio.timeout(REMOVE_SECONDS):
                await self._delete(sandbox)
        except (self._vendor_error, TimeoutError) as error:
            log.warning("a %s sandbox could not be removed: %s", self.vendor, error or "it took too long")
