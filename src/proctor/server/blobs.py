"""Files by their hash: written once, completely or not at all, and never changed.

Knows nothing of what they are.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from proctor.server.private_files import FOLDER_MODE, create_private, make_private_folder
from proctor.server.problems import TooLargeError
from proctor.support.write_behind import WriteBehind

BLOCK_BYTES = 2**20
SHA256 = re.compile(r"[0-9a-f]{64}")
"""What a file may be requested by: nothing that could lead elsewhere."""


class Blob(NamedTuple):
    sha256: str
    size: int


class Blobs:
    """A folder of files named by their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.incoming = folder / "incoming"
        make_private_folder(folder)
        make_private_folder(self.incoming)
        for leftover in self.incoming.iterdir():  # of a server that was killed during an upload
            leftover.unlink(missing_ok=True)

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        return SHA256.fullmatch(sha256) is not None and self.path(sha256).is_file()

    async def receive(self, chunks: AsyncIterator[bytes], most: int) -> Blob:
        """Store what arrives; keep nothing of an upload that is too large or breaks off."""
        place = self.incoming / secrets.token_hex(8)
        digest, size = hashlib.sha256(), 0

        def add(gathered: bytes) -> None:
            digest.update(gathered)
            file.write(gathered)

        def finish() -> str:
            file.flush()
            os.fsync(file.fileno())
            return self._keep(place, digest.hexdigest())

        try:
            with create_private(place) as file:
                async with WriteBehind(add) as blocks:
                    async for gathered in batch_chunks(chunks):
                        size += len(gathered)
                        if size > most:
                            raise TooLargeError(
                                f"More than {most // 2**20} MB is too large to upload.", most_bytes=most
                            )
                        await blocks.put(gathered)
                return Blob(await asyncio.to_thread(finish), size)
        finally:
            place.unlink(missing_ok=True)

    def put(self, data: bytes) -> Blob:
        sha256 = hashlib.sha256(data).hexdigest()
        place = self.incoming / secrets.token_hex(8)
        with create_private(place) as file:
            file.write(data)
        return Blob(self._keep(place, sha256), len(data))

    def remove(self, sha256: str) -> None:
        self.path(sha256).unlink(missing_ok=True)

    def _keep(self, place: Path, sha256: str) -> str:
        target = self.path(sha256)
        target.parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
        place.replace(target)
        return sha256


async def batch_chunks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Buffered, so that each hop to a thread is worthwhile."""
    gathered, size = [], 0
    async for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)
