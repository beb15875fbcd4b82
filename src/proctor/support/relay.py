"""Relay the connections of a Unix socket on this machine over something else: a tunnel, a program's pipes.

Only the socket's user can open it. Knows nothing of what the bytes mean, nor of how they travel.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from proctor.support.logs import log

PIECE = 64 * 1024
LONGEST_FOLDER = 80
"""Characters; the path of a Unix socket may have little more than a hundred."""


class FarEnd(Protocol):
    """The far end of one connection."""

    async def receive(self) -> bytes:
        """The next bytes as they arrive; empty at the end."""

    async def send(self, data: bytes) -> None: ...
    async def end(self) -> None:
        """Signal that nothing more will be sent."""


Connect = Callable[[], AbstractAsyncContextManager[FarEnd]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Carry = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_relay(
    connect: Connect, to: str = "a runtime", max_connections: int | None = None
) -> AsyncIterator[str]:
    """The URL of a socket; each connection to it gets a far end of its own."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with connect() as far:
            await splice_streams(reader, writer, far)

    async with open_unix_listener(carry, to, max_connections) as path:
        yield f"unix://{path}"


@asynccontextmanager
async def open_unix_listener(
    carry: Carry, to: str, max_connections: int | None = None
) -> AsyncIterator[Path]:
    """The path of a socket; `carry` handles each connection to it until that closes or the block ends.

    Of more than `max_connections` as many again wait for their turn, and the rest are closed at once.
    """
    handlers: set[asyncio.Task[None]] = set()
    turns = contextlib.nullcontext() if max_connections is None else asyncio.Semaphore(max_connections)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if max_connections is not None and len(handlers) >= 2 * max_connections:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            async with turns:
                await carry(reader, writer)
        except asyncio.CancelledError:
            pass  # the relay was closed; asyncio would log a cancelled handler as a failure
        except Exception as error:
            log.warning("a connection to %s broke off: %s", to, error)
        finally:
            handlers.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="proctor-", dir=short_folder()) as folder:
        path = Path(folder) / "channel.sock"
        server = await asyncio.start_unix_server(serve, path)
        try:
            yield path
        finally:
            server.close()
            for task in handlers:
                task.cancel()
            if handlers:
                await asyncio.wait(list(handlers))


def short_folder() -> str | None:
    return "/tmp" if len(tempfile.gettempdir()) > LONGEST_FOLDER else None


async def splice_streams(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: FarEnd) -> None:
    """Copy bytes both ways until the far end has sent everything, or this end is gone."""

    async def out() -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                await far.send(data)
            await far.end()

    sending = asyncio.ensure_future(out())
    try:
        with contextlib.suppress(OSError):
            while data := await far.receive():
                writer.write(data)
                await writer.drain()
    finally:
        sending.cancel()
        await asyncio.wait([sending])


class StreamFarEnd:
    """A far end made of two streams: of a socket, or of a program's pipes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes:
        return await self._reader.read(PIECE)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        else:  # an encrypted stream cannot be half-closed
            self._writer.close()


@asynccontextmanager
async def open_stream(connecting: Awaitable[Streams]) -> AsyncIterator[StreamFarEnd]:
    """The far end of a connection that is about to be established."""
    reader, writer = await connecting
    try:
        yield StreamFarEnd(reader, writer)
    finally:
        writer.close()
