"""A second event loop in a thread of its own, for what must go on while somebody's code holds up the first.

Knows nothing of what goes on there.
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
    """Takes what is to be done there, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def soon(self, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """From any thread; nobody waits for it."""
        self._loop.call_soon_threadsafe(work, *args)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """From another loop, which is free meanwhile."""
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
