"""A load balancer for tests: TCP connections in turn to the servers that are ready, none of them sticky.

As HAProxy does with `on-marked-down shutdown-sessions`, it cuts the connections of a server that stops
answering; a connection that cannot be made goes to the next.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from proctor.api.common import BASE

LOOK_SECONDS = 0.3
ANSWER_SECONDS = 1.5
PIECE = 65_536
PROBE = f"GET {BASE}/ready HTTP/1.1\r\nhost: balancer\r\nconnection: close\r\n\r\n".encode()


class Balancer:
    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = ports
        self.ready: set[int] = set()
        self.port = 0
        self._turns = itertools.count()
        self._open: dict[int, set[asyncio.StreamWriter]] = {port: set() for port in ports}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def run(self, started: threading.Event, ended: asyncio.Event) -> None:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        lookers = [asyncio.create_task(self._look_on(port)) for port in self.ports]
        started.set()
        await ended.wait()
        server.close()
        for looker in lookers:
            looker.cancel()
        for port in self.ports:
            self._cut(port)

    async def _look_on(self, port: int) -> None:
        while True:
            if await is_ready(port):
                self.ready.add(port)
            else:
                if port in self.ready:
                    self.ready.discard(port)
                if not await is_alive(port):
                    self._cut(port)
            await asyncio.sleep(LOOK_SECONDS)

    def _cut(self, port: int) -> None:
        for writer in self._open[port]:
            writer.transport.abort()

    async def _carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        port, far, forth = await self._connect()
        if far is None or forth is None:
            back.transport.abort()
            return
        both = {back, forth}
        self._open[port] |= both
        try:
            await asyncio.gather(copy(near, forth), copy(far, back))
        finally:
            self._open[port] -= both
            for writer in both:
                writer.transport.abort()

    async def _connect(self) -> tuple[int, asyncio.StreamReader | None, asyncio.StreamWriter | None]:
        turn = next(self._turns)
        ports = sorted(self.ready) or list(self.ports)
        for place in range(len(ports)):
            port = ports[(turn + place) % len(ports)]
            with suppress(OSError):
                return port, *(await asyncio.open_connection("127.0.0.1", port))
        return 0, None, None


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(PIECE):
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()


async def ask(port: int) -> bytes:
    """The first line of the answer to a probe; nothing if there is none in time."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(PROBE)
                return await reader.readline()
            finally:
                writer.transport.abort()
    return b""


async def is_ready(port: int) -> bool:
    return b" 200 " in await ask(port)


async def is_alive(port: int) -> bool:
    return await ask(port) != b""


@contextmanager
def balancing(ports: Sequence[int]) -> Iterator[Balancer]:
    balancer = Balancer(ports)
    started = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(balancer.run(started, ended)), daemon=True
    )
    thread.start()
    assert started.wait(10)
    try:
        yield balancer
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()
