"""Where the runs to be viewed are: in the folders named, or where runs are usually kept.

Knows nothing of what is in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.errors import ConfigError
from proctor.store.index import (
    ENVIRONMENTS,
    expand_path,
    is_run_folder,
    modified_at,
    run_folders,
    search_folders,
)


def check_folders(words: Sequence[str]) -> list[Path]:
    """The folders that the user named; raises if one does not exist."""
    named = [expand_path(word) for word in words]
    for folder in named:
        if not folder.is_dir():
            raise ConfigError(f"No folder {str(folder)!r}; name a run's folder, or one that has runs in it.")
    return named


def find_run_folders(named: Sequence[Path]) -> list[Path]:
    """Every run in the folders named, the newest first: a run itself, the runs below a folder, and those of
    a project. Without a name, wherever runs are usually kept."""
    if not named:
        return run_folders(search_folders())
    runs = [folder for folder in named if is_run_folder(folder)]
    bases = [base for folder in named if folder not in runs for base in list_bases(folder)]
    below = run_folders(bases)
    return sorted([*runs, *(folder for folder in below if folder not in runs)], key=modified_at, reverse=True)


def list_bases(folder: Path) -> list[Path]:
    return [folder, folder / "outputs", *sorted((folder / ENVIRONMENTS).glob("*/outputs"))]
