"""Threads for code that blocks, so that it never stalls the loop.

The standard executor costs ten times as much per hop, hangs on a StopIteration, and keeps a process
alive until its slowest job is done; a grader stuck in a thread must not keep anybody from leaving.
Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

WATCH_SECONDS = 0.003
FEWEST = 4
MOST = 1024


def recommended_max_workers(concurrency: int) -> int:
    """Threads for so many rollouts at once: one each, within reason, for they mostly wait."""
    return max(FEWEST, min(concurrency, MOST))


class Threads:
    """A pool of daemon threads, grown on demand."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self._jobs: queue.SimpleQueue[tuple[_Loop, asyncio.Future[Any], Callable[[], Any]]] = (
            queue.SimpleQueue()
        )
        self._started = 0
        self._watched = False
        self._loop: _Loop | None = None

    def resize(self, most: int) -> None:
        self.most = most

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Run a function in a thread, with the caller's context variables."""
        loop = self._home()
        future: asyncio.Future[T] = loop.asyncio.create_future()
        loop.busy += 1
        if loop.busy > self._started and not self._watched:
            self._watch(loop)
        context = contextvars.copy_context()
        self._jobs.put((loop, future, lambda: context.run(function)))
        return future

    async def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that may be blocking or async, and wait for its value."""
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value = await self.run(lambda: function(*args, **kwargs))
        return await value if inspect.isawaitable(value) else value

    def _watch(self, loop: _Loop) -> None:
        """Quick jobs are done by one thread; where jobs wait and few get done, others are called in."""
        if not self._started:
            self._start(1)
        self._watched = True
        loop.delivered = 0
        loop.asyncio.call_later(WATCH_SECONDS, self._look, loop)

    def _look(self, loop: _Loop) -> None:
        self._watched = False
        waiting = loop.busy - self._started
        if waiting > 0:
            if loop.delivered < 2 * self._started:
                self._start(min(waiting, self._started, self.most - self._started))
            self._watch(loop)

    def _start(self, count: int) -> None:
        for _ in range(count):
            self._started += 1
            threading.Thread(target=self._work, daemon=True, name="proctor-blocking").start()

    def _home(self) -> _Loop:
        """The running loop. Asking for it is a system call in Python 3.11, so the last one is remembered:
        a thread runs only one loop at a time."""
        known = self._loop
        if known is not None and known.thread == threading.get_ident() and known.asyncio.is_running():
            return known
        self._loop = _Loop(asyncio.get_running_loop())
        return self._loop

    def _work(self) -> None:
        while True:
            loop, future, function = self._jobs.get()
            value: Any = None
            error: BaseException | None = None
            try:
                value = function()
            except BaseException as raised:
                error = raised
            loop.deliver(future, value, error)


class _Loop:
    """Where results go back to. Many results share one wake-up of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asyncio = loop
        self.thread = threading.get_ident()
        self.busy = 0
        self.delivered = 0
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._waking = False

    def deliver(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._done.append((future, value, error))
        if not self._waking:
            self._waking = True
            try:
                self.asyncio.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._waking = False

    def _drain(self) -> None:
        self._waking = False
        while self._done:
            future, value, error = self._done.popleft()
            self.busy -= 1
            self.delivered += 1
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            elif isinstance(error, StopIteration):
                future.set_exception(RuntimeError(f"StopIteration was raised: {error}"))
            else:
                future.set_exception(error)
