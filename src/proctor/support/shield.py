"""Work that must be finished although the one who waits is cancelled: making and removing what costs money.

Knows nothing of what is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 30.0


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do the work to its end; a cancellation that came meanwhile is raised afterwards."""
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait([doing])
        except asyncio.CancelledError as error:  # Ctrl-C must not orphan a container, however often it is hit
            cancelled = error
    if cancelled is not None:
        if not doing.cancelled():
            doing.exception()  # seen, so that nobody is told of an error that nobody fetched
        raise cancelled
    return doing.result()


async def make_or_unmake(work: Coroutine[Any, Any, T], unmake: Callable[[T], Coroutine[Any, Any, None]]) -> T:
    """What the work makes; if the one who waits is cancelled, it is unmade as soon as it is there."""
    making = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await finish(unmake_when_made(making, unmake))
        raise


async def unmake_when_made(
    making: asyncio.Future[T], unmake: Callable[[T], Coroutine[Any, Any, None]]
) -> None:
    await asyncio.wait([making], timeout=GRACE_SECONDS)
    if not making.done():
        making.cancel()
        await asyncio.wait([making])
    if not making.cancelled() and making.exception() is None:
        await unmake(making.result())
