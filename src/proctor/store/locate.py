"""Where runs are kept, and which of them may be resumed.

Saved runs lie with their environment or in ./outputs. Every other run is journaled in the user's state
directory, so that nothing is lost if you did not ask to save it; the newest are kept.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import platformdirs

from proctor.config.sweep import truncate_with_digest

KEPT_JOURNALS = 50
KEPT_BASES = 50
REMEMBERED = "saved"
"""Beside the journals: a note for each folder that was passed to -o."""
LONGEST_FOLDER = 240
"""In bytes; most disks allow 255."""


def folder_of_runs(base: Path, name: str, model: str, label: str = "") -> Path:
    """The folder that holds all runs of one environment with one model, under one label of a sweep."""
    parts = (name, model, label.replace(" ", ",")) if label else (name, model)
    return (
        base / "evals" / truncate_with_digest("--".join(to_path_part(part) for part in parts), LONGEST_FOLDER)
    )


def saved_base(output_dir: str | None, env_dir: str, module: str) -> Path:
    if output_dir is not None:
        return Path(output_dir)
    own = Path(env_dir) / module
    return own / "outputs" if own.is_dir() else Path("outputs")


def journal_base() -> Path:
    return platformdirs.user_state_path("proctor") / "runs"


def keep_private(base: Path) -> None:
    """Journals hold whole conversations, so only their owner may read them, older ones included."""
    with suppress(OSError):  # if it is not writable, storing the run reports that
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        base.chmod(0o700)


def remember_base(base: Path) -> None:
    """Note a folder of saved runs in an unusual location, so that `proctor jobs` finds them."""
    where = str(base.expanduser().resolve())
    note = journal_base() / REMEMBERED / hashlib.sha256(where.encode(errors="backslashreplace")).hexdigest()
    with suppress(OSError, UnicodeEncodeError):  # the run itself is stored whether it is found or not
        keep_private(journal_base())
        note.parent.mkdir(exist_ok=True)
        note.write_text(where, encoding="utf-8")
        for old in list_notes()[KEPT_BASES:]:
            old.unlink(missing_ok=True)


def remembered_bases() -> list[Path]:
    """The folders of saved runs that were noted and are still there, the newest first."""
    found = []
    for note in list_notes():
        with suppress(OSError, UnicodeDecodeError, ValueError):
            base = Path(note.read_text(encoding="utf-8"))
            found += [base] if base.is_dir() else []
    return found


def list_notes() -> list[Path]:
    notes = journal_base() / REMEMBERED
    return sorted(notes.glob("*"), key=lambda note: note.stat().st_mtime, reverse=True)


def list_newest_first(*folders: Path) -> list[Path]:
    """The runs in all of these folders."""
    runs = [path for folder in folders for path in folder.glob("*") if path.is_dir()]
    return sorted(runs, key=lambda path: path.stat().st_mtime, reverse=True)


def prune_journals(base: Path, kept: int = KEPT_JOURNALS) -> None:
    """Forget the oldest journaled runs."""
    for old in sorted(_list_journals(base), key=lambda path: path.stat().st_mtime, reverse=True)[kept:]:
        shutil.rmtree(old, ignore_errors=True)


def _list_journals(base: Path) -> Iterator[Path]:
    return (path for path in base.glob("evals/*/*") if path.is_dir())


def to_path_part(text: str) -> str:
    """A text as one part of a path."""
    name = text.strip("/").replace("/", "--").replace("\\", "--").replace(":", "-")
    name = "".join(letter if letter.isprintable() else "_" for letter in name)
    encoding = sys.getfilesystemencoding()  # where that is not UTF-8, letters it lacks become their numbers
    name = name.encode(encoding, "backslashreplace").decode(encoding).replace("\\", "_")
    return name if name not in ("", ".", "..") else "unnamed"
