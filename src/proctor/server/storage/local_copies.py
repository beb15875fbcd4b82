"""Copies of files on this disk, for what needs a file: bounded, the least recently used go first.

A copy that is in use stays. Knows nothing of where the files come from.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from proctor.server.private_files import create_private, make_private_folder
from proctor.server.storage.folder import copy_or_link
from proctor.support.byte_blocks import gather_blocks
from proctor.support.write_behind import WriteBehind


class LocalCopies:
    """Copies by name, of at most so many bytes in all."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._held: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        make_private_folder(folder)
        for leftover in folder.glob("*.part"):  # of a server that was killed during a download
            leftover.unlink(missing_ok=True)

    async def add(self, name: str, file: Path) -> None:
        """Keep a file that is on this disk already."""
        path = self._folder / name
        if not path.exists():
            part = self._part(name)
            await asyncio.to_thread(copy_or_link, file, part)
            part.replace(path)
            await asyncio.to_thread(self._make_room)

    @asynccontextmanager
    async def hold(self, name: str, fetch: Callable[[], AsyncIterator[bytes]]) -> AsyncIterator[Path]:
        """A copy, fetched if it is not there; once for all who want it at the same time."""
        self._held[name] += 1
        try:
            path = self._folder / name
            async with self._turns.setdefault(name, asyncio.Lock()):
                if not path.exists():
                    await self._fetch(name, path, fetch())
            os.utime(path)
            yield path
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]

    async def _fetch(self, name: str, path: Path, blocks: AsyncIterator[bytes]) -> None:
        part = self._part(name)
        try:
            with create_private(part) as file:

                def write(block: bytes) -> None:
                    file.write(block)

                async with WriteBehind(write) as writing:
                    async for block in gather_blocks(blocks):
                        await writing.put(block)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        await asyncio.to_thread(self._make_room)

    def _part(self, name: str) -> Path:
        return self._folder / f"{name}.{secrets.token_hex(4)}.part"

    def _make_room(self) -> None:
        found = []
        for entry in os.scandir(self._folder):
            if not entry.name.endswith(".part"):
                state = entry.stat()
                found.append((state.st_mtime, state.st_size, entry.name))
        size = sum(each[1] for each in found)
        for _, bytes_, name in sorted(found):
            if size <= self._most_bytes:
                return
            if name not in self._held:
                (self._folder / name).unlink(missing_ok=True)
                size -= bytes_
