"""What a follower of the feed has not read yet.

Knows nothing of where events come from, or of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from proctor.api.feed import FeedEvent

QUIET_SECONDS = 15.0
MOST_WAITING = 500


class FeedQueue:
    """The events for one follower; one that does not keep up is asked to read everything again."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[FeedEvent | None] = asyncio.Queue(MOST_WAITING)
        """None ends it."""

    def send(self, event: FeedEvent) -> None:
        if self._queue.full():
            self._drop_all()
            event = FeedEvent(kind="resync", at=event.at)
        self._queue.put_nowait(event)

    def end(self) -> None:
        self._drop_all()
        self._queue.put_nowait(None)

    async def events(self) -> AsyncIterator[FeedEvent | None]:
        """The events as they come; None after a while without any."""
        while True:
            try:
                event = await asyncio.wait_for(self._queue.get(), QUIET_SECONDS)
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event

    def _drop_all(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait()
