"""A folder for the files of each attempt, kept with the run's results. Knows nothing of what is in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from proctor.task import TaskId

ARTIFACTS = "artifacts"


class ArtifactFolders:
    """The folders of a run's attempts."""

    def __init__(self) -> None:
        self._base: Path | None = None

    def set_base(self, run_folder: Path) -> None:
        self._base = run_folder / ARTIFACTS

    @contextmanager
    def open(self, row: TaskId, attempt: int) -> Iterator[Path]:
        """An empty folder; if nothing was written to it, it is removed again."""
        if self._base is None:
            with tempfile.TemporaryDirectory(prefix="proctor-artifacts-") as temporary:
                yield Path(temporary)
            return
        folder = self._base / name_folder(row, attempt)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def name_folder(row: TaskId, attempt: int) -> str:
    return f"row_{row}_run_{attempt}"


def copy_artifacts(run_folder: Path, row: TaskId, attempt: int, target: Path) -> None:
    """Copy what an attempt of another run wrote; links are copied as links."""
    source = run_folder / ARTIFACTS / name_folder(row, attempt)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def has_files(folder: Path) -> bool:
    return next(folder.iterdir(), None) is not None
