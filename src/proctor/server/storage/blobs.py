"""Files by their hash: written once, completely or not at all, and never changed.

The database says which object of the store holds a file. What needs a file on the disk gets it there,
verified. Knows nothing of what the files are.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Row

from proctor.server.db.database import Database
from proctor.server.private_files import create_private, make_private_folder
from proctor.server.problems import TooLargeError
from proctor.server.storage import records
from proctor.server.storage.contract import BlobStore, StorageAwayError
from proctor.server.storage.local_copies import LocalCopies
from proctor.support.byte_blocks import BLOCK_BYTES, gather_blocks
from proctor.support.logs import log
from proctor.support.write_behind import WriteBehind

SHA256 = re.compile(r"[0-9a-f]{64}")
"""What a file may be requested by: nothing that could lead elsewhere."""


class Blob(NamedTuple):
    sha256: str
    size: int


class OpenBlob(NamedTuple):
    """A file to read from the store."""

    size: int
    blocks: AsyncGenerator[bytes, None]
    """Broken off before their end if they are not what was stored."""


class Blobs:
    """The server's files: in a store, and for a while on this disk."""

    def __init__(self, database: Database, store: BlobStore, incoming: Path, copies: LocalCopies) -> None:
        self.store = store
        self._database = database
        self._incoming = incoming
        self._copies = copies
        make_private_folder(incoming)
        for leftover in incoming.iterdir():  # of a server that was killed during an upload
            leftover.unlink(missing_ok=True)

    @property
    def is_on_this_disk(self) -> bool:
        return self.store.path("") is not None

    # Storing

    async def receive(self, chunks: AsyncIterator[bytes], most: int) -> Blob:
        """Store what arrives; keep nothing of an upload that is too large or breaks off."""
        place = self._incoming / secrets.token_hex(8)
        digest, size = hashlib.sha256(), 0

        def add(gathered: bytes) -> None:
            digest.update(gathered)
            file.write(gathered)

        def finish() -> None:
            file.flush()
            os.fsync(file.fileno())

        try:
            with create_private(place) as file:
                async with WriteBehind(add) as blocks:
                    async for gathered in gather_blocks(chunks):
                        size += len(gathered)
                        if size > most:
                            raise TooLargeError(
                                f"More than {most // 2**20} MB is too large to upload.", most_bytes=most
                            )
                        await blocks.put(gathered)
                await asyncio.to_thread(finish)
            return await self._keep(place, Blob(digest.hexdigest(), size))
        finally:
            place.unlink(missing_ok=True)

    async def add(self, data: bytes) -> Blob:
        async def one() -> AsyncIterator[bytes]:
            yield data

        return await self.receive(one(), len(data))

    async def adopt(self, file: Path) -> Blob:
        """Store a file that is on this machine."""
        return await self._keep(file, await asyncio.to_thread(measure_file, file))

    async def _keep(self, file: Path, blob: Blob) -> Blob:
        known = await self._database.write(records.touch_file, blob.sha256)
        if known is None or await self.store.find_size(known.key) != blob.size:
            await self._store(file, blob, known)
        if not self.is_on_this_disk:
            await self._copies.add(blob.sha256, file)
        return blob

    async def _store(self, file: Path, blob: Blob, known: Row[Any] | None) -> None:
        key = make_key(blob.sha256)
        await self.store.put(key, file)
        if known is not None:
            log.warning("The file %s was missing from the store, and has been restored.", blob.sha256)
            await self._database.write(records.move_file, blob.sha256, key)
            return
        kept = await self._database.write(records.save_file, blob.sha256, key, blob.size)
        if kept != key:
            await self.store.remove([key])

    # Reading

    async def find(self, sha256: str) -> Row[Any]:
        """Where a file is; FileNotFoundError if there is none."""
        row = None
        if SHA256.fullmatch(sha256) is not None:
            row = await self._database.read(records.find_file, sha256)
        if row is None:
            raise FileNotFoundError(sha256)
        return row

    async def open(self, sha256: str) -> OpenBlob:
        """A file to send; FileNotFoundError if there is none."""
        row = await self.find(sha256)
        blocks = verify(self.store.read(row.key), sha256)
        first = await anext(blocks, b"")  # a file that is missing is noticed before anything is sent
        return OpenBlob(row.size, put_before(first, blocks))

    async def read_part(self, sha256: str, start: int, length: int) -> bytes:
        """Some bytes of a file, in memory; FileNotFoundError if there is none."""
        key = (await self.find(sha256)).key
        return b"".join([block async for block in self.store.read(key, start, length)])

    async def sign(self, sha256: str, seconds: float) -> str | None:
        """An address to read the file from, for a while; None if the store has none."""
        return await self.store.sign((await self.find(sha256)).key, seconds)

    @asynccontextmanager
    async def local(self, sha256: str) -> AsyncIterator[Path]:
        """A file on this disk, for as long as the block lasts; FileNotFoundError if there is none."""
        row = await self.find(sha256)
        path = self.store.path(row.key)
        if path is not None:
            yield path
            return
        async with self._copies.hold(sha256, lambda: verify(self.store.read(row.key), sha256)) as copy:
            yield copy

    # Removing

    async def remove_unused(self, sha256s: Sequence[str]) -> None:
        """Remove those of the files that nothing refers to."""
        if not sha256s:
            return
        keys = await self._database.write(records.forget_unused, sha256s)
        try:
            await self.store.remove(keys)
        except StorageAwayError as error:
            log.warning("%d files stay in the store until its next cleanup: %s", len(keys), error)


def make_key(sha256: str) -> str:
    """A key that no other object has had or will have."""
    return f"{sha256[:2]}/{sha256}-{secrets.token_hex(4)}"


def measure_file(file: Path) -> Blob:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        os.fsync(opened.fileno())
    return Blob(digest.hexdigest(), size)


async def verify(blocks: AsyncIterable[bytes], sha256: str) -> AsyncGenerator[bytes, None]:
    """The same blocks; the last is kept back if they are not what was stored, so that no reader has a whole
    file that is damaged."""
    digest = hashlib.sha256()
    held = b""
    async for block in blocks:
        digest.update(block)
        if held:
            yield held
        held = block
    if digest.hexdigest() != sha256:
        raise StorageAwayError(f"The file {sha256[:12]}… is damaged in the store; restore it from a backup.")
    if held:
        yield held


async def put_before(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        if first:
            yield first
        async for block in rest:
            yield block
    finally:
        await rest.aclose()
