"""How much may happen at once, how a provider's 429 slows every request down, and when to send one again.

Knows counts and waiting. Knows nothing of what is being limited.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol

from proctor.errors import (
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    UnreachableError,
)

SHRINK = 0.8
GROW = 1.05
SETTLE_SECONDS = 5.0
"""After a cut, answers to requests sent before it do not cut again."""
PATIENCE = 8
"""How often one request is sent again before its rate limit becomes an error."""
LONGEST_WAIT_SECONDS = 120.0
FIRST_WAIT_SECONDS = 1.0
MOST_REPEATS = 4
"""How often one request is sent again after the provider failed on it."""
FIRST_REPEAT_SECONDS = 0.5
GATEWAY_TIMEOUT = 504


class ResizableSemaphore:
    """Lets at most `limit` through at once, first come first served."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.inside = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, permits: int = 1) -> None:
        """Wait until this many permits are free, and take them all at once."""
        if not self._waiting and self.inside + permits <= self.limit:
            self.inside += permits
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((permits, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(permits)  # granted at the same moment as the cancellation
            else:
                self._admit()  # those behind may need fewer
            raise

    def leave(self, permits: int = 1) -> None:
        self.inside -= permits
        self._admit()

    @asynccontextmanager
    async def hold(self, permits: int) -> AsyncIterator[None]:
        """Hold this many permits, or all there are: more than the limit at once get through alone."""
        held = min(permits, self.limit)
        await self.enter(held)
        try:
            yield
        finally:
            self.leave(held)

    def resize(self, limit: int) -> None:
        self.limit = max(1, limit)
        self._admit()

    async def __aenter__(self) -> None:
        await self.enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def _admit(self) -> None:
        while self._waiting:
            permits, turn = self._waiting[0]
            if not turn.done():
                if self.inside + permits > self.limit:
                    return
                self.inside += permits
                turn.set_result(None)
            self._waiting.popleft()


class Limiter(Protocol):
    """Entered before something may happen, and left afterwards."""

    async def enter(self) -> None: ...
    def leave(self) -> None: ...


class CombinedLimiter:
    """Several semaphores, entered one after the other and left together."""

    def __init__(self, *semaphores: ResizableSemaphore) -> None:
        self.semaphores = semaphores

    async def enter(self) -> None:
        passed: list[ResizableSemaphore] = []
        try:
            for semaphore in self.semaphores:
                await semaphore.enter()
                passed.append(semaphore)
        except BaseException:
            for semaphore in passed:
                semaphore.leave()
            raise

    def leave(self) -> None:
        for semaphore in self.semaphores:
            semaphore.leave()


class Throttle:
    """The pace of one provider: unlimited until it says 429, then cut, then slowly wider again.

    A cut takes the limit to four fifths of what was in flight, and once only for all requests that were
    under way together. Every clean round of answers widens it by a twentieth.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.semaphore: ResizableSemaphore | None = None
        self.in_flight = 0
        self.cuts = 0
        self._clock = clock
        self._clean = 0
        self._settled_at = 0.0

    def answered(self) -> None:
        """A request succeeded."""
        if self.semaphore is None:
            return
        self._clean += 1
        if self._clean >= self.semaphore.limit and self._clock() >= self._settled_at:
            self._clean = 0
            self.semaphore.resize(max(self.semaphore.limit + 1, int(self.semaphore.limit * GROW)))

    def refused(self, error: RateLimitError, resends: int) -> float | None:
        """Slow down. Returns how long this request should wait, or None if waiting is no use."""
        wait = self._wait_seconds(error, resends)
        now = self._clock()
        if now >= self._settled_at:
            self._settled_at = now + max(SETTLE_SECONDS, error.retry_after_seconds or 0.0)
            self.cuts += 1
            self._clean = 0
            limit = max(1, int(self.in_flight * SHRINK))
            if self.semaphore is None:
                self.semaphore = ResizableSemaphore(limit)
            else:
                self.semaphore.resize(min(limit, self.semaphore.limit))
        return wait

    @staticmethod
    def _wait_seconds(error: RateLimitError, resends: int) -> float | None:
        if resends >= PATIENCE:
            return None
        asked = error.retry_after_seconds
        if asked is not None:
            return None if asked > LONGEST_WAIT_SECONDS else asked * random.uniform(1.0, 1.1)
        return backoff_seconds(resends, FIRST_WAIT_SECONDS)


class RequestRepeats:
    """When one request that failed on the provider's side is sent again: a few times, with growing pauses,
    and only while the request's own time lasts."""

    def __init__(self, seconds: float | None, first_wait_seconds: float = FIRST_REPEAT_SECONDS) -> None:
        self._seconds_left = math.inf if seconds is None else seconds
        self._first_wait_seconds = first_wait_seconds
        self._made = 0

    def next_wait(self, error: ModelError, took_seconds: float) -> float | None:
        """How long to wait after a try that took so long; None if the request is not sent again."""
        if self._made >= MOST_REPEATS or not is_provider_failure(error):
            return None
        wait = getattr(error, "retry_after_seconds", None)
        if wait is None:
            wait = backoff_seconds(self._made, self._first_wait_seconds)
        self._seconds_left -= took_seconds + wait
        if self._seconds_left <= 0:
            return None
        self._made += 1
        return float(wait)


def is_provider_failure(error: ModelError) -> bool:
    """Whether the provider failed on a request (5xx, a broken connection) and may answer the same one."""
    if isinstance(error, ModelTimeoutError):  # our own time limit has no status: its time is used up
        return error.status == GATEWAY_TIMEOUT
    return isinstance(error, (OverloadedError, UnreachableError))


def backoff_seconds(tries: int, first: float, longest: float = 60.0) -> float:
    """Exponential, with enough jitter that rollouts which failed together do not return together."""
    return min(longest, first * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1.0)
