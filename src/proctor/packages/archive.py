"""Archives of environments: packed reproducibly, read as hostile input.

A source is a `.tar.gz` of files, a wheel is a zip. Whatever is neither a plain file nor a folder, whatever
would land outside, and whatever unpacks to more than it should, is refused before anything is kept. The
content hash of a version is computed here and nowhere else. Knows nothing of servers or packages.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from proctor.errors import ProctorError

CHUNK = 2**20
LONGEST_READ = 4 * CHUNK
"""Limit on headers, so that a hostile one is not read into memory."""
LONGEST_PATH = 400
ZIP_END, ZIP64_LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
ZIP_END_SIZE = 22
LONGEST_ZIP_END = ZIP_END_SIZE + 2**16 + 20
LIKELY_ENTRY = 200
"""Bytes per file in a zip's central directory."""
RECORDS = ("RECORD", "RECORD.jws", "RECORD.p7s")
TOOL_LINES = {
    "METADATA": re.compile(rb"Metadata-Version: [0-9.]+"),
    "WHEEL": re.compile(rb"Generator: [ -~]*"),
}
"""What versions of the same build backend write differently and no installer acts on."""
DRIVE = re.compile(r"[A-Za-z]:")


class ArchiveError(ProctorError):
    """An archive is damaged or malicious."""


class ArchiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive may unpack to."""

    entries: int = 20_000
    total_bytes: int = 2**30
    ratio: float = 200.0
    """How many bytes one packed byte may become, once the total is above `modest_bytes`."""
    modest_bytes: int = 64 * 2**20


class ArchiveMember(msgspec.Struct, frozen=True):
    """One file of an archive."""

    path: str
    size: int
    executable: bool = False


Files = Iterator[tuple[ArchiveMember, IO[bytes]]]


# Reading


def tar_files(path: Path, limits: ArchiveLimits | None = None) -> Files:
    """The files of a source, in order; read each before requesting the next."""
    gate = ArchiveChecker(limits or ArchiveLimits(), path.stat().st_size)
    with archive_boundary(), tempfile.TemporaryFile(dir=path.parent) as plain:
        unzip(path, plain, gate)
        with tarfile.open(fileobj=BoundedReader(plain), mode="r:") as tar:  # type: ignore[call-overload]
            for info in tar:
                if info.isdir():
                    gate.pass_folder(info.name)
                    continue
                if not info.isreg() or info.issparse():
                    raise ArchiveError(
                        f"{quote_path(info.name)} is not a regular file; links and devices are refused."
                    )
                gate.pass_file(info.name)
                content = tar.extractfile(info)
                assert content is not None
                yield ArchiveMember(info.name, info.size, bool(info.mode & 0o100)), content


def unzip(path: Path, plain: IO[bytes], gate: ArchiveChecker) -> None:
    with gzip.open(path) as packed:
        while chunk := packed.read(CHUNK):
            gate.count(len(chunk))
            plain.write(chunk)
    plain.seek(0)


def zip_files(path: Path, limits: ArchiveLimits | None = None) -> Files:
    """The files of a wheel; counts the bytes read, whatever sizes the archive claims."""
    limits = limits or ArchiveLimits()
    gate = ArchiveChecker(limits, path.stat().st_size)
    check_directory(path, limits)
    with archive_boundary(), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.orig_filename != info.filename:
                raise ArchiveError(f"{quote_path(info.orig_filename)} is not a valid path.")
            if info.is_dir():
                gate.pass_folder(info.filename.rstrip("/"))
                continue
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise ArchiveError(
                    f"{quote_path(info.filename)} is not a regular file; links and devices are refused."
                )
            if info.flag_bits & 0x1:
                raise ArchiveError(f"{quote_path(info.filename)} is encrypted.")
            gate.pass_file(info.filename)
            with archive.open(info) as content:
                counted = CountingReader(content, gate)
                member = ArchiveMember(info.filename, info.file_size, bool(mode & 0o100))
                yield member, io.BufferedReader(counted)  # type: ignore[type-var]
                counted.drain()


def check_directory(path: Path, limits: ArchiveLimits) -> None:
    """Refuse a zip whose central directory, which is read whole, is implausibly large."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LONGEST_ZIP_END))
        end = file.read()
    last = len(end) - ZIP_END_SIZE
    offset = last if end.startswith(ZIP_END, max(last, 0)) else end.rfind(ZIP_END)
    if offset < 0:
        raise ArchiveError("It is damaged: not a zip file.")
    if end.startswith(ZIP64_LOCATOR, max(offset - len(ZIP64_LOCATOR) - 16, 0)):
        raise ArchiveError("It is a zip64 file, for more than 4 GB, which is not accepted.")
    size = int.from_bytes(end[offset + 12 : offset + 16], "little")
    if size > limits.entries * LIKELY_ENTRY:
        raise ArchiveError(f"It has more than {limits.entries:,} entries.")


class ArchiveChecker:
    """Accepts the entries of an archive, or refuses the archive."""

    def __init__(self, limits: ArchiveLimits, packed_bytes: int) -> None:
        self.limits = limits
        self.most = min(limits.total_bytes, max(limits.modest_bytes, int(packed_bytes * limits.ratio)))
        self._entries = 0
        self._bytes = 0
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def pass_folder(self, name: str) -> None:
        self._enter(name)
        if name.casefold() in self._files:
            raise ArchiveError(f"{quote_path(name)} is both a file and a folder.")
        self._folders.update(folded_parents(f"{name}/x"))

    def pass_file(self, name: str) -> None:
        self._enter(name)
        folded = name.casefold()  # some file systems ignore case
        if folded in self._files:
            raise ArchiveError(f"{quote_path(name)} occurs twice.")
        if folded in self._folders or not self._files.isdisjoint(folded_parents(name)):
            raise ArchiveError(f"{quote_path(name)} is both a file and a folder.")
        self._files.add(folded)
        self._folders.update(folded_parents(name))

    def count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self.most:
            raise ArchiveError(f"It unpacks to more than {self.most // 2**20} MB, the most it may.")

    def _enter(self, name: str) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:
            raise ArchiveError(f"It has more than {self.limits.entries:,} entries.")
        check_path(name)


def folded_parents(name: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(name.casefold()).parents if str(parent) != "."]


def check_path(name: str) -> None:
    """Refuse a path that could lead elsewhere, here or on another system."""
    parts = name.split("/")
    if (
        not name
        or len(name.encode(errors="replace")) > LONGEST_PATH
        or name.startswith("/")
        or "\\" in name
        or DRIVE.match(name)
        or any(part in ("", ".", "..") for part in parts)
        or not name.isprintable()
    ):
        raise ArchiveError(f"{quote_path(name)} is not a valid path; paths are relative and separated by /.")


def quote_path(name: str) -> str:
    return ascii(name[:LONGEST_PATH])


class BoundedReader:
    """A file that limits single reads, so that headers cannot fill memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LONGEST_READ:
            raise ArchiveError("It has an implausibly large header.")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class CountingReader(io.RawIOBase):
    """A file in a zip whose bytes are counted as they are read."""

    def __init__(self, file: IO[bytes], gate: ArchiveChecker) -> None:
        self._file = file
        self._gate = gate

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        got = self._file.read(min(len(buffer), CHUNK))
        self._gate.count(len(got))
        buffer[: len(got)] = got
        return len(got)

    def drain(self) -> None:
        """Read the rest, so that it is counted and its checksum verified."""
        while got := self._file.read(CHUNK):
            self._gate.count(len(got))


@contextmanager
def archive_boundary() -> Iterator[None]:
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        NotImplementedError,  # a compression that zipfile does not know
        ValueError,  # headers that tarfile parses as numbers, or as text
        RecursionError,  # a header of a header of a header
    ) as error:
        raise ArchiveError(f"It is damaged: {error}.") from error


# The content hash


def digest(content: IO[bytes]) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]


def digests(files: Files) -> dict[str, str]:
    """The SHA-256 of every file, by path."""
    return {member.path: digest(content) for member, content in files}


def wheel_digests(files: Files) -> dict[str, str]:
    """The SHA-256 of every file of a wheel that the content hash covers, by path."""
    found: dict[str, str] = {}
    for member, content in files:
        if member.path.partition("/")[0].endswith(".dist-info"):
            found |= description_digest(member.path, content.read())
        else:
            found[member.path] = digest(content)
    return found


def description_digest(path: str, data: bytes) -> dict[str, str]:
    """Of a file that describes its wheel: without the line that names the tool, and nothing of the lists of
    all files, which hold only what is hashed anyway."""
    name = path.partition("/")[2]
    if name in RECORDS:
        return {}
    if name in TOOL_LINES:
        head, blank, body = data.partition(b"\n\n")
        kept = [line for line in head.split(b"\n") if not TOOL_LINES[name].fullmatch(line)]
        data = b"\n".join(kept) + blank + body
    return {path: hashlib.sha256(data).hexdigest()}


def content_hash(source: Mapping[str, str], wheel: Mapping[str, str]) -> str:
    """Of a version: over what its source and its wheel hold, by path and digest.

    How they are packed, when, and by which version of which tool, makes no difference.
    """
    lines = [f"source/{path}\0{sha256}\n" for path, sha256 in source.items()]
    lines += [f"wheel/{path}\0{sha256}\n" for path, sha256 in wheel.items()]
    return hashlib.sha256(b"".join(sorted(line.encode() for line in lines))).hexdigest()


def hash_archives(source: Path, wheel: Path) -> str:
    return content_hash(digests(tar_files(source)), wheel_digests(zip_files(wheel)))


# Packing and unpacking


def pack(files: Iterable[tuple[str, bytes, bool]], target: Path) -> None:
    """Write files (path, content, executable) as a source archive; the same files give the same bytes."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, content, executable in sorted(files, key=lambda file: file[0].encode()):
            info = tarfile.TarInfo(path)
            info.size = len(content)
            info.mode = 0o755 if executable else 0o644
            tar.addfile(info, io.BytesIO(content))


def unpack(source: Path, folder: Path) -> list[Path]:
    """Unpack a source into a new folder."""
    folder.mkdir(parents=True)
    made = []
    for member, content in tar_files(source):
        target = folder / member.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            while chunk := content.read(CHUNK):
                file.write(chunk)
        target.chmod(0o755 if member.executable else 0o644)
        made.append(target)
    return made
