"""Folders that travel to a machine with another disk: packed by content here, unpacked once there.

Knows files. Knows nothing of connections, or of what an environment does with its files.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec
import platformdirs

from proctor.errors import ConfigError
from proctor.packages.archive import pack, unpack
from proctor.packages.source_files import read_parent_rules, walk

MOST_FILES = 20_000
MOST_BYTES = 512 * 2**20
PIECE_BYTES = 2**20
KEPT_SECONDS = 14 * 24 * 3600.0
"""How long a node keeps a bundle that is not requested."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """Files under one name, packed."""

    digest: str
    archive: Path

    def pieces(self) -> Iterator[bytes]:
        with self.archive.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece


def pack_source(folder: Path, target: Path) -> Bundle:
    """A folder's source under the folder's own name, without what git ignores or what was generated."""
    return pack_files(folder.parent, list_source(folder), target)


def list_source(folder: Path) -> list[Path]:
    found = list(islice(walk(folder, folder, read_parent_rules(folder)), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise ConfigError(
            f"{folder} has more than {MOST_FILES} files, and all of them would travel to the nodes; put the "
            f"environment into a folder of its own."
        )
    return found


def list_named(path: Path) -> list[Path]:
    """A file, or every file of a folder, whether git ignores it or not."""
    return [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())


def pack_files(base: Path, files: Sequence[Path], target: Path) -> Bundle:
    """Files by their paths from a base."""
    size = sum(file.stat().st_size for file in files)
    if size > MOST_BYTES or len(files) > MOST_FILES:
        raise ConfigError(
            f"The {len(files)} files below {base} have {size / 2**20:.0f} MB, and at most "
            f"{MOST_BYTES // 2**20} MB travel to the nodes; keep large data where each node reaches it."
        )
    try:
        pack(
            (
                (file.relative_to(base).as_posix(), file.read_bytes(), bool(file.stat().st_mode & 0o100))
                for file in files
            ),
            target,
        )
    except OSError as error:
        raise ConfigError(f"Cannot read {error.filename}: {error.strerror}.") from error
    with target.open("rb") as file:
        return Bundle(digest=hashlib.file_digest(file, "sha256").hexdigest(), archive=target)


class BundleCache:
    """The bundles of a node, in its user's cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or platformdirs.user_cache_path("proctor") / "bundles"

    def find(self, digest: str) -> Path | None:
        """Where a bundle is unpacked; None if it is not here."""
        path = self.folder / digest
        if not path.is_dir():
            return None
        with suppress(OSError):
            path.touch()  # in use
        return path

    def take(self, digest: str, archive: Path) -> Path:
        """Unpack a bundle beside its place, and give it the name once it is whole."""
        with archive.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ConfigError("A bundle arrived damaged.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_old()
        scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=self.folder))
        try:
            unpack(archive, scratch / "files")
            with suppress(OSError):  # another worker of this node was faster
                (scratch / "files").rename(self.folder / digest)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return self.folder / digest

    def _remove_old(self) -> None:
        for path in self.folder.iterdir():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)


def show_in(folder: Path, bundle: Path) -> None:
    """Show a bundle's files in a folder as if they lay there; the folder itself can be written to."""
    for entry in bundle.iterdir():
        target = folder / entry.name
        if entry.is_dir() and target.is_dir() and not target.is_symlink():
            show_in(target, entry)
        elif not target.exists():
            target.symlink_to(entry)
