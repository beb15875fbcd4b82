"""Find what a path holds: result files of which tool, found by content and not by name.

A folder is searched for everything in it that can be imported. Links in it are not followed. Knows nothing
of how a format is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from proctor.errors import ConfigError, describe_os_error
from proctor.formats.foreign_run import ForeignRun
from proctor.formats.harbor import reading as harbor
from proctor.formats.hud import reading as hud
from proctor.formats.inspect import reading as inspect
from proctor.formats.promptfoo import reading as promptfoo
from proctor.formats.sources import SourceFile, UnusableSourceError
from proctor.formats.verifiers import reading as verifiers
from proctor.store.folder import METADATA, RESULTS

DEEPEST = 8
MOST_ENTRIES = 200_000
SUFFIXES = (".eval", ".json", ".jsonl", ".zip")


class ResultFormat(msgspec.Struct, frozen=True):
    """The result files of one tool."""

    name: str
    read: Callable[[Path, str | None], Iterable[ForeignRun]]
    recognizes_file: Callable[[SourceFile], bool] = lambda source: False  # noqa: ARG005
    recognizes_folder: Callable[[Path, frozenset[str]], bool] = lambda path, names: False  # noqa: ARG005


FORMATS = (
    ResultFormat("inspect", inspect.read, recognizes_file=inspect.recognizes_file),
    ResultFormat("harbor", harbor.read, recognizes_folder=harbor.recognizes_folder),
    ResultFormat("verifiers", verifiers.read, verifiers.recognizes_file, verifiers.recognizes_folder),
    ResultFormat("hud", hud.read, hud.recognizes_file, hud.recognizes_folder),
    ResultFormat("promptfoo", promptfoo.read, recognizes_file=promptfoo.recognizes_file),
)


class Found(msgspec.Struct, frozen=True):
    """A file or folder that can be imported."""

    path: Path
    format: ResultFormat


def find_sources(path: Path) -> list[Found]:
    """Everything at or below a path that can be imported; nothing at all is an error."""
    if not path.exists():
        raise ConfigError(f"There is no {str(path)!r}.")
    found = list(search(path, Budget())) if path.is_dir() else [recognize_file(path)]
    if not found:
        raise ConfigError(
            f"{path} holds no results that can be imported; known are those of "
            f"{', '.join(each.name for each in FORMATS)}."
        )
    return found


def recognize_file(path: Path) -> Found:
    """The format of a file that the user named; raises if there is none."""
    source = SourceFile(path)
    for each in FORMATS:
        if each.recognizes_file(source):
            return Found(path, each)
    line = source.first_line
    if line is not None and all(name in line for name in verifiers.OWN):
        raise ConfigError(f"{path} is already a run of Proctor; use it as it is.")
    raise UnusableSourceError(f"{path} is not a result file of {', '.join(each.name for each in FORMATS)}.")


class Budget:
    """How much of a tree may still be looked at."""

    def __init__(self) -> None:
        self.entries = MOST_ENTRIES

    def spend(self, folder: Path) -> None:
        self.entries -= 1
        if self.entries < 0:
            raise ConfigError(
                f"{folder} is in a folder of more than {MOST_ENTRIES:,} files; name one inside it."
            )


def search(folder: Path, budget: Budget, depth: int = 0) -> Iterator[Found]:
    names = list_names(folder, budget)
    for each in FORMATS:
        if each.recognizes_folder(folder, frozenset(names)):
            yield Found(folder, each)
            return
    if {RESULTS, METADATA} <= set(names):
        return  # a run of Proctor, or none at all
    for name in sorted(names):
        path = folder / name
        if path.is_symlink():
            continue
        if path.is_dir():
            if depth < DEEPEST and not name.startswith("."):
                yield from search(path, budget, depth + 1)
        elif path.suffix.lower() in SUFFIXES:
            yield from recognize_quietly(path)


def list_names(folder: Path, budget: Budget) -> list[str]:
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget.spend(folder)
                names.append(entry.name)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {describe_os_error(error)}.") from error
    return names


def recognize_quietly(path: Path) -> Iterator[Found]:
    """A file that was found by searching: what is nothing to import is passed over, what is damaged too,
    unless its name says that it is a log."""
    try:
        yield recognize_file(path)
    except ConfigError:
        if path.suffix.lower() == ".eval":
            yield Found(path, FORMATS[0])
