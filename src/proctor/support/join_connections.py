"""Join two connections: each gets what the other receives, no faster than it can take it.

Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast


async def dial(host: str, port: int) -> SplicedConnection:
    """Open a connection that can be joined with another."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(SplicedConnection, host, port))[1]


class SplicedConnection(asyncio.Protocol):
    """One of two joined connections."""

    def __init__(self, transport: asyncio.Transport | None = None) -> None:
        self.transport = transport
        self.other: SplicedConnection | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._early: list[bytes] = []
        """What arrived before the other end was joined."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own

    def join(self, other: SplicedConnection) -> None:
        self.other, other.other = other, self
        for end in (self, other):
            early, end._early = end._early, []
            for data in early:
                end.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        elif self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        there = None if self.other is None else self.other.transport
        if there is not None and there.can_write_eof() and not there.is_closing():
            there.write_eof()
        return True  # the other direction may continue

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            with suppress(RuntimeError):  # it is closing and no longer reads
                self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            with suppress(RuntimeError):
                self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if not self.closed.done():
            self.closed.set_result(None)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()
