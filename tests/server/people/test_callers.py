"""Callers are cached for a moment, and never with permissions that have changed since."""

from __future__ import annotations

import asyncio

from proctor.server.people.callers import CallerCache
from proctor.server.people.tokens import Caller

ADMIN, DEMOTED = Caller(user="ada", is_admin=True), Caller(user="ada")


class Lookups:
    """A database that answers one lookup after the other, each when the test says so."""

    def __init__(self, *callers: Caller) -> None:
        self.callers = list(callers)
        self.pending: list[asyncio.Event] = []

    async def __call__(self) -> Caller:
        caller, may_answer = self.callers.pop(0), asyncio.Event()
        self.pending.append(may_answer)
        await may_answer.wait()
        return caller

    async def reach(self, count: int) -> None:
        while len(self.pending) < count:
            await asyncio.sleep(0)


async def answer(lookups: Lookups, number: int, request: asyncio.Task[Caller]) -> Caller:
    await lookups.reach(number)
    lookups.pending[number - 1].set()
    return await request


def test_requests_at_once_share_a_lookup_and_later_ones_need_none() -> None:
    async def main() -> None:
        cache, lookups = CallerCache(seconds=60), Lookups(ADMIN)
        first = asyncio.create_task(cache.find("token", lookups))
        second = asyncio.create_task(cache.find("token", lookups))
        assert await answer(lookups, 1, first) == await second == ADMIN
        assert await cache.find("token", lookups) == ADMIN

    asyncio.run(main())


def test_a_lookup_from_before_a_change_answers_no_later_request() -> None:
    async def main() -> None:
        cache, lookups = CallerCache(seconds=60), Lookups(ADMIN, DEMOTED)
        early = asyncio.create_task(cache.find("token", lookups))
        await lookups.reach(1)
        cache.forget()
        late = asyncio.create_task(cache.find("token", lookups))
        assert await answer(lookups, 2, late) == DEMOTED
        assert await answer(lookups, 1, early) == ADMIN
        assert await cache.find("token", lookups) == DEMOTED

    asyncio.run(main())
