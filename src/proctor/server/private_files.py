"""Files and folders that only the server's own user may read, whatever the umask or their creator.

What is in a private folder is private by itself too: folders are moved, copied and mounted elsewhere. Only
what the server writes is touched, never a folder that runs can write to. Knows nothing of what files hold.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from proctor.isolation.untrusted_tree import discard_tree
from proctor.support.logs import log

FILE_MODE, FOLDER_MODE = 0o600, 0o700
SANDBOX_FOLDER_MODE = 0o711
"""A sandbox enters the folders below as another user."""
OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    tighten(folder)


def empty_sandbox_folder(folder: Path) -> None:
    """Make an empty folder whose folders are bound into sandboxes; what a killed server left is removed."""
    discard_tree(folder)
    make_private_folder(folder)
    if folder.stat().st_uid == 0:
        folder.chmod(SANDBOX_FOLDER_MODE)


def create_private(path: Path) -> BinaryIO:
    """A new file to write to, private from the start."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE), "wb")


def claim_database(path: Path) -> None:
    """Make a SQLite file private before SQLite opens it, which copies its mode to its -wal and -shm.

    An existing one is not opened: closing it would release the locks that this process holds on it.
    """
    with suppress(FileExistsError):
        create_private(path).close()
    real = path.resolve()  # an operator may have linked it to another disk
    for each in (real, *(real.with_name(real.name + ending) for ending in ("-wal", "-shm", "-journal"))):
        tighten(each)


def tighten_data(data: Path) -> None:
    """Withdraw the access that an earlier version, or a copy with another umask, left to others."""
    tighten(data)
    for entry in data.iterdir():
        if not entry.is_dir():
            tighten(entry)
    for kept in (data / "blobs", data / "copies"):
        for folder in blob_folders(kept):
            tighten(folder)
            for entry in folder.iterdir():
                tighten(entry)


def blob_folders(blobs: Path) -> Iterator[Path]:
    if blobs.is_dir():
        yield blobs
        yield from (entry for entry in blobs.iterdir() if entry.is_dir() and not entry.is_symlink())


def tighten(path: Path) -> None:
    """Make a file or folder private to its owner; does nothing if it does not exist or is a link."""
    try:
        mode = path.lstat().st_mode
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and mode & OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("Others may be able to read %s: %s", path, error.strerror)
