"""A TCP relay in front of a server: whatever a network can do to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Mode = Literal["pass", "silent", "slow", "gone"]
BLOCK = 65_536
SLOW_BYTES_PER_SECOND = 4 * 2**20


class Relay:
    """Passes bytes on, holds them back, or refuses connections."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.mode: Mode = "pass"
        self.passed = 0
        """Bytes, both ways."""
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._writers: set[asyncio.StreamWriter] = set()

    def become(self, mode: Mode) -> None:
        """Also for the connections that are open; those of a relay that is gone are cut."""
        self.mode = mode
        if mode == "gone":
            self._loop.call_soon_threadsafe(self._cut)

    def become_later(self, mode: Mode, seconds: float) -> None:
        self._loop.call_soon_threadsafe(lambda: self._loop.call_later(seconds, self.become, mode))

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "gone":
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            for each in (writer, back):
                self._writers.discard(each)
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while block := await reader.read(BLOCK):
                while self.mode == "silent":
                    await asyncio.sleep(0.02)
                if self.mode == "slow":
                    await asyncio.sleep(len(block) / SLOW_BYTES_PER_SECOND)
                writer.write(block)
                self.passed += len(block)
                await writer.drain()
            writer.close()

    async def main(self, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stopping.wait()
        server.close()
        self.mode = "pass"
        self._cut()
        await asyncio.sleep(0.05)  # the connections that were cut end

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    made, ready = Relay(port), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(made.main(ready)), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield made
    finally:
        made.stop()
        thread.join(10)
