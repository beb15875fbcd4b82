"""A command's output within bounds: its beginning, its end, and how much is left out between.

Knows nothing of commands.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HEAD_BYTES = 250_000
TAIL_BYTES = 750_000
CHUNK_BYTES = 65_536
READING_SECONDS = 5.0
"""How long to wait for its end: without a sandbox, a stray process may keep the pipe open."""


class OutputBuffer:
    """Keeps the beginning and the end of what is read; or only the end, if head_bytes is 0."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._most = (head_bytes, tail_bytes)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    @property
    def total_bytes(self) -> int:
        """How much was read, whether it was kept or not."""
        return len(self._head) + len(self._tail) + self._left_out

    def add(self, chunk: bytes) -> None:
        room = self._most[0] - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        excess = len(self._tail) - self._most[1]
        if excess > CHUNK_BYTES:  # in large steps: each cut copies everything
            self._cut(excess)

    def text(self) -> str:
        self._cut(max(0, len(self._tail) - self._most[1]))
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        if self._left_out and self._most[0]:
            return f"{head}\n… {self._left_out:,} bytes left out …\n{tail}"
        return head + tail

    def _cut(self, excess: int) -> None:
        del self._tail[:excess]
        self._left_out += excess


class OutputPipe:
    """A pipe to print into, and its output. Not asyncio's own: with that, a process counts as running for as
    long as any process holds its pipe."""

    def __init__(self, pipe: int, reading: asyncio.Task[None], kept: OutputBuffer) -> None:
        self.pipe = pipe
        self._reading = reading
        self._kept = kept

    @classmethod
    @asynccontextmanager
    async def open(cls, kept: OutputBuffer | None = None) -> AsyncIterator[OutputPipe]:
        ours, theirs = os.pipe()
        reader, kept = asyncio.StreamReader(), kept or OutputBuffer()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
        )
        output = cls(theirs, asyncio.create_task(read_all(reader, kept)), kept)
        try:
            yield output
        finally:
            output.close_pipe()
            output._reading.cancel()
            transport.close()

    def close_pipe(self) -> None:
        """Close our copy of the writing end, once the command has its own."""
        pipe, self.pipe = self.pipe, -1
        if pipe >= 0:
            os.close(pipe)

    async def text(self) -> str:
        await asyncio.wait({self._reading}, timeout=READING_SECONDS)
        return self._kept.text()


async def read_all(reader: asyncio.StreamReader, kept: OutputBuffer) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        kept.add(chunk)
