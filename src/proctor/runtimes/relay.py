"""A Unix socket on this machine whose connections are carried on by something else: a tunnel, a program.

Only the user it belongs to can open it. Knows nothing of what is said, nor of how the bytes travel.
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
"""Of characters: the path of a Unix socket has a little over a hundred."""


class FarEnd(Protocol):
    """The far end of one connection."""

    async def receive(self) -> bytes:
        """The next bytes, as they come; none when there will be no more."""

    async def send(self, data: bytes) -> None: ...
    async def end(self) -> None:
        """Say that nothing more will be sent."""


Connect = Callable[[], AbstractAsyncContextManager[FarEnd]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Carry = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_relay(
    connect: Connect, to: str = "a runtime", max_connections: int | None = None
) -> AsyncIterator[str]:
    """Gives the url of a socket; every connection to it gets a far end of its own."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with connect() as far:
            await splice_streams(reader, writer, far)

    async with open_unix_listener(carry, to, max_connections) as path:
        yield f"unix://{path}"


@asynccontextmanager
async def open_unix_listener(
    carry: Carry, to: str, max_connections: int | None = None
) -> AsyncIterator[Path]:
    """The path of a socket; each connection to it is carried until it is closed, or the block ends.

    Of more than `max_connections` as many again wait for their turn, and the rest are closed at once.
    """
    open_now: set[asyncio.Task[None]] = set()
    turns = contextlib.nullcontext() if max_connections is None else asyncio.Semaphore(max_connections)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if max_connections is not None and len(open_now) >= 2 * max_connections:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        try:
            async with turns:
                await carry(reader, writer)
        except asyncio.CancelledError:
            pass  # the relay is closed; a server's task that ends as cancelled would be reported as a failure
        except Exception as error:
            log.warning("a connection to %s could not be carried on: %s", to, error)
        finally:
            open_now.discard(task)
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
            for task in open_now:
                task.cancel()
            if open_now:
                await asyncio.wait(list(open_now))


def short_folder() -> str | None:
    return "/tmp" if len(tempfile.gettempdir()) > LONGEST_FOLDER else None


async def splice_streams(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: FarEnd) -> None:
    """Carry bytes both ways until the far end has said everything, or this end is gone."""

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
        else:  # an encrypted stream cannot be closed by half
            self._writer.close()


@asynccontextmanager
async def open_stream(connecting: Awaitable[Streams]) -> AsyncIterator[StreamFarEnd]:
    """The far end of a connection that is about to be made."""
    reader, writer = await connecting
    try:
        yield StreamFarEnd(reader, writer)
    finally:
        writer.close()
