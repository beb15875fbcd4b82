"""Datasets that were downloaded before, in a folder of this user, by their hash.

    CACHE/3f/3f2a….jsonl

A file appears there whole or not at all, and is verified each time it is used. Knows nothing of servers.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from proctor.datasets.files import hash_file
from proctor.errors import ConfigError, describe_os_error

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def cache_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("proctor") / "datasets"


class DatasetCache:
    """Files by the hash of their content."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder()

    def path(self, sha256: str, format: str) -> Path:  # noqa: A002
        return self.folder / sha256[:2] / f"{sha256}.{format}"

    def find(self, sha256: str, format: str) -> Path | None:  # noqa: A002
        """The file with this content; one that was changed is removed."""
        path = self.path(sha256, format)
        if not path.is_file():
            return None
        if hash_file(path) == sha256:
            return path
        path.unlink(missing_ok=True)
        return None

    def find_prefix(self, prefix: str) -> Path | None:
        """The file whose hash begins like this, if there is exactly one."""
        found = list((self.folder / prefix[:2]).glob(f"{prefix}*.*"))
        return self.find(found[0].stem, found[0].suffix[1:]) if len(found) == 1 else None

    @contextmanager
    def adding(self, sha256: str, format: str) -> Iterator[Path]:  # noqa: A002
        """A path to write to; it becomes the cached file unless something is raised."""
        path = self.path(sha256, format)
        with explain_failure(path):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder, path.parent):
                folder.mkdir(exist_ok=True, mode=FOLDER_MODE)
        with create_whole(path, FILE_MODE) as incoming:
            yield incoming


@contextmanager
def create_whole(path: Path, mode: int) -> Iterator[Path]:
    """A file beside `path` that takes its name when it is complete, and vanishes if it never is."""
    incoming = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with explain_failure(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            incoming.touch(mode=mode, exist_ok=False)
            yield incoming
            incoming.replace(path)
    finally:
        with suppress(OSError):
            incoming.unlink(missing_ok=True)


def copy_whole(source: Path, target: Path) -> None:
    """A copy that appears complete or not at all, readable as the user's other files are."""
    with create_whole(target, 0o666) as incoming:
        shutil.copyfile(source, incoming)


@contextmanager
def explain_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {describe_os_error(error)}.") from error
