"""Deadlines for many tasks at the price of one timer.

A timer for each phase of each rollout costs more than most rollouts do; here one look every now and then
finds all that are late, at most a twentieth of their time (or a second) after the fact.
Knows nothing of what the tasks do.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

FINEST_SECONDS = 0.01
COARSEST_SECONDS = 1.0


class Deadlines:
    """All deadlines of one run."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._look: asyncio.TimerHandle | None = None
        self._every = COARSEST_SECONDS

    def within(self, seconds: float | None) -> Deadline:
        """An async context that cancels its body when it takes longer, and then raises TimeoutError."""
        return Deadline(self, seconds)

    def watch(self, deadline: Deadline, seconds: float) -> None:
        self._running.add(deadline)
        every = min(COARSEST_SECONDS, max(FINEST_SECONDS, seconds / 20))
        if self._look is None or every < self._every:
            if self._look is not None:
                self._look.cancel()
            self._every = every
            self._look = asyncio.get_running_loop().call_later(every, self._look_around)

    def forget(self, deadline: Deadline) -> None:
        self._running.discard(deadline)

    def _look_around(self) -> None:
        if not self._running:
            self._look = None
            self._every = COARSEST_SECONDS
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for deadline in [each for each in self._running if each.at <= now]:
            deadline.expire()
        self._look = loop.call_later(self._every, self._look_around)


class Deadline:
    """One task's deadline, which may be moved while it runs."""

    __slots__ = ("_cancelling", "_loop", "_task", "all", "at", "expired", "seconds")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self.all = deadlines
        self.seconds = seconds
        self.expired = False
        self.at = 0.0

    async def __aenter__(self) -> Deadline:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._loop = asyncio.get_running_loop()
        if self.seconds is not None:
            self.at = self._loop.time() + self.seconds
            self.all.watch(self, self.seconds)
        return self

    def move(self, seconds: float | None) -> None:
        """Count anew from now, or not at all."""
        if self.expired:
            return
        self.all.forget(self)
        if seconds is not None:
            self.at = self._loop.time() + seconds
            self.all.watch(self, seconds)

    def expire(self) -> None:
        self.all.forget(self)
        self.expired = True
        self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.all.forget(self)
        if not self.expired:
            return
        ours_alone = self._task.uncancel() <= self._cancelling
        if ours_alone and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error
