"""Which files of a folder have changed, and how.

Only states are kept, and the text of files that are not a copy of the source: a rollout must not cost a
second copy of everything. No link is ever followed. Knows nothing of rollouts or of who changed what.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from proctor.isolation.untrusted_tree import (
    TooDeepError,
    TreeEntry,
    UntrustedFileError,
    open_file,
    open_parent,
    open_root,
    read_at_most,
    walk,
)
from proctor.trace import FileChange

IGNORED = {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".venv"}
"""Folders that tools generate, whose many files would hide the others."""
MOST_ENTRIES = 50_000
MOST_CHANGES = 200
TEXT_BYTES = 256 * 1024
KEPT_BYTES = 8 * 1024 * 1024
DIFF_CHARACTERS = 20_000
ALL_DIFFS_CHARACTERS = 200_000
COMPARED_LINES = 1_000
"""Limit on the part in which two texts differ: comparing is quadratic, and the texts are untrusted."""
COMPARING_SECONDS = 3.0
HASHED_BYTES = 64 * 1024 * 1024


ChangeKind = Literal["created", "changed", "deleted"]


class FileState(NamedTuple):
    """What shows that a file is unchanged; the change time cannot be forged."""

    size: int
    modified: int
    changed: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


@dataclass(frozen=True)
class Snapshot:
    """The files of a folder at one time."""

    states: Mapping[str, FileState]
    texts: Mapping[str, bytes]
    """Contents, and targets of links, of what is not a copy of the source."""
    source: Path | None

    @classmethod
    def of(cls, folder: Path, source: Path | None) -> Snapshot:
        states: dict[str, FileState] = {}
        texts: dict[str, bytes] = {}
        room = KEPT_BYTES
        with open_root(folder) as root:
            for entry in list_files(root):
                states[entry.path] = FileState.of(entry.status)
                if source is not None and is_copy(entry, source):
                    continue
                content = read_content(root, entry) if entry.status.st_size <= min(TEXT_BYTES, room) else None
                if content is not None:
                    texts[entry.path] = content
                    room -= len(content)
        return cls(states, texts, source)

    def content(self, name: str) -> bytes | None:
        """What a file held then; None if that is no longer known."""
        if name in self.texts or self.source is None:
            return self.texts.get(name)
        then = self.states[name]
        try:
            now = (self.source / name).lstat()
        except OSError:
            return None
        if (now.st_size, now.st_mtime_ns) != (then.size, then.modified) or now.st_size > TEXT_BYTES:
            return None
        with open_root(self.source) as root:
            return read_content(root, TreeEntry(root, name, name, now))


def is_copy(entry: TreeEntry, source: Path) -> bool:
    try:
        there = (source / entry.path).lstat()
    except OSError:
        return False
    here = entry.status
    return (here.st_mode, here.st_size, here.st_mtime_ns) == (there.st_mode, there.st_size, there.st_mtime_ns)


def list_files(root: int) -> list[TreeEntry]:
    """Files and links, by path; of a tree that is too large or too deep, only those found first."""
    found: list[TreeEntry] = []
    with suppress(TooDeepError):
        found.extend(entry for entry in islice(walk(root, IGNORED), MOST_ENTRIES) if not entry.is_folder)
    return sorted(found, key=lambda entry: entry.path)


def read_content(root: int, entry: TreeEntry) -> bytes | None:
    """The bytes of a file, or the target of a link; None for anything else, and if it cannot be read."""
    try:
        if stat.S_ISLNK(entry.status.st_mode):
            with open_parent(root, entry.path) as (folder, name):
                return os.fsencode(os.readlink(name, dir_fd=folder))
        with open_file(root, entry.path) as descriptor:
            return read_at_most(descriptor, entry.status.st_size)
    except (OSError, UntrustedFileError):
        return None


def changes_since(before: Snapshot, folder: Path) -> list[FileChange]:
    with open_root(folder) as root:
        return changes_below(before, root)


def changes_below(before: Snapshot, root: int) -> list[FileChange]:
    after = {entry.path: entry for entry in list_files(root)}
    names = sorted(before.states.keys() | after.keys())
    room, deadline = ALL_DIFFS_CHARACTERS, time.monotonic() + COMPARING_SECONDS
    changes: list[FileChange] = []
    more = 0
    for name in names:
        entry, state = after.get(name), before.states.get(name)
        if entry is not None and FileState.of(entry.status) == state:
            continue
        if len(changes) >= MOST_CHANGES:
            more += 1
            continue
        change = describe_change(before, root, name, entry, room if time.monotonic() < deadline else 0)
        if change is not None:
            room -= len(change.diff)
            changes.append(change)
    if more:
        changes.append(FileChange("…", "more", note=f"{more:,} more files"))
    return changes


def describe_change(
    before: Snapshot, root: int, name: str, entry: TreeEntry | None, room: int
) -> FileChange | None:
    """How one file differs; None if only its times changed."""
    state = before.states.get(name)
    old = before.content(name) if state is not None else b""
    new = b"" if entry is None else None
    if entry is not None and entry.status.st_size <= TEXT_BYTES:
        new = read_content(root, entry)
    if state is not None and entry is not None and old is not None and old == new:
        if state.mode == entry.status.st_mode:
            return None
        note = f"mode {stat.filemode(state.mode)} → {stat.filemode(entry.status.st_mode)}"
        return FileChange(sanitize_name(name), "changed", entry.status.st_size, note=note)
    kind: ChangeKind = "created" if state is None else "deleted" if entry is None else "changed"
    size = entry.status.st_size if entry is not None else state.size if state is not None else 0
    mode = entry.status.st_mode if entry is not None else state.mode if state is not None else 0
    diff, note = describe_difference(name, old, new, room)
    if stat.S_ISLNK(mode):
        diff, note = "", f"link to {sanitize_name(os.fsdecode(new or old or b''))}"
    elif not stat.S_ISREG(mode):
        diff, note = "", "no plain file"
    digest = "" if diff or entry is None or not stat.S_ISREG(mode) else hash_file(root, entry)
    return FileChange(sanitize_name(name), kind, size, diff, digest, note)


def describe_difference(name: str, old: bytes | None, new: bytes | None, room: int) -> tuple[str, str]:
    """A unified diff, or why there is none."""
    if old is None or new is None:
        return "", "too large for a diff"
    before, after = text_lines(old), text_lines(new)
    if before is None or after is None:
        return "", "binary"
    if longest_difference(before, after) > COMPARED_LINES and before and after:
        return "", "too much has changed for a diff"
    label = sanitize_name(name)
    lines = difflib.unified_diff(before, after, f"a/{label}", f"b/{label}")
    diff = "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines)
    if len(diff) > min(room, DIFF_CHARACTERS):
        cut = diff[: min(room, DIFF_CHARACTERS)].rpartition("\n")[0]
        return (f"{cut}\n", "the diff is cut") if cut else ("", "no room for its diff")
    return diff, ""


def text_lines(content: bytes) -> list[str] | None:
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return [f"{line}\n" for line in text.split("\n")[:-1]] + (
        [last] if (last := text.rpartition("\n")[2]) else []
    )


def longest_difference(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines there are between the first and the last that differ."""
    shortest, same = min(len(before), len(after)), 0
    while same < shortest and before[same] == after[same]:
        same += 1
    same_at_end = 0
    while same_at_end < shortest - same and before[-1 - same_at_end] == after[-1 - same_at_end]:
        same_at_end += 1
    return max(len(before), len(after)) - same - same_at_end


def hash_file(root: int, entry: TreeEntry) -> str:
    if entry.status.st_size > HASHED_BYTES:
        return ""
    try:
        with open_file(root, entry.path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, UntrustedFileError):
        return ""


def sanitize_name(name: str) -> str:
    """File names may hold lone surrogates, which can be neither sent nor stored."""
    return name.encode(errors="replace").decode()
