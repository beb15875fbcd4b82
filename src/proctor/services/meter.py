"""Keep to the rates an endpoint's owner named: so many requests and tokens a minute.

Waits before a request rather than being refused after it. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from proctor.contracts import Model, Request
from proctor.trace import Reply

AHEAD_SECONDS = 3.0
"""How much of a minute's allowance may be used at once, so that a few requests need not queue."""


class Meter:
    """An allowance that fills steadily; using it up makes the next one wait."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds_each = 60.0 / per_minute
        self._clock = clock
        self._used_until = clock()

    def spend(self, amount: float = 1.0) -> None:
        self._used_until = max(self._used_until, self._clock()) + amount * self.seconds_each

    def seconds_to_wait(self) -> float:
        return max(0.0, self._used_until - self._clock() - AHEAD_SECONDS)


class Metered:
    """A model that is asked no faster than its endpoint allows."""

    def __init__(
        self, model: Model, requests_per_minute: float | None = None, tokens_per_minute: float | None = None
    ) -> None:
        self.model = model
        self._requests = None if requests_per_minute is None else Meter(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Meter(tokens_per_minute)

    @property
    def name(self) -> str:
        return self.model.name

    async def check(self) -> None:
        await self.model.check()

    async def complete(self, request: Request) -> Reply:
        if self._requests is not None:
            self._requests.spend()  # before the wait, so that those who wait queue up behind each other
            await asyncio.sleep(self._requests.seconds_to_wait())
        if self._tokens is not None:
            while (wait := self._tokens.seconds_to_wait()) > 0:
                await asyncio.sleep(wait)
        reply = await self.model.complete(request)
        if self._tokens is not None:
            self._tokens.spend(reply.usage.input_tokens + reply.usage.output_tokens)
        return reply

    async def close(self) -> None:
        await self.model.close()
