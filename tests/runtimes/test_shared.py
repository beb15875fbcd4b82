"""Places that rollouts use in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor.errors import ConfigError, InfraError
from proctor.runtimes.runtime import Runtime
from proctor.runtimes.shared import Shared
from proctor.task import Task

TASK = Task(id=1)


class Counted:
    """A provider that counts its places, and insists that the task which opens one closes it."""

    def __init__(self, fails: int = 0) -> None:
        self.opened = self.closed = 0
        self.fails = fails

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise InfraError("no place today")
        self.opened += 1
        opener = asyncio.current_task()
        try:
            yield Runtime(f"tcp://127.0.0.1:{self.opened}")
        finally:
            assert asyncio.current_task() is opener
            self.closed += 1


def test_many_rollouts_share_a_few_places_that_are_closed_at_the_end() -> None:
    async def run() -> tuple[Counted, set[str]]:
        provider = Counted()
        shared = Shared(provider, width=3)
        urls = set()

        async def play() -> None:
            async with shared(TASK) as place:
                urls.add(place.url)
                await asyncio.sleep(0)

        await asyncio.gather(*(play() for _ in range(20)))
        assert provider.closed == 0
        await shared.close()
        return provider, urls

    provider, urls = asyncio.run(run())

    assert len(urls) <= 3
    assert provider.opened == provider.closed == len(urls)


def test_a_place_where_a_rollout_failed_is_not_used_again() -> None:
    async def run() -> list[str]:
        provider = Counted()
        shared = Shared(provider, width=1)
        urls = []
        for error in (None, ValueError("a mess"), None):
            try:
                async with shared(TASK) as place:
                    urls.append(place.url)
                    if error is not None:
                        raise error
            except ValueError:
                assert provider.closed == 1
        await shared.close()
        assert provider.opened == provider.closed == 2
        return urls

    first, second, third = asyncio.run(run())

    assert first == second != third


def test_a_place_that_cannot_be_made_fails_one_rollout_only() -> None:
    async def run() -> None:
        shared = Shared(Counted(fails=1), width=1)
        with pytest.raises(InfraError, match="no place today"):
            async with shared(TASK):
                pass
        async with shared(TASK) as place:
            assert place.url
        await shared.close()

    asyncio.run(run())


def test_a_rollout_that_is_cancelled_while_its_place_is_made_leaves_none() -> None:
    async def run() -> Counted:
        provider = Counted()
        shared = Shared(provider, width=1)
        for turns in range(6):
            entering = asyncio.ensure_future(entered(shared))
            for _ in range(turns):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait([entering])
        await shared.close()
        return provider

    async def entered(shared: Shared) -> None:
        async with shared(TASK):
            await asyncio.Event().wait()

    provider = asyncio.run(run())

    assert provider.opened == provider.closed


def test_no_places_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match="width of 0"):
        Shared(Counted(), width=0)
