"""Threads for code that blocks, so that it never stalls the loop.

The standard executor costs ten times as much per hop, hangs on a StopIteration, and keeps a process
alive until its slowest job is done; a grader stuck in a thread must not keep the process from exiting.
In a rush jobs are handed over together, and results come back together: waking a thread is what costs.
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
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

RUSH_SECONDS = 0.001
WATCH_SECONDS = 0.003
FEWEST = 4
MOST = 1024

AWAITED, DISMISSED = True, False
"""What a thread is woken for: there are jobs, or there will be none."""


def recommended_max_workers(concurrency: int) -> int:
    """Threads for so many concurrent rollouts: one each, within reason, since most of them wait."""
    return max(FEWEST, min(concurrency, MOST))


class ThreadJob(NamedTuple):
    home: LoopMailbox
    future: asyncio.Future[Any]
    context: contextvars.Context
    function: Callable[[], Any]


class Threads:
    """A pool of daemon threads, grown on demand."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self._home: LoopMailbox | None = None
        self._started = 0
        self._reset()

    def __del__(self) -> None:
        self._dismiss()

    def _dismiss(self) -> None:
        """Have every thread end when its job is done."""
        for _ in range(self._started):
            self._wake.put(DISMISSED)

    def _reset(self) -> None:
        self._started = 0
        self._watched = False
        self._handed_at = 0.0
        self._collected: list[ThreadJob] = []
        self._jobs: deque[ThreadJob] = deque()
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def resize(self, most: int) -> None:
        self.most = most

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Run a function in a thread, with the caller's context variables."""
        home = self._running_loop()
        future: asyncio.Future[T] = home.loop.create_future()
        if not self._collected:
            soon = max(0.0, self._handed_at + RUSH_SECONDS - home.loop.time())
            home.loop.call_later(soon, self._hand_over, home)
        self._collected.append(ThreadJob(home, future, contextvars.copy_context(), function))
        return future

    async def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a blocking or async function and wait for its value."""
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value = await self.run(lambda: function(*args, **kwargs))
        return await value if inspect.isawaitable(value) else value

    def _hand_over(self, home: LoopMailbox) -> None:
        self._handed_at = home.loop.time()
        jobs, self._collected = self._collected, []
        home.busy += len(jobs)
        self._jobs.extend(jobs)
        if not self._watched:
            self._watch(home)
        for _ in range(min(len(jobs), self._started)):
            self._wake.put(AWAITED)

    def _watch(self, home: LoopMailbox) -> None:
        """One thread handles quick jobs; more are added when jobs queue and few finish."""
        if not self._started:
            self._start(1)
        if home.busy > self._started:
            self._watched = True
            home.delivered = 0
            home.loop.call_later(WATCH_SECONDS, self._look, home)

    def _look(self, home: LoopMailbox) -> None:
        self._watched = False
        waiting = home.busy - self._started
        if waiting > 0 and home.delivered < 2 * self._started:
            self._start(min(waiting, self._started, self.most - self._started))
        self._watch(home)

    def _start(self, count: int) -> None:
        for _ in range(count):
            self._started += 1
            work = threading.Thread(
                target=_work, args=(self._jobs, self._wake), daemon=True, name="proctor-blocking"
            )
            work.start()

    def _running_loop(self) -> LoopMailbox:
        """The running loop. Looking it up is a system call in Python 3.11, so the last one is cached: a
        thread runs only one loop at a time."""
        known = self._home
        if known is not None and known.thread == threading.get_ident() and known.loop.is_running():
            return known
        self._dismiss()  # they may be stuck with jobs of the last loop
        self._reset()
        self._home = LoopMailbox(asyncio.get_running_loop())
        return self._home


def _work(jobs: deque[ThreadJob], wake: queue.SimpleQueue[bool]) -> None:
    while True:
        try:
            job = jobs.popleft()
        except IndexError:
            if wake.get() is DISMISSED:
                return
            continue
        value: Any = None
        error: BaseException | None = None
        try:
            value = job.context.run(job.function)
        except BaseException as raised:
            error = raised
        home, future = job.home, job.future
        del job  # before its caller continues: a job may hold a whole rollout
        home.deliver(future, value, error)
        del home, future, value, error  # an idle thread keeps nothing alive, least of all its own pool


class LoopMailbox:
    """The loop that results go back to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
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
                self.loop.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop is closed: no caller is waiting
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
