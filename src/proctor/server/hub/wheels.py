"""The metadata of a wheel, and whether all of it agrees. Knows nothing of the database."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec
from packaging.metadata import RawMetadata, parse_email
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from proctor.packages.archive import ArchiveError, description_digest, digest, zip_files
from proctor.server.problems import InvalidError

LARGEST_DESCRIPTION = 4 * 2**20
"""Limit on the files that describe a wheel and are read as a whole."""
LONGEST_FILE_NAME = 255
LONGEST_VERSION = 128
"""Limit on a version's characters: Python refuses to parse integers of thousands of digits."""
MOST_FIELDS = 2_000
"""Of METADATA: reading it takes time with the square of their number."""
END_OF_LINE = re.compile(r"\r\n|\r|\n")
STEERING = frozenset({"name", "version", "requires-dist", "requires-python", "provides-extra"})
"""Fields of METADATA that decide what is installed."""
UNLISTED = ("RECORD.jws", "RECORD.p7s")


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel whose content matches its name."""

    name: str
    """The package's name, in canonical form."""
    version: str
    summary: str
    keywords: list[str]
    requires_python: str
    dependencies: list[str]
    metadata_text: str
    digests: dict[str, str]
    """By path, as the content hash needs them."""


class WheelName(msgspec.Struct, frozen=True):
    name: str
    version: str


def parse_wheel_name(file_name: str) -> WheelName:
    """What the file name of a wheel says."""
    if len(file_name) > LONGEST_FILE_NAME:
        raise wheel_error(f"The name of a wheel may have at most {LONGEST_FILE_NAME} characters.")
    try:
        name, version, _, _ = parse_wheel_filename(file_name)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise wheel_error(f"{file_name!r} is not the name of a wheel.") from error
    if "/" in file_name or not file_name.isascii() or not file_name.isprintable():
        raise wheel_error("The wheel's package name is invalid.")
    if len(str(version)) > LONGEST_VERSION:
        raise wheel_error(f"A version may have at most {LONGEST_VERSION} characters; choose a shorter one.")
    return WheelName(str(name), str(version))


def read_wheel(path: Path, file_name: str) -> Wheel:
    """Read a wheel without unpacking it; an InvalidError describes what disagrees."""
    parsed_name = parse_wheel_name(file_name)
    found: dict[str, str] = {}
    hashed: dict[str, str] = {}
    described: dict[str, bytes] = {}
    try:
        for member, content in zip_files(path):
            if member.path.partition("/")[0].endswith(".dist-info"):
                data = described[member.path] = read_whole(content)
                found[member.path] = digest(io.BytesIO(data))
                hashed |= description_digest(member.path, data)
            else:
                found[member.path] = hashed[member.path] = digest(content)
    except ArchiveError as error:
        raise wheel_error(f"The wheel was rejected: {error}") from error
    folder = find_info_folder(described, parsed_name)
    texts = {name: decode_member(described, f"{folder}/{name}") for name in ("METADATA", "WHEEL", "RECORD")}
    if not texts["WHEEL"].startswith("Wheel-Version: 1."):
        raise wheel_error("This server does not support the wheel's format version.")
    check_record(texts["RECORD"], f"{folder}/RECORD", found)
    check_fields(texts["METADATA"])
    metadata, unread = parse_email(texts["METADATA"])
    unclear = sorted(STEERING.intersection(unread))
    if unclear:
        raise wheel_error(f"The wheel's METADATA has {unclear[0]!r} twice, or in a malformed way.")
    check_metadata(metadata, parsed_name)
    return Wheel(
        name=parsed_name.name,
        version=parsed_name.version,
        summary=metadata.get("summary", ""),
        keywords=metadata.get("keywords", []),
        requires_python=metadata.get("requires_python", ""),
        dependencies=metadata.get("requires_dist", []),
        metadata_text=texts["METADATA"],
        digests=hashed,
    )


def read_whole(content: IO[bytes]) -> bytes:
    data = content.read(LARGEST_DESCRIPTION + 1)
    if len(data) > LARGEST_DESCRIPTION:
        raise ArchiveError("its metadata is too large.")
    return data


def find_info_folder(described: Mapping[str, bytes], parsed_name: WheelName) -> str:
    folders = {path.partition("/")[0] for path in described}
    if len(folders) != 1:
        raise wheel_error(f"The wheel has {len(folders)} .dist-info folders instead of one.")
    folder = folders.pop()
    name, _, version = folder.removesuffix(".dist-info").rpartition("-")
    if canonicalize_name(name) != parsed_name.name or not is_version(version, parsed_name.version):
        raise wheel_error(f"The wheel's {folder} does not match its file name.")
    return folder


def decode_member(described: Mapping[str, bytes], path: str) -> str:
    if path not in described:
        raise wheel_error(f"The wheel has no {path}.")
    try:
        text = described[path].decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # which PostgreSQL could not store
        raise wheel_error(f"The wheel's {path} is not text.")
    return text


def check_record(record: str, own_path: str, found: Mapping[str, str]) -> None:
    """The wheel's RECORD lists exactly its files, with the right hashes."""
    try:
        rows = [row for row in csv.reader(io.StringIO(record)) if row]
    except csv.Error as error:
        raise wheel_error(f"The wheel's RECORD is malformed: {error}.") from error
    listed = {row[0]: row[1] if len(row) > 1 else "" for row in rows}
    exempt = {own_path, *(f"{own_path.rpartition('/')[0]}/{name}" for name in UNLISTED)}
    strangers = sorted(set(listed).symmetric_difference(found) - exempt)
    if strangers:
        raise wheel_error(f"The wheel and its RECORD disagree about {strangers[0]!r}.")
    for path, declared in listed.items():
        kind, _, value = declared.partition("=")
        if path in exempt or not value:
            continue
        if kind != "sha256" or value.rstrip("=") != encode_record_hash(found[path]):
            raise wheel_error(f"The wheel's RECORD has another hash for {path!r}.")


def encode_record_hash(sha256: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")


def check_fields(text: str) -> None:
    """Refuse a METADATA that would take long to read: it is read as a mail is, whose parts can hold parts."""
    fields = 0
    for line in END_OF_LINE.split(text):
        if not line:
            return
        fields += not line.startswith((" ", "\t"))
        if line.lower().startswith("content-type"):
            raise wheel_error("The wheel's METADATA has a Content-Type, which is none of its fields.")
        if fields > MOST_FIELDS:
            raise wheel_error(f"The wheel's METADATA has more than {MOST_FIELDS:,} fields.")


def check_metadata(metadata: RawMetadata, parsed_name: WheelName) -> None:
    name, version = metadata.get("name", ""), metadata.get("version", "")
    if canonicalize_name(name) != parsed_name.name or not is_version(version, parsed_name.version):
        raise wheel_error(f"The wheel's METADATA says {name} {version}, but its file name does not.")


def is_version(text: str, version: str) -> bool:
    try:
        return len(text) <= LONGEST_FILE_NAME and str(Version(text)) == version
    except InvalidVersion:
        return False


def wheel_error(message: str) -> InvalidError:
    return InvalidError(message, code="bad_wheel")
