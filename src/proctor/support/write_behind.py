"""Write blocks in a thread, one after another, while the next one is received. Knows nothing of files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType


class WriteBehind:
    """At most one block is being written while another is received: memory stays bounded.

    The block of the `async with` ends when nothing is being written any more.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> WriteBehind:
        return self

    async def put(self, block: bytes) -> None:
        """Start writing a block, after the one before; raises what that one raised."""
        await self.flush()
        self._writing = asyncio.create_task(asyncio.to_thread(self._write, block))

    async def flush(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await asyncio.shield(writing)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writing = self._writing
        if writing is not None:
            await asyncio.wait({writing})  # the file must not be closed before
            if kind is None:
                await writing
            elif not writing.cancelled():
                writing.exception()
