"""Run a user's function in a thread and an event loop of its own.

Whatever it blocks, it blocks for itself alone: not the caller's loop, and not another user's function. A
coroutine is cancelled with its caller; a thread that does not stop is left behind, and does not keep the
process alive. Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

LEAVING_SECONDS = 2.0


async def run_in_own_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and await what it returns if that is awaitable, in a new thread."""
    call = OwnThreadCall(function, args)
    call.start()
    try:
        await asyncio.wait({call.result})
    except asyncio.CancelledError:
        if call.cancel():
            await asyncio.wait({call.result}, timeout=LEAVING_SECONDS)
        call.abandon()
        raise
    return call.result.result()


class OwnThreadCall:
    """One call in its thread."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        self._home = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._home.create_future()
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        context = contextvars.copy_context()
        work = threading.Thread(target=context.run, args=(self._work,), daemon=True, name="proctor-user-code")
        work.start()

    def cancel(self) -> bool:
        """Ask a coroutine to stop. Returns whether there is one to ask."""
        with self._lock:
            self._is_cancelled = True
            loop, task = self._loop, self._task
        if loop is None or task is None:
            return False
        with suppress(RuntimeError):  # the loop is closed: it has ended
            loop.call_soon_threadsafe(task.cancel)
        return True

    def abandon(self) -> None:
        """Discard the result: no caller waits for it any more."""
        if self.result.done() and not self.result.cancelled():
            self.result.exception()
        else:
            self.result.cancel()

    def _work(self) -> None:
        try:
            value = self._function(*self._args)
            if inspect.isawaitable(value):
                with asyncio.Runner() as runner:
                    runner.run(self._wait_for(value))
            else:
                self._deliver(value, None)
        except BaseException as error:
            self._deliver(None, error)

    async def _wait_for(self, value: Awaitable[Any]) -> None:
        """Deliver at once: closing the loop may wait for threads of its own."""
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._is_cancelled and self._task is not None:
                self._task.cancel()
        self._deliver(await value, None)

    def _deliver(self, value: Any, error: BaseException | None) -> None:
        if isinstance(error, (asyncio.CancelledError, StopIteration)):  # a future cannot hold these
            error, cause = RuntimeError(f"{type(error).__name__} was raised"), error
            error.__cause__ = cause
        with suppress(RuntimeError):  # the loop is closed: no caller is waiting
            self._home.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.result.done():
            return
        if error is None:
            self.result.set_result(value)
        else:
            self.result.set_exception(error)
