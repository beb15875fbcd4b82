"""The content of a source archive, and the settings in its pyproject.toml. Knows nothing of the database."""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.hub import FileEntry, FileText
from proctor.packages.archive import ArchiveError, digest, tar_files
from proctor.server.hub.wheel_matches_source import check_project, refusal
from proctor.server.hub.wheels import Wheel
from proctor.server.problems import NotFoundError

PROJECT_FILE = "pyproject.toml"
SECRET = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
TAG = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")
MOST_TAGS = 20
LARGEST_PROJECT_FILE = 256 * 1024
DEEPEST_KEY = 50
"""Dots in the name of a table or a value: reading takes time with depth times lines."""
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


class PushedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source that belongs to its wheel."""

    files: list[tuple[str, int]]
    digests: dict[str, str]
    secrets: list[str]
    tags: list[str]


def read_source(path: Path, wheel: Wheel) -> PushedSource:
    """Read a source without unpacking it; an InvalidError describes what is wrong."""
    files: list[tuple[str, int]] = []
    digests: dict[str, str] = {}
    text: bytes | None = None
    try:
        for member, content in tar_files(path):
            files.append((member.path, member.size))
            if member.path == PROJECT_FILE:
                text = content.read(LARGEST_PROJECT_FILE + 1)
                digests[member.path] = digest(io.BytesIO(text))
            else:
                digests[member.path] = digest(content)
    except ArchiveError as error:
        raise refusal(f"The source was rejected: {error}") from error
    if text is None:
        raise refusal(f"The source has no {PROJECT_FILE} at its top level.")
    data = parse_project_file(text)
    try:
        check_project(data.get("project"), wheel)
    except ValueError as error:  # a number with more digits than Python shows
        raise refusal(f"{PROJECT_FILE} of the source cannot be read: {error}") from error
    ours = get_table(get_table(data, "tool"), "proctor")
    return PushedSource(
        files=sorted(files),
        digests=digests,
        secrets=read_names(ours, "secrets", SECRET),
        tags=read_tags(ours, wheel),
    )


def parse_project_file(text: bytes) -> dict[str, Any]:
    if len(text) > LARGEST_PROJECT_FILE:
        raise refusal(f"{PROJECT_FILE} of the source has more than {LARGEST_PROJECT_FILE // 1024} KB.")
    try:
        written = text.decode()
        check_keys(written)
        return tomllib.loads(written)
    except (ValueError, RecursionError) as error:
        raise refusal(f"{PROJECT_FILE} of the source is malformed: {error}") from error


def check_keys(text: str) -> None:
    """Refuse keys with more parts than anybody needs."""
    for line in text.split("\n"):
        bare = STRING.sub("", line).strip()
        key = bare if bare.startswith("[") else bare.partition("=")[0]
        if key.count(".") > DEEPEST_KEY:
            raise refusal(f"{PROJECT_FILE} of the source has a key with more than {DEEPEST_KEY} dots.")


def get_table(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def read_names(ours: dict[str, Any], key: str, pattern: re.Pattern[str]) -> list[str]:
    given = ours.get(key, [])
    if not isinstance(given, list):
        raise refusal(f"[tool.proctor] {key} of the source must be a list.")
    for name in given:
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise refusal(f"[tool.proctor] {key} of the source has {name!r}, which is not a valid name.")
    return list(dict.fromkeys(given))


def read_tags(ours: dict[str, Any], wheel: Wheel) -> list[str]:
    """The tags it declares for us; else the package's keywords, as far as they are valid tags."""
    if "tags" in ours:
        return read_names(ours, "tags", TAG)[:MOST_TAGS]
    words = [word.strip().lower().replace(" ", "-") for word in wheel.keywords]
    return list(dict.fromkeys(word for word in words if TAG.fullmatch(word)))[:MOST_TAGS]


# Reading without downloading


def read_path(path: Path, files: list[list[Any]], wanted: str, most_bytes: int) -> FileText:
    """A file of a source, or the content of a folder in it."""
    wanted = wanted.strip("/")
    sizes = {str(name): int(size) for name, size in files}
    if wanted in sizes:
        return read_file_text(path, wanted, sizes[wanted], most_bytes)
    inside = list_entries(sizes, f"{wanted}/" if wanted else "")
    if not inside and wanted:
        raise NotFoundError(f"It has no file or folder {wanted!r}.", path=wanted)
    return FileText(path=wanted, entries=inside, size=sum(entry.size for entry in inside))


def list_entries(sizes: dict[str, int], prefix: str) -> list[FileEntry]:
    """What is directly in a folder; folders end with a slash and have the size of everything in them."""
    found: dict[str, int] = {}
    for name, size in sizes.items():
        if name.startswith(prefix):
            head, slash, _ = name.removeprefix(prefix).partition("/")
            found[prefix + head + slash] = found.get(prefix + head + slash, 0) + size
    return [FileEntry(name, size) for name, size in sorted(found.items())]


def read_file_text(path: Path, wanted: str, size: int, most_bytes: int) -> FileText:
    for member, content in tar_files(path):
        if member.path == wanted:
            data = content.read(most_bytes)
            truncated = size > len(data)
            return FileText(path=wanted, text=decode_text(data, truncated), size=size, truncated=truncated)
    raise NotFoundError(f"It has no file {wanted!r}.", path=wanted)


def decode_text(data: bytes, truncated: bool) -> str | None:
    """None for binary content; a character that was cut in two is dropped."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        is_cut = truncated and error.start >= len(data) - 3
        return data[: error.start].decode() if is_cut else None
