"""Shared: a few runtimes that rollouts use in turn, instead of one each.

    runtime = Shared(DockerRuntime("letters"), width=4)

Each runtime starts only once. In return, a rollout finds what the one before it left behind, so this is for
environments that keep no state between tasks. A runtime whose rollout failed is not used again. Knows nothing
of what runtimes are made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from proctor.errors import ConfigError
from proctor.optional_contracts import check_optional, close_optional
from proctor.runtimes.runtime import Provider, Runtime
from proctor.support.cancellation import finish
from proctor.task import Task


class Shared:
    """Lends at most `width` runtimes of a provider. Closing it returns them."""

    def __init__(self, provider: Provider, *, width: int) -> None:
        if width < 1:
            raise ConfigError(f"a width of {width} leaves no runtime to play in; use at least 1")
        self.provider = provider
        self.width = width
        self.is_local: bool | None = getattr(provider, "is_local", None)
        self._semaphore = asyncio.Semaphore(width)
        self._free: list[RuntimeLease] = []

    def __repr__(self) -> str:
        return f"Shared({self.provider!r}, width={self.width})"

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:
        return self._lend(task)

    async def check(self) -> None:
        await check_optional(self.provider)

    async def close(self) -> None:
        free, self._free = self._free, []
        for lent in free:
            await finish(lent.give_back())
        await close_optional(self.provider)

    @asynccontextmanager
    async def _lend(self, task: Task) -> AsyncIterator[Runtime]:
        async with self._semaphore:
            lent = self._free.pop() if self._free else await RuntimeLease.of(self.provider, task)
            try:
                yield lent.runtime
            except BaseException:  # whatever it was, the next rollout must not meet it
                await finish(lent.give_back())
                raise
            self._free.append(lent)


class RuntimeLease:
    """One runtime, held open by an asyncio task: a provider may insist that one task opens and closes it."""

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
                if opened.done():  # the caller is gone
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
