"""Bytes in blocks that are worth a hop to a thread."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

BLOCK_BYTES = 2**20


async def gather_blocks(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """What arrives, put together until it fills a block."""
    gathered, size = [], 0
    async for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)
