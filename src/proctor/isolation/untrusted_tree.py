"""Read, measure, hand over and remove folders that untrusted code could write, without trusting any name in
them.

The folder itself is inside one of ours, so its own path can be trusted. Below it nothing is reached by path:
every step goes from an open folder to one name in it, and no step follows a link. Whatever is swapped in the
meantime, only the folder's own content is touched, and nothing that could block is opened.

Everything here blocks: call it in a thread. Knows nothing of runs, sandboxes or virtual environments.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from proctor.support.logs import log

BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system."""
ENTRY_BYTES = 4_096
"""What an entry without content counts as: a million of them fill a disk too, and are slow to measure."""
MAX_DEPTH = 200
"""Every level of a walk costs a file descriptor; no legitimate tree is this deep."""
REMOVAL_SECONDS = 300.0
"""Enough for millions of files; a folder that takes longer is being filled while it is emptied."""
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
O_PATH: int | None = getattr(os, "O_PATH", None)


class UntrustedFileError(Exception):
    """A file that is not what it should be: a link, a device, another user's, or too large."""


class TooDeepError(Exception):
    """A tree with more levels than any legitimate one."""


class TreeEntry(NamedTuple):
    """An entry of a tree, valid until the walk continues."""

    folder: int
    """A file descriptor of the folder it is in."""
    name: str
    path: str
    """Relative to the root of the walk."""
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


class Level(NamedTuple):
    """A folder between the root and the current position of a walk."""

    descriptor: int
    path: str
    mode: int | None
    """The mode to restore when the walk leaves it; None if it was not changed."""
    folders: list[str]
    """Names in it that the walk has yet to enter."""

    def close(self) -> None:
        if self.mode is not None:
            with suppress(OSError):
                os.fchmod(self.descriptor, self.mode)
        os.close(self.descriptor)


# Opening


@contextmanager
def open_root(folder: Path) -> Iterator[int]:
    """A file descriptor of a folder whose own path is ours."""
    descriptor = os.open(folder, OPEN_FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(parent: int, name: str) -> int:
    return os.open(name, OPEN_FOLDER, dir_fd=parent)


def open_shut_folder(parent: int, name: str) -> tuple[int, int | None]:
    """Open a folder even if its owner made it inaccessible; also returns the mode it had in that case."""
    with suppress(PermissionError):
        descriptor = open_folder(parent, name)
        if os.access(".", os.R_OK | os.X_OK, dir_fd=descriptor, effective_ids=True):
            return descriptor, None
        os.close(descriptor)
    mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    make_accessible(parent, name)
    return open_folder(parent, name), mode


def make_accessible(parent: int, name: str) -> None:
    """Give the owner access to a folder, and never to the target of a link."""
    if O_PATH is None:
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    handle = os.open(name, O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)  # the only way on Linux for what cannot be opened
    finally:
        os.close(handle)


@contextmanager
def open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The folder that holds the last part of a path, and the name of that part."""
    *folders, name = path.split("/")
    descriptor = os.dup(root)
    try:
        for folder in folders:
            inner = open_folder(descriptor, folder)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


@contextmanager
def open_file(root: int, path: str) -> Iterator[int]:
    """A file descriptor of a regular file below an open folder; anything else is an UntrustedFileError.

    Checked both before it is opened, since opening a device may have an effect, and after.
    """
    with open_parent(root, path) as (folder, name):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise UntrustedFileError(f"{path} is not a regular file")
        descriptor = os.open(name, OPEN_FILE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UntrustedFileError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


# Reading


def read_file(folder: Path, name: str, max_bytes: int) -> bytes:
    """The whole content of a file that the folder's owner wrote there.

    Raises FileNotFoundError if there is none, and UntrustedFileError if it is anything but such a file.
    """
    try:
        with open_root(folder) as root, open_file(root, name) as descriptor:
            status, owner = os.fstat(descriptor), os.fstat(root).st_uid
            if status.st_uid != owner or status.st_nlink != 1:
                raise UntrustedFileError(f"{name} was not written by the folder's owner")
            content = read_at_most(descriptor, max_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UntrustedFileError(f"{name} cannot be read: {error.strerror}") from error
    if len(content) > max_bytes:
        raise UntrustedFileError(f"{name} is larger than {max_bytes:,} bytes")
    return content


def read_at_most(descriptor: int, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    while max_bytes > 0 and (chunk := os.read(descriptor, min(max_bytes, 2**20))):
        chunks.append(chunk)
        max_bytes -= len(chunk)
    return b"".join(chunks)


# Walking


def walk(root: int, ignored: Collection[str] = ()) -> Iterator[TreeEntry]:
    """Everything below an open folder, each folder before its content; `ignored` folders are not entered.

    Skips entries that disappear in the meantime. Raises TooDeepError.
    """
    levels = [Level(os.dup(root), "", None, [])]
    try:
        yield from scan(levels[-1], ignored)
        while levels:
            level = levels[-1]
            if not level.folders:
                levels.pop().close()
                continue
            name = level.folders.pop()
            if len(levels) == MAX_DEPTH:
                raise TooDeepError(f"{level.path}{name}")
            with suppress(OSError):
                descriptor, mode = open_shut_folder(level.descriptor, name)
                levels.append(Level(descriptor, f"{level.path}{name}/", mode, []))
                yield from scan(levels[-1], ignored)
    finally:
        for level in reversed(levels):
            level.close()


def scan(level: Level, ignored: Collection[str]) -> Iterator[TreeEntry]:
    with os.scandir(level.descriptor) as found:
        for item in found:
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue
            entry = TreeEntry(level.descriptor, item.name, level.path + item.name, status)
            if entry.is_folder and item.name not in ignored:
                level.folders.append(item.name)
            yield entry


def occupied_bytes(folders: Iterable[Path], enough: int) -> int:
    """The disk space that folders really occupy, counting a file with many names once; stops above
    `enough`."""
    total = 0
    known: set[tuple[int, int]] = set()
    for folder in folders:
        with suppress(FileNotFoundError), open_root(folder) as root:
            try:
                for entry in walk(root):
                    status = entry.status
                    if not entry.is_folder and status.st_nlink > 1:
                        if (status.st_dev, status.st_ino) in known:
                            continue
                        known.add((status.st_dev, status.st_ino))
                    total += max(status.st_blocks * BLOCK_BYTES, ENTRY_BYTES)
                    if total > enough:
                        return total
            except TooDeepError:
                return enough + 1
    return total


# Changing


def change_owner(folder: Path, uid: int, gid: int) -> None:
    """Give everything in a folder to a user. A tree that is too deep is handed over only in part."""
    ours = os.geteuid()
    with open_root(folder) as root, suppress(TooDeepError):
        for entry in walk(root):
            status = entry.status
            if status.st_uid == uid:
                continue
            if status.st_uid == ours and status.st_nlink > 1 and not entry.is_folder:
                continue  # another of its names may be among our own files
            with suppress(FileNotFoundError):
                os.chown(entry.name, uid, gid, dir_fd=entry.folder, follow_symlinks=False)


def remove_tree(folder: Path, timeout_seconds: float = REMOVAL_SECONDS) -> None:
    """Remove a folder and everything in it, whatever was done to prevent that.

    A folder that does not exist is fine. Raises OSError if something remains, as when the folder is filled as
    fast as it is emptied.
    """
    try:
        with open_root(folder) as root:
            empty_folder(root, Removal(root, time.monotonic() + timeout_seconds), 0)
        folder.rmdir()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        folder.unlink(missing_ok=True)


def discard_tree(folder: Path) -> None:
    """Remove as much as possible of a folder that is no longer needed, and log what remains."""
    try:
        remove_tree(folder)
    except OSError as error:
        log.error("could not remove all of %s (%s); remove it by hand", folder, error.strerror)


class Removal(NamedTuple):
    """What every level of a removal must know."""

    root: int
    """A file descriptor of the folder to remove."""
    deadline: float

    def is_late(self) -> bool:
        return time.monotonic() >= self.deadline


def empty_folder(folder: int, removal: Removal, depth: int) -> None:
    """Remove the content of an open folder, in as many passes as make progress in time."""
    with suppress(OSError):
        os.fchmod(folder, stat.S_IRWXU)
    removed = True
    while removed:
        removed = False
        with os.scandir(folder) as found:
            for item in found:
                if removal.is_late():
                    return
                with suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        remove_folder(folder, item.name, removal, depth)
                    else:
                        os.unlink(item.name, dir_fd=folder)
                    removed = True


def remove_folder(parent: int, name: str, removal: Removal, depth: int) -> None:
    """Remove one folder in an open one. What is too deep is moved up to the root, where a later pass finds
    it."""
    descriptor, _ = open_shut_folder(parent, name)
    try:
        if depth == MAX_DEPTH:
            os.fchmod(descriptor, stat.S_IRWXU)  # an inaccessible folder cannot be moved
            os.rename(name, f"deep-{secrets.token_hex(8)}", src_dir_fd=parent, dst_dir_fd=removal.root)
            return
        empty_folder(descriptor, removal, depth + 1)
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=parent)
