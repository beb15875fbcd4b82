"""Find runs on disk and read each one's metadata.

A run is called what its folder is called, so looking for one opens no file and listing twenty opens twenty. A
damaged run is listed as such and hides no other. Knows nothing of rows or terminals.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.schema import LATEST
from proctor.errors import ConfigError
from proctor.stats.mean import MeanEstimate
from proctor.store.folder import METADATA, RESULTS, UNREADABLE
from proctor.store.locate import journal_base, remembered_bases
from proctor.support.regular_files import open_regular, read_regular

ENVIRONMENTS = "./environments"
SHOWN_MATCHES = 4
SHOWN_FOLDERS = 2
"""Places that a message names; the others are counted."""
DAMAGED = "damaged"
INTERRUPTED = "interrupted"
"""Marked as running, but no process writes to it: its process died. `--resume` continues it."""


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as its metadata describes it; numbers are as of the last write."""

    id: str
    """The name of its folder."""
    folder: Path
    env: str = ""
    model: str = ""
    label: str = ""
    agent: str = ""
    """What worked on the tasks; empty where the environment owns its turns."""
    runtime: str = ""
    """Where the environment was; empty for in process."""
    owner: str = ""
    """The user of the server that it is on."""
    server: str = ""
    """The address of the server, if it is not here."""
    imported_from: str = ""
    """The tool that played it, if not Proctor."""
    status: str
    """That of the run, or `interrupted`, or `damaged`."""
    started_at: float
    seconds: float | None = None
    settled: int | None = None
    planned: int | None = None
    reward: MeanEstimate | None = None
    sampling: Mapping[str, Any] = {}
    note: str = ""
    """Why it failed or was stopped, or which part is damaged."""


class StoredSummary(msgspec.Struct, frozen=True):
    """The part of a stored summary that a list shows."""

    reward: MeanEstimate


class StoredConfig(msgspec.Struct, frozen=True):
    """The part of the stored settings that a list shows."""

    runtime: str | None = None


class StoredImport(msgspec.Struct, frozen=True):
    """Where an imported run came from."""

    tool: str = ""


class StoredMetadata(msgspec.Struct, frozen=True):
    """The part of the metadata that a list shows."""

    env_id: str = ""
    name: str | None = None
    model: str = ""
    label: str = ""
    agent: str | None = None
    config: StoredConfig = StoredConfig()
    status: str = ""
    date: str = ""
    time: float | None = None
    note: str = ""
    planned: int | None = None
    settled: int | None = None
    sampling_args: dict[str, Any] = {}
    imported: StoredImport = StoredImport()
    summary: msgspec.Raw = msgspec.Raw(b"null")


_decode_metadata = msgspec.json.Decoder(StoredMetadata).decode
_decode_summary = msgspec.json.Decoder(StoredSummary).decode


# Looking


def search_folders(dirs: Iterable[str] = (), env_dir: str = ENVIRONMENTS) -> list[Path]:
    """Where to look: in the folders named, else where runs are saved, journaled, and were saved with -o."""
    named = [expand_path(each) for each in dirs]
    for folder in named:
        if not folder.is_dir():
            raise ConfigError(f"No folder {str(folder)!r}; pass --dir the folder that you passed to -o.")
    return named or [
        Path("outputs"),
        *sorted(Path(env_dir).glob("*/outputs")),
        journal_base(),
        *remembered_bases(),
    ]


def run_folders(where: Iterable[Path]) -> list[Path]:
    """Every run that lies there, the newest first; each once."""
    found = {os.path.realpath(folder): folder for base in where for folder in list_runs_below(base)}
    return sorted(found.values(), key=modified_at, reverse=True)


def list_runs_below(base: Path) -> list[Path]:
    """The runs below a base, also when the base is `evals` itself, or a folder further in."""
    try:
        patterns = ("evals/*/*",) if (base / "evals").is_dir() else ("*/*", "*")
        return [path for pattern in patterns for path in base.glob(pattern) if is_run_folder(path)]
    except OSError:
        return []


def is_run_folder(path: Path) -> bool:
    try:
        return (path / METADATA).exists() or (path / RESULTS).exists()
    except OSError:  # not ours to look into, or no possible path
        return False


def expand_path(word: str) -> Path:
    try:
        return Path(word).expanduser()
    except RuntimeError:  # no such user's home
        return Path(word)


def modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone since it was found
        return 0.0


def find_run(word: str, where: Sequence[Path]) -> Path:
    """The folder of a run that is named by its folder, its id, the beginning of its id, or as the latest."""
    path = expand_path(word)
    if path.name in (RESULTS, METADATA) and is_run_folder(path.parent):
        return path.parent
    if is_run_folder(path):
        return path
    folders = run_folders(where)
    if not folders:
        raise ConfigError(f"No runs in {join_with_or(where)}; name another folder with --dir.")
    if word == LATEST:
        return folders[0]
    exact = [folder for folder in folders if folder.name == word]
    found = exact or [folder for folder in folders if word and folder.name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(
            f"No run {word!r} in {join_with_or(where)}; "
            "`proctor jobs` lists those there are, and --dir "
            f"names another place."
        )
    raise ConfigError(
        f"{len(found)} runs begin with {word!r}: {format_matches(found)}; give more of it, or a folder."
    )


def join_with_or(where: Sequence[Path]) -> str:
    shown = len(where) if len(where) <= SHOWN_FOLDERS + 1 else SHOWN_FOLDERS
    others = [f"{len(where) - shown} other folders"] if shown < len(where) else []
    *firsts, last = [*map(str, where[:shown]), *others]
    return f"{', '.join(firsts)} or {last}" if firsts else last


def format_matches(folders: Sequence[Path]) -> str:
    same = len({folder.name for folder in folders}) == 1
    names = [str(folder) if same else folder.name for folder in folders[:SHOWN_MATCHES]]
    return ", ".join(names) + (" …" if len(folders) > SHOWN_MATCHES else "")


# Reading


def read_run(folder: Path) -> StoredRun:
    """The metadata, or what is wrong with it."""
    try:
        stored = _decode_metadata(read_regular(folder / METADATA))
    except OSError as error:
        return damaged_run(folder, f"{METADATA} cannot be read ({error.strerror})")
    except UNREADABLE as error:
        return damaged_run(folder, f"{METADATA} is damaged: {error}")
    return StoredRun(
        id=run_name(folder),
        folder=folder,
        env=stored.name or stored.env_id,
        model=stored.model,
        label=stored.label,
        agent=stored.agent or "",
        runtime=stored.config.runtime or "",
        imported_from=stored.imported.tool,
        status=INTERRUPTED if is_abandoned(folder, stored.status) else stored.status,
        started_at=parse_start_time(stored.date, folder),
        seconds=stored.time,
        settled=stored.settled,
        planned=stored.planned,
        reward=decode_reward(stored.summary),
        sampling=stored.sampling_args,
        note=stored.note,
    )


def damaged_run(folder: Path, note: str) -> StoredRun:
    return StoredRun(
        id=run_name(folder), folder=folder, status=DAMAGED, started_at=modified_at(folder), note=note
    )


def run_name(folder: Path) -> str:
    return folder.name or folder.resolve().name


def parse_start_time(date: str, folder: Path) -> float:
    try:
        return datetime.fromisoformat(date).timestamp()
    except ValueError:
        return modified_at(folder)


def decode_reward(summary: msgspec.Raw) -> MeanEstimate | None:
    try:
        return _decode_summary(summary).reward
    except UNREADABLE:  # none yet, or of another shape: the list goes without
        return None


def is_abandoned(folder: Path, status: str) -> bool:
    """Whether a run marked as running has no process that holds its results."""
    if status not in ("pending", "running"):
        return False
    try:
        with os.fdopen(open_regular(folder / RESULTS), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # held by its writer, or unknown
        return False
    return True
