"""Keep to the rates of an endpoint: requests and tokens per minute.

Waits before a request rather than being refused after it. Knows nothing of what requests say.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from proctor.contracts import Model, Request
from proctor.trace import Reply

MINUTE = 60.0
AHEAD_SECONDS = 3.0
"""How much of a minute's allowance may be used at once, so that a few requests need not queue."""
CHARACTERS_PER_TOKEN = 4
UNKNOWN_ANSWER_TOKENS = 256
"""Tokens that an answer is assumed to need before the first one arrives, if no limit is set."""


class TokenBucket:
    """An allowance that fills steadily; using it up makes the next one wait.

    What may be used at once is taken off the steady rest, so that no minute has more than was allowed.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds_each = (MINUTE + AHEAD_SECONDS) / per_minute
        self._clock = clock
        self._used_until = clock()

    def spend(self, amount: float = 1.0) -> None:
        """Use an amount, even before it is available; a negative amount is given back."""
        self._used_until = max(self._used_until, self._clock()) + amount * self.seconds_each

    def seconds_to_wait(self) -> float:
        return max(0.0, self._used_until - self._clock() - AHEAD_SECONDS)


class RateLimitedModel:
    """A model that is called no faster than its endpoint allows."""

    def __init__(
        self,
        model: Model,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._requests = None if requests_per_minute is None else TokenBucket(requests_per_minute, clock)
        self._tokens = None if tokens_per_minute is None else TokenBucket(tokens_per_minute, clock)
        self._usual: float | None = None
        """Tokens a request takes, by those that were answered lately."""

    @property
    def name(self) -> str:
        return self.model.name

    async def check(self) -> None:
        await self.model.check()

    async def complete(self, request: Request) -> Reply:
        expected = 0.0 if self._tokens is None else self._usual or estimate_tokens(request)
        await self.turn(expected)
        used = expected
        try:
            reply = await self.model.complete(request)
            used = reply.usage.input_tokens + reply.usage.output_tokens
            self._usual = used if self._usual is None else 0.9 * self._usual + 0.1 * used
            return reply
        finally:
            if self._tokens is not None:
                self._tokens.spend(used - expected)

    async def close(self) -> None:
        await self.model.close()

    async def turn(self, tokens: float) -> None:
        """Wait until the rates allow this request. It is charged first, so that requests queue in order."""
        costs = [(self._requests, 1.0), (self._tokens, tokens)]
        paid = [(meter, cost) for meter, cost in costs if meter is not None]
        for meter, cost in paid:
            meter.spend(cost)
        try:
            await asyncio.sleep(max(meter.seconds_to_wait() for meter, _ in paid))
        except asyncio.CancelledError:  # a request that left the queue has used nothing
            for meter, cost in paid:
                meter.spend(-cost)
            raise


def estimate_tokens(request: Request) -> float:
    """A rough guess, for as long as nothing was answered."""
    asked = sum(len(str(message.get("content", ""))) for message in request.messages)
    limit = request.sampling.get("max_tokens") or request.sampling.get("max_completion_tokens")
    return asked / CHARACTERS_PER_TOKEN + (limit if isinstance(limit, int) else UNKNOWN_ANSWER_TOKENS)
