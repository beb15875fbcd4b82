"""Deadlines for many tasks at the price of one timer.

A timer for each phase of each rollout costs more than most rollouts do; here one look every now and then
finds all that are late, at most a twentieth of their time (or a second) after the fact.
Knows nothing of what the tasks do.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType

FINEST_SECONDS = 0.01
COARSEST_SECONDS = 1.0
NEVER = math.inf
LOOKS = 20
"""How often at least a deadline is looked at before it is due."""
AGAIN_SECONDS = 60.0
"""Cancel again after this long."""


class Deadlines:
    """All deadlines of one run.

    The loop is remembered: in Python 3.11 finding the running loop takes a system call.
    """

    def __init__(self) -> None:
        self.running: set[Deadline] = set()
        self.shortest = NEVER
        """Deadlines shorter than this need to be looked at more often than is done now."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look: asyncio.TimerHandle | None = None
        self._every = COARSEST_SECONDS

    def within(self, seconds: float | None) -> Deadline:
        """A context that cancels its body when it takes longer, and then raises TimeoutError."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return Deadline(self, self._loop, seconds)

    def look_out_for(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """Look often enough for a deadline of so many seconds."""
        if self._look is not None:
            self._look.cancel()
        self._every = min(COARSEST_SECONDS, max(FINEST_SECONDS, seconds / LOOKS))
        self.shortest = 0.0 if self._every == FINEST_SECONDS else self._every * LOOKS
        self._look = loop.call_later(self._every, self._look_around, loop)

    def _look_around(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.running:
            self._look = None
            self.shortest = NEVER
            return
        now = loop.time()
        for deadline in [each for each in self.running if each.at <= now]:
            deadline.expire()
        self._look = loop.call_later(self._every, self._look_around, loop)


class Deadline:
    """One task's deadline, which may be moved while it runs."""

    __slots__ = ("_cancelling", "_task", "all", "at", "expired", "instead", "loop", "seconds")

    def __init__(self, deadlines: Deadlines, loop: asyncio.AbstractEventLoop, seconds: float | None) -> None:
        self.all = deadlines
        self.loop = loop
        self.seconds = seconds
        """What is counted now, or was last."""
        self.expired = 0
        """How often the task was cancelled."""
        self.instead: Callable[[], None] | None = None
        """Called instead of cancelling the task, as long as it is set."""

    def __enter__(self) -> Deadline:
        task = asyncio.current_task(self.loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self.all.running.add(self)
        self.move(self.seconds)
        return self

    def move(self, seconds: float | None) -> None:
        """Count anew from now, or not at all."""
        if seconds is None:
            self.at = NEVER
            return
        self.seconds = seconds
        self.at = self.loop.time() + seconds
        if seconds < self.all.shortest:
            self.all.look_out_for(seconds, self.loop)

    def expire(self) -> None:
        self.at = self.loop.time() + AGAIN_SECONDS
        if self.instead is not None:
            self.instead()
            return
        self.expired += 1
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.all.running.discard(self)
        if not self.expired:
            return
        left = [self._task.uncancel() for _ in range(self.expired)]
        ours_alone = left[-1] <= self._cancelling
        if ours_alone and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error
