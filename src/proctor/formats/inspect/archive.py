"""The members of an `.eval` archive: a ZIP file of JSON documents, compressed with deflate or Zstandard.

Sizes are checked before and while a member is unpacked, so an archive that unpacks to more than it should is
refused with a sentence. Knows nothing of what the members mean.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from proctor.errors import ConfigError
from proctor.formats.sources import MEBIBYTE, UnusableSourceError, decode_document, open_source

ZSTANDARD = 93
"""The method's number in the ZIP specification; Python knows it from 3.14 on."""
LARGEST_MEMBER_BYTES = 256 * MEBIBYTE
MOST_MEMBERS = 1_000_000
LOCAL_HEADER = struct.Struct("<26xHH")
"""The lengths of the name and of the extra field that stand before a member's data."""


class EvalArchive:
    """An open archive."""

    def __init__(self, path: Path, file: BinaryIO, members: dict[str, zipfile.ZipInfo]) -> None:
        self.path = path
        self._file = file
        self._members = members

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def read(self, name: str) -> dict[str, Any]:
        """One member as a JSON object."""
        member = self._members[name]
        where = f"{self.path}: {name}"
        if member.file_size > LARGEST_MEMBER_BYTES:
            raise too_large(where)
        try:
            content = unpack(self._data(member), member.compress_type, LARGEST_MEMBER_BYTES + 1)
        except UnpackError as error:
            raise UnusableSourceError(f"{where} {error}.") from error
        if len(content) > LARGEST_MEMBER_BYTES:
            raise too_large(where)
        return decode_document(content, where)

    def _data(self, member: zipfile.ZipInfo) -> bytes:
        """The member's bytes as they are stored; its local header may be longer than the central one."""
        self._file.seek(member.header_offset)
        header = self._file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size or member.compress_size > LARGEST_MEMBER_BYTES:
            raise UnpackError("is cut off")
        self._file.seek(sum(LOCAL_HEADER.unpack(header)), io.SEEK_CUR)
        return self._file.read(member.compress_size)


class UnpackError(Exception):
    """A member whose data cannot be unpacked; the text continues a sentence."""


@contextmanager
def open_archive(path: Path) -> Iterator[EvalArchive]:
    with open_source(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                listed = archive.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise UnusableSourceError(
                f"{path} is damaged or was not written to its end: {error}. Try `inspect log recover`."
            ) from error
        if sum(member.compress_size for member in listed) > os.fstat(file.fileno()).st_size:
            raise UnusableSourceError(f"{path} is damaged: its members have more bytes than it has.")
        if len(listed) > MOST_MEMBERS:
            raise UnusableSourceError(f"{path} has more than {MOST_MEMBERS:,} members.")
        yield EvalArchive(path, file, {member.filename: member for member in listed})


def unpack(data: bytes, method: int, most: int) -> bytes:
    """At most this many bytes of the unpacked data."""
    if method == zipfile.ZIP_STORED:
        return data
    try:
        if method == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, most)
        if method == ZSTANDARD:
            return unpack_zstandard(data, most)
    except (zlib.error, ValueError) as error:
        raise UnpackError(f"is damaged: {error}") from error
    raise UnpackError(f"is compressed with method {method}, which Inspect does not use")


def unpack_zstandard(data: bytes, most: int) -> bytes:
    zstandard = import_zstandard()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return bytes(reader.read(most))
    except zstandard.ZstdError as error:
        raise UnpackError(f"is damaged: {error}") from error


def import_zstandard() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise ConfigError(
            f"This log is compressed with Zstandard ({error}); run pip install 'proctor[inspect]'."
        ) from error


def too_large(where: str) -> UnusableSourceError:
    return UnusableSourceError(f"{where} unpacks to more than {LARGEST_MEMBER_BYTES // MEBIBYTE} MiB.")
