"""Read files that other tools wrote and strangers may have sent: bounded, and never through a link.

Every problem becomes one sentence that names the file. Knows nothing of the formats.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.errors import ConfigError, describe_os_error
from proctor.store.folder import UNREADABLE

LARGEST_DOCUMENT_BYTES = 512 * 2**20
LONGEST_LINE_BYTES = 64 * 2**20
MEBIBYTE = 2**20
ZIP_BEGINNING = b"PK\x03\x04"


class UnusableSourceError(ConfigError):
    """A file that cannot be imported."""


class SourceFile:
    """A file whose format is yet to be found; reads only as much as a question needs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def is_zip(self) -> bool:
        with open_source(self.path) as file:
            return file.read(len(ZIP_BEGINNING)) == ZIP_BEGINNING

    @cached_property
    def document(self) -> dict[str, Any] | None:
        """The whole file as one JSON object; None if it is not one."""
        if self.path.suffix.lower() != ".json":
            return None
        return read_document(self.path)

    @cached_property
    def first_line(self) -> dict[str, Any] | None:
        """The first line as a JSON object; None if it is not one."""
        if self.path.suffix.lower() != ".jsonl":
            return None
        for _, raw in read_lines(self.path):
            try:
                return as_object(decode_json(raw)) if raw is not None else None
            except ValueError:
                return None
        return None


@contextmanager
def open_source(path: Path) -> Iterator[BinaryIO]:
    """A regular file open for reading; a device or a pipe would block or never end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnusableSourceError(f"{path} is not a regular file.")
            yield file
    except OSError as error:
        raise UnusableSourceError(f"{path} cannot be read: {describe_os_error(error)}.") from error


def read_document(path: Path) -> dict[str, Any]:
    """A JSON file that holds one object."""
    with open_source(path) as file:
        raw = file.read(LARGEST_DOCUMENT_BYTES + 1)
    if len(raw) > LARGEST_DOCUMENT_BYTES:
        raise UnusableSourceError(f"{path} is larger than {LARGEST_DOCUMENT_BYTES // MEBIBYTE} MiB.")
    return decode_document(raw, str(path))


def decode_document(raw: bytes, where: str) -> dict[str, Any]:
    try:
        document = as_object(decode_json(raw))
    except ValueError as error:
        raise UnusableSourceError(f"{where} is damaged: {error}.") from error
    if document is None:
        raise UnusableSourceError(f"{where} does not hold a JSON object.")
    return document


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is too long, which is skipped."""
    with open_source(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE_BYTES + 1):
            number += 1
            if len(line) > LONGEST_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = file.readline(MEBIBYTE)
                yield number, None
            elif line.strip():
                yield number, line


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Each line as an object; text for one that cannot be read: what is wrong with it."""
    for number, raw in read_lines(path):
        if raw is None:
            yield number, f"longer than {LONGEST_LINE_BYTES // MEBIBYTE} MiB"
            continue
        try:
            fields = as_object(decode_json(raw))
        except ValueError as error:
            yield number, str(error)
        else:
            yield number, "not a JSON object" if fields is None else fields


def decode_json(raw: bytes) -> Any:
    """JSON as Python tools write it, `NaN` included. Raises ValueError."""
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE:
        pass
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def get_object(value: Any, *names: str) -> dict[str, Any]:
    """The object at the end of a path of names; empty where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_list(value: Any, *names: str) -> list[Any]:
    *path, last = names
    found = get_object(value, *path).get(last)
    return found if isinstance(found, list) else []


def get_text(value: Any, *names: str) -> str:
    *path, last = names
    found = get_object(value, *path).get(last)
    return found if isinstance(found, str) else ""
