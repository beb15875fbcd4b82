"""A second event loop in its own thread, for work that must continue while other code blocks the first.

Knows nothing of that work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple

from proctor.support.loop import new_event_loop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CLOSING_SECONDS = 2.0


class SideLoop:
    """Queues work for the other thread, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def soon(self, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call it from any thread; it does not wait."""
        self._loop.call_soon_threadsafe(work, *args)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Call it from another event loop, which is not blocked."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


@contextmanager
def open_side_loop() -> Iterator[SideLoop]:
    loop = new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="aside", daemon=True)
    thread.start()
    try:
        yield SideLoop(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSING_SECONDS)
