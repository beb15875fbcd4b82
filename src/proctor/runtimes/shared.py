"""Shared: a few places that rollouts use in turn, instead of one for each.

    runtime = Shared(DockerRuntime("letters"), width=4)

Start-up is paid once for each place. The price: what one rollout leaves behind, the next one finds; so this
is for environments that keep nothing between their tasks. Where a rollout failed, no other one is played.
Knows nothing of what places are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from proctor.errors import ConfigError
from proctor.runtimes.runtime import Provider, Runtime
from proctor.support.shield import finish
from proctor.task import Task


class Shared:
    """Lends at most `width` places of a provider. Closing it gives them back."""

    def __init__(self, provider: Provider, *, width: int) -> None:
        if width < 1:
            raise ConfigError(f"a width of {width} leaves no place to play in; take at least 1")
        self.provider = provider
        self.width = width
        self._gate = asyncio.Semaphore(width)
        self._free: list[RuntimeLease] = []

    def __repr__(self) -> str:
        return f"Shared({self.provider!r}, width={self.width})"

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:
        return self._lend(task)

    async def check(self) -> None:
        check = getattr(self.provider, "check", None)
        if check is not None:
            await check()

    async def close(self) -> None:
        free, self._free = self._free, []
        for lent in free:
            await finish(lent.give_back())
        close = getattr(self.provider, "close", None)
        if close is not None:
            await close()

    @asynccontextmanager
    async def _lend(self, task: Task) -> AsyncIterator[Runtime]:
        async with self._gate:
            lent = self._free.pop() if self._free else await RuntimeLease.of(self.provider, task)
            try:
                yield lent.runtime
            except BaseException:  # whatever it was, the next rollout should not meet it
                await finish(lent.give_back())
                raise
            self._free.append(lent)


class RuntimeLease:
    """One place, held open by a task of its own: a provider may insist that one task opens and closes it."""

    def __init__(self, runtime: Runtime, holder: asyncio.Task[None], over: asyncio.Event) -> None:
        self.runtime = runtime
        self._holder = holder
        self._over = over

    @classmethod
    async def of(cls, provider: Provider, task: Task) -> RuntimeLease:
        opened: asyncio.Future[Runtime] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()

        async def hold() -> None:
            async with AsyncExitStack() as stack:
                try:
                    runtime = await stack.enter_async_context(provider(task))
                except BaseException as error:
                    if not opened.done():
                        opened.set_exception(error)
                    return
                if opened.done():  # whoever asked is gone
                    return
                opened.set_result(runtime)
                await over.wait()

        holder = asyncio.ensure_future(hold())
        try:
            return cls(await opened, holder, over)
        except asyncio.CancelledError:
            holder.cancel()
            await finish(wait_for_end(holder))
            raise

    async def give_back(self) -> None:
        self._over.set()
        await wait_for_end(self._holder)


async def wait_for_end(holder: asyncio.Task[None]) -> None:
    await asyncio.wait([holder])
