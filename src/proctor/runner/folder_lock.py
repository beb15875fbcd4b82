"""Lock folders to one process at a time; folders of a killed process are unlocked, and can be removed.

The lock is the kernel's, on the folder itself, and ends with its process. Knows nothing of what is in
folders.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from proctor.errors import InfraError
from proctor.isolation.untrusted_tree import discard_tree

LOOK_SECONDS = 0.1


def try_lock(folder: Path) -> int | None:
    """A file descriptor that holds the lock until it is closed; None if another process holds it, or the
    folder is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):  # not a removed and recreated one
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@asynccontextmanager
async def hold_folder(folder: Path, seconds: float) -> AsyncIterator[None]:
    """Create a folder if necessary, and hold its lock."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                folder.mkdir(mode=0o700, exist_ok=True)
                descriptor = try_lock(folder)
                if descriptor is not None:
                    break
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError as error:
        raise InfraError(f"Another process is still working in {folder.name} and does not end.") from error
    try:
        yield
    finally:
        os.close(descriptor)


def remove_unlocked(folder: Path) -> None:
    """Remove a folder unless it is locked. Blocks."""
    descriptor = try_lock(folder)
    if descriptor is not None:
        try:
            discard_tree(folder)
        finally:
            os.close(descriptor)


@contextmanager
def temporary_files_in_one_folder(prefix: str) -> Iterator[None]:
    """Keep all temporary files of this process and its children in one folder, and remove those of earlier
    processes that were killed. Blocks."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if leftover.lstat().st_uid == os.geteuid():
            remove_unlocked(leftover)
    descriptor = None
    while descriptor is None:  # another process may remove it as a leftover first
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        descriptor = try_lock(folder)
    folder.chmod(0o711)  # bubblewrap enters it as root without capabilities
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        discard_tree(folder)
        os.close(descriptor)
