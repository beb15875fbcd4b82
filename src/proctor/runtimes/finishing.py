"""Work that must be finished although the one who waits for it is cancelled: removing what costs money.

Knows nothing of what is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


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
