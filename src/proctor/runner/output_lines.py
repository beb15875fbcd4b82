"""Stream a process's output line by line, within a host's memory.

A slow reader never blocks the process: the oldest lines that were not read in time are dropped, and a line
reports how many. Knows nothing of processes.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator

from proctor.support.lines import LineSplitter

LONGEST_LINE = 8_192
MOST_LINES = 10_000
LAST_LINES = 200
"""Enough for the stack of a crash, with all its threads."""
CHUNK_BYTES = 65_536


class OutputLines:
    """Lines from a pipe, and the last of them."""

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self._waiting: deque[str] = deque()
        self._left_out = 0
        self._news = asyncio.Event()
        self._ended = False
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> int:
        """The writing end: pass it on, then close it here."""
        ours, theirs = os.pipe()
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
        )
        self._reading = asyncio.create_task(self._read(reader, transport))
        return theirs

    async def end(self, seconds: float) -> None:
        """Wait for the last output; without a sandbox, a process that escaped may keep the pipe open."""
        if self._reading is not None and not self._reading.done():
            await asyncio.wait({self._reading}, timeout=seconds)
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            while self._left_out or self._waiting:
                if self._left_out:
                    count, self._left_out = self._left_out, 0
                    yield f"… {count:,} lines omitted: they came faster than they could be sent"
                else:
                    yield self._waiting.popleft()
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()

    async def _read(self, reader: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        splitter = LineSplitter(LONGEST_LINE, keeps_blank=True)
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                for line in splitter.feed(chunk):
                    self._add(line)
        finally:
            for line in splitter.finish():
                self._add(line)
            self._ended = True
            self._news.set()
            transport.close()

    def _add(self, text: str) -> None:
        self.last.append(text)
        self._waiting.append(text)
        if len(self._waiting) > MOST_LINES:
            self._waiting.popleft()
            self._left_out += 1
        self._news.set()
