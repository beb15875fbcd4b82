"""The format of a backup: members one after the other, and a seal at the end that proves them complete.

A gzipped tar file, so that ordinary tools can read it. Its first member describes it, its last one holds a
hash over the names, sizes and bytes of all before it; a file that was cut off has no seal. Both sides read
and write as a stream, in little memory. Knows nothing of databases.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from proctor.errors import ConfigError, describe_os_error
from proctor.server.private_files import FILE_MODE
from proctor.support.byte_blocks import BLOCK_BYTES

FORMAT = 1
HEAD, SEAL = "backup.json", "seal.json"
LARGEST_HEAD = 2**20
LEVEL = 1
"""Of compression: rows shrink to a fifth of their size, and wheels are compressed already."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
"""Members cannot lead out of the folder they are written to, nor hide in it."""
LONGEST_NAME = 400


class BackupHead(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds."""

    format: int = FORMAT
    proctor: str
    """The version that wrote it."""
    created_at: float
    database: str
    """sqlite | postgresql."""
    revision: str
    """Of the schema."""
    tables: dict[str, list[str]]
    """Their columns, in the order of the rows; empty for SQLite."""
    has_key: bool
    storage: str = "folder"
    """Where the files are: in the archive, or at this address of an object store, whose keys are listed."""


class BackupSeal(msgspec.Struct, frozen=True):
    """What makes an archive whole."""

    members: int
    size: int
    """Bytes of all members."""
    sha256: str


class Checksum:
    """A hash over members in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.members = self.size = 0

    def begin(self, name: str, size: int) -> None:
        self._digest.update(f"{name}\n{size}\n".encode())
        self.members += 1
        self.size += size

    def add(self, block: bytes) -> None:
        self._digest.update(block)

    @property
    def seal(self) -> BackupSeal:
        return BackupSeal(self.members, self.size, self._digest.hexdigest())


def forget_members(tar: tarfile.TarFile) -> None:
    """It would keep a description of each: of millions, in a large archive."""
    vars(tar)["members"] = []


# Writing


class ArchiveWriter:
    """Adds members to an archive that is open."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._checksum = Checksum()

    def add(self, name: str, content: bytes) -> None:
        self.add_file(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, file: BinaryIO, size: int) -> None:
        """As many bytes of a file as it has now; it may grow meanwhile."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, FILE_MODE
        self._checksum.begin(name, size)
        try:
            self._tar.addfile(member, HashedReader(file, self._checksum))  # type: ignore[arg-type]
        except OSError as error:
            raise ConfigError(f"Cannot back up {name}: {describe_os_error(error)}.") from error
        forget_members(self._tar)

    def seal(self) -> BackupSeal:
        made = self._checksum.seal
        content = msgspec.json.encode(made)
        member = tarfile.TarInfo(SEAL)
        member.size, member.mode = len(content), FILE_MODE
        self._tar.addfile(member, io.BytesIO(content))
        return made


class HashedReader:
    """Adds what is read to a checksum."""

    def __init__(self, file: BinaryIO, checksum: Checksum) -> None:
        self._file = file
        self._checksum = checksum

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._checksum.add(block)
        return block


@contextmanager
def writing_archive(out: BinaryIO, head: BackupHead) -> Iterator[ArchiveWriter]:
    """An archive to add members to. It is not whole unless its writer sealed it."""
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=LEVEL, mtime=0) as small,
        tarfile.open(fileobj=small, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        writer = ArchiveWriter(tar)
        writer.add(HEAD, msgspec.json.encode(head))
        yield writer


@contextmanager
def creating_file(target: Path) -> Iterator[BinaryIO]:
    """A file that has its name only once it is whole and on disk, whatever happens to this process.

    Until then it is beside it, as NAME.partial, which the next backup to that name replaces.
    """
    if target.exists():
        raise ConfigError(f"{target} exists already; name another file.")
    partial = target.with_name(f"{target.name}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise ConfigError(f"Cannot write {target}: {describe_os_error(error)}.") from error
    with os.fdopen(descriptor, "wb") as out:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"Another backup is being written to {target}; wait for it.") from None
        os.ftruncate(descriptor, 0)
        try:
            yield out
            out.flush()
            os.fsync(descriptor)
            os.link(partial, target)  # fails if it was created meanwhile
        except FileExistsError:
            raise ConfigError(f"{target} exists already; name another file.") from None
        except OSError as error:
            raise ConfigError(f"Cannot write {target}: {describe_os_error(error)}.") from error
        finally:
            partial.unlink(missing_ok=True)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """After this, the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Reading


class BackupEntry(tarfile.TarInfo):
    """An entry of an archive. tarfile reads headers of other kinds whole, however large they claim to be."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type != tarfile.REGTYPE and (entry.type != tarfile.XHDTYPE or entry.size > LARGEST_HEAD):
            raise ConfigError("The archive has a member that no backup has; nothing was restored.")
        return entry


class BackupMember(msgspec.Struct, frozen=True):
    """One member that is being read."""

    name: str
    size: int
    blocks: Iterator[bytes]
    """Must be read before the next member."""


class ArchiveReader:
    """Reads the members of an archive, once and in order."""

    def __init__(self, tar: tarfile.TarFile, name: str) -> None:
        self._tar = tar
        self._name = name
        self._checksum = Checksum()
        self._sealed: BackupSeal | None = None

    def read_head(self) -> BackupHead:
        member = next(self._members(), None)
        if member is None or member.name != HEAD or member.size > LARGEST_HEAD:
            raise ConfigError(f"{self._name} is not a backup of a Proctor server.")
        try:
            head = msgspec.json.decode(b"".join(member.blocks), type=BackupHead)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self._name} is not a backup of a Proctor server: {error}.") from error
        if head.format != FORMAT:
            raise ConfigError(
                f"{self._name} was written by Proctor {head.proctor} in a format that this version does not "
                f"read; restore it with that version."
            )
        return head

    def members(self) -> Iterator[BackupMember]:
        """All members after the head; raises at the end unless the archive is whole."""
        yield from self._members()
        if self._sealed != self._checksum.seal:
            raise ConfigError(
                f"{self._name} is damaged or cut off; nothing was restored. Use another backup."
            )

    def _members(self) -> Iterator[BackupMember]:
        while (entry := self._tar.next()) is not None:
            forget_members(self._tar)
            if entry.name == SEAL and entry.size <= LARGEST_HEAD:
                self._sealed = self._read_seal(entry)
                continue
            is_safe = NAME.fullmatch(entry.name) and len(entry.name) <= LONGEST_NAME
            if self._sealed is not None or not entry.isreg() or not is_safe:
                raise ConfigError(f"{self._name} has a member that no backup has; nothing was restored.")
            self._checksum.begin(entry.name, entry.size)
            yield BackupMember(entry.name, entry.size, self._read_blocks(entry))

    def _read_seal(self, entry: tarfile.TarInfo) -> BackupSeal | None:
        file = self._tar.extractfile(entry)
        assert file is not None
        try:
            return msgspec.json.decode(file.read(), type=BackupSeal)
        except msgspec.MsgspecError:
            return None

    def _read_blocks(self, entry: tarfile.TarInfo) -> Iterator[bytes]:
        file = self._tar.extractfile(entry)
        assert file is not None
        while block := file.read(BLOCK_BYTES):
            self._checksum.add(block)
            yield block


@contextmanager
def reading_archive(file: BinaryIO, name: str) -> Iterator[ArchiveReader]:
    try:
        with tarfile.open(fileobj=file, mode="r|gz", tarinfo=BackupEntry) as tar:
            yield ArchiveReader(tar, name)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise ConfigError(
            f"{name} is damaged or cut off, or is not a backup ({error}); nothing was restored."
        ) from error
