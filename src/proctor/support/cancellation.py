"""Cancel a task and wait for its end; finish work although its caller is cancelled, such as removing what
costs money.

Knows nothing of what is created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 30.0


async def cancel_task(task: asyncio.Task[Any] | None) -> None:
    """Cancel a background task, if it was started, and wait until it has ended."""
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end; a cancellation that arrives meanwhile is raised afterwards."""
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait([doing])
        except (
            asyncio.CancelledError
        ) as error:  # Ctrl-C must not orphan a container, however often it is pressed
            cancelled = error
    if cancelled is not None:
        if not doing.cancelled():
            doing.exception()  # retrieved, so that asyncio does not log it as never retrieved
        raise cancelled
    return doing.result()


async def create_or_undo(work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
    """The result of the work; if the caller is cancelled, it is undone as soon as it exists."""
    creating = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        await finish(undo_when_created(creating, undo))
        raise


async def undo_when_created(
    creating: asyncio.Future[T], undo: Callable[[T], Coroutine[Any, Any, None]]
) -> None:
    await asyncio.wait([creating], timeout=GRACE_SECONDS)
    if not creating.done():
        creating.cancel()
        await asyncio.wait([creating])
    if not creating.cancelled() and creating.exception() is None:
        await undo(creating.result())
