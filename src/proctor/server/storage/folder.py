"""A folder as the store of files. Knows nothing of what they are."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

from proctor.server.private_files import FILE_MODE, FOLDER_MODE, make_private_folder
from proctor.server.storage.contract import StoredObject
from proctor.support.byte_blocks import BLOCK_BYTES

ADDRESS = "folder"
SHELF = re.compile(r"[0-9a-f]{2}")
LISTED_AT_ONCE = 1_000
LEFTOVER_SECONDS = 3600.0
"""No upload that is under way, at this server or at another, has been silent for this long."""


class FolderStore:
    """Files in a folder, a level of subfolders below it."""

    address = ADDRESS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.incoming = folder / "incoming"
        make_private_folder(folder)
        make_private_folder(self.incoming)
        remove_older(self.incoming, LEFTOVER_SECONDS)  # of servers that were killed during an upload

    def path(self, key: str) -> Path:
        return self.folder / key

    async def put(self, key: str, file: Path) -> None:
        await asyncio.to_thread(self._put, key, file)

    def _put(self, key: str, file: Path) -> None:
        place, target = self.incoming / secrets.token_hex(8), self.path(key)
        try:
            copy_or_link(file, place)
            target.parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
            place.replace(target)
        finally:
            place.unlink(missing_ok=True)

    async def read(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes, None]:
        left = length
        with await asyncio.to_thread(self.path(key).open, "rb") as file:
            file.seek(start)
            while left != 0:
                wanted = BLOCK_BYTES if left is None else min(left, BLOCK_BYTES)
                if not (block := await asyncio.to_thread(file.read, wanted)):
                    return
                left = None if left is None else left - len(block)
                yield block

    async def find_size(self, key: str) -> int | None:
        try:
            return self.path(key).stat().st_size
        except FileNotFoundError:
            return None

    async def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.path(key).unlink(missing_ok=True)

    async def list_objects(self, folder: str = "") -> AsyncIterator[list[StoredObject]]:
        for shelf in sorted(self.folder.glob(f"{folder}*")):
            if SHELF.fullmatch(shelf.name) and shelf.is_dir() and not shelf.is_symlink():
                found = await asyncio.to_thread(list_files, shelf)
                for start in range(0, len(found), LISTED_AT_ONCE):
                    yield found[start : start + LISTED_AT_ONCE]

    async def sign(self, key: str, seconds: float) -> str | None:  # noqa: ARG002
        return None


def copy_or_link(file: Path, place: Path) -> None:
    """A second name for a file of the same disk, or a copy of one of another; durable when this returns."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copyfile(file, place)
    place.chmod(FILE_MODE)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def list_files(shelf: Path) -> list[StoredObject]:
    found = []
    for entry in os.scandir(shelf):
        if entry.is_file(follow_symlinks=False):
            state = entry.stat(follow_symlinks=False)
            found.append(StoredObject(f"{shelf.name}/{entry.name}", state.st_size, state.st_mtime))
    return found


def remove_older(folder: Path, seconds: float) -> None:
    """Remove the files that nothing was written to for this long."""
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < time.time() - seconds:
                file.unlink()
