"""What has arrived of uploads: a file of this disk each, or objects of the store, which all servers see.

With an object store each part is an object, named by where it begins, so that the next part may come to
another server. Knows nothing of HTTP or of the database.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from proctor.server.private_files import FILE_MODE, make_private_folder
from proctor.server.problems import ConflictError, InvalidError
from proctor.server.storage.contract import BlobStore, StoredObject
from proctor.server.storage.garbage import UPLOADS
from proctor.support.byte_blocks import BLOCK_BYTES

KEPT_SECONDS = 86_400.0
SILENCE_SECONDS = 20.0
MOST_PARTS = 10_000
"""Of one upload in an object store, which lists them before each."""


class UploadParts(Protocol):
    """What has arrived of each upload."""

    def turn(self, upload_id: str) -> asyncio.Lock:
        """Held while an upload is written or finished."""

    def alone(self, upload_id: str, /) -> AbstractContextManager[None]:
        """Refuse to continue while another server writes or finishes an upload."""

    async def received(self, upload_id: str) -> int: ...

    async def append(self, upload_id: str, offset: int, size: int, chunks: AsyncIterator[bytes]) -> None:
        """Write a part at the end of what has arrived. What was written before a connection breaks stays."""

    def whole(self, upload_id: str) -> AbstractAsyncContextManager[Path]:
        """Everything that has arrived, as a file for as long as the block lasts."""

    async def remove(self, upload_id: str) -> None: ...

    async def remove_old(self, now: float) -> None:
        """Remove what is left on this disk of uploads that were dropped."""


class Turns:
    """A lock for each upload that is in use."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, upload_id: str) -> asyncio.Lock:
        return self._turns.setdefault(upload_id, asyncio.Lock())


class PartFiles(Turns):
    """One file for each upload, which grows."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        make_private_folder(folder)

    def _path(self, upload_id: str) -> Path:
        return self._folder / upload_id

    @contextmanager
    def alone(self, upload_id: str, /) -> Iterator[None]:
        file = os.open(self._path(upload_id), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ConflictError(
                "Another part of this upload is arriving; wait for it.", code="in_use"
            ) from None
        finally:
            os.close(file)

    async def received(self, upload_id: str) -> int:
        try:
            return self._path(upload_id).stat().st_size
        except FileNotFoundError:
            return 0

    async def append(self, upload_id: str, offset: int, size: int, chunks: AsyncIterator[bytes]) -> None:
        check_offset(await self.received(upload_id), offset)
        await write_part(self._path(upload_id), chunks, size - offset, size)

    @asynccontextmanager
    async def whole(self, upload_id: str) -> AsyncIterator[Path]:
        yield self._path(upload_id)

    async def remove(self, upload_id: str) -> None:
        self._path(upload_id).unlink(missing_ok=True)

    async def remove_old(self, now: float) -> None:
        await asyncio.to_thread(remove_old_files, self._folder, now)


class PartObjects(Turns):
    """One object for each part."""

    def __init__(self, store: BlobStore, folder: Path) -> None:
        super().__init__()
        self._store = store
        self._folder = folder
        make_private_folder(folder)

    def alone(self, _: str, /) -> AbstractContextManager[None]:
        """Parts are objects of their own, so that servers do not get in each other's way."""
        return nullcontext()

    async def received(self, upload_id: str) -> int:
        return find_end(await self._parts(upload_id))

    async def append(self, upload_id: str, offset: int, size: int, chunks: AsyncIterator[bytes]) -> None:
        parts = await self._parts(upload_id)
        check_offset(find_end(parts), offset)
        if len(parts) >= MOST_PARTS:
            raise ConflictError(
                f"This upload has {MOST_PARTS:,} parts, the most there may be; cancel it, and send larger "
                f"ones.",
                code="too_many",
            )
        part = self._folder / secrets.token_hex(8)
        try:
            await write_part(part, chunks, size - offset, size)
        finally:
            if part.exists() and 0 < part.stat().st_size <= size - offset:
                await self._store.put(f"{UPLOADS}{upload_id}/{offset:020}", part)
            part.unlink(missing_ok=True)

    @asynccontextmanager
    async def whole(self, upload_id: str) -> AsyncIterator[Path]:
        file = self._folder / secrets.token_hex(8)
        try:
            for part in await self._parts(upload_id):
                await write_part(file, self._store.read(part.key), part.size, part.size)
            yield file
        finally:
            file.unlink(missing_ok=True)

    async def remove(self, upload_id: str) -> None:
        found = [part.key async for page in self._store.list_objects(UPLOADS + upload_id) for part in page]
        await self._store.remove(found)

    async def remove_old(self, now: float) -> None:
        """Objects of uploads that were dropped are garbage of the store."""
        await asyncio.to_thread(remove_old_files, self._folder, now)

    async def _parts(self, upload_id: str) -> list[StoredObject]:
        """Those that follow on each other, from the beginning."""
        pages = [page async for page in self._store.list_objects(UPLOADS + upload_id)]
        following: list[StoredObject] = []
        reached = 0
        for part in sorted(part for page in pages for part in page):
            if begins_at(part) != reached:
                break
            following.append(part)
            reached += part.size
        return following


def begins_at(part: StoredObject) -> int:
    return int(part.key.rpartition("/")[2])


def find_end(parts: Sequence[StoredObject]) -> int:
    return begins_at(parts[-1]) + parts[-1].size if parts else 0


def check_offset(received: int, offset: int) -> None:
    if offset != received:
        raise ConflictError(
            f"{received:,} bytes have arrived, and this part begins at {offset:,}; continue at {received:,}.",
            code="wrong_offset",
            received=received,
        )


async def write_part(path: Path, chunks: AsyncIterator[bytes], most: int, announced: int) -> None:
    """Add what arrives to the end of a file."""
    written = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    with os.fdopen(descriptor, "ab", buffering=BLOCK_BYTES) as file:
        async for chunk in until_silent(chunks):
            written += len(chunk)
            if written > most:
                raise InvalidError(f"The file was announced with {announced:,} bytes, and this is more.")
            await asyncio.to_thread(file.write, chunk)


def remove_old_files(folder: Path, now: float) -> None:
    for path in folder.iterdir():
        if path.stat().st_mtime < now - KEPT_SECONDS:
            path.unlink(missing_ok=True)


async def until_silent(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A connection that was cut without a word must not keep the next one waiting."""
    source = aiter(chunks)
    while True:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                chunk = await anext(source)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise InvalidError(
                f"Nothing arrived for {SILENCE_SECONDS:.0f} seconds; continue after what has arrived."
            ) from error
        yield chunk
