"""A dataset file as a run uses it: its identity, all of its problems, and the tasks of selected rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import overload

import msgspec

from proctor.datasets.files import (
    FORMATS,
    DataRow,
    UnreadableRow,
    find_scanner,
    hash_file,
    read_rows,
    scan_rows,
)
from proctor.datasets.prompts import Mode, build_task, find_mode, find_row_problems, list_ignored_columns
from proctor.datasets.selection import RowSelection
from proctor.errors import ConfigError, FileError, did_you_mean
from proctor.task import Task

MOST_PROBLEMS = 100
"""So many are kept; the others are counted."""
MOST_COLUMNS = 1_000


class DatasetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds, and everything that is wrong with it."""

    path: str
    format: str
    bytes: int
    sha256: str
    rows: int
    mode: Mode
    columns: tuple[str, ...]
    ignored_columns: tuple[str, ...]
    problems: tuple[str, ...]
    """As file:line: text, the first ones."""
    problem_count: int

    @property
    def is_valid(self) -> bool:
        return self.problem_count == 0

    def raise_if_invalid(self) -> None:
        if not self.is_valid:
            raise ConfigError("\n".join(self.describe_problems()))

    def describe_problems(self) -> list[str]:
        more = self.problem_count - len(self.problems)
        return [*self.problems, *([f"… and {more:,} more problems."] if more else [])]


class ProblemList:
    """Counts problems, and keeps the first ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.kept: list[str] = []

    def add(self, line: int, text: str) -> None:
        self.count += 1
        if len(self.kept) < MOST_PROBLEMS:
            self.kept.append(f"{self.path}:{line}: {text}")


def validate(path: Path) -> DatasetReport:
    """Read every row once and collect what is wrong; only a file that cannot be read at all is an error."""
    find_scanner(path)
    problems = ProblemList(path)
    columns: dict[str, None] = {}
    mode: Mode = "prompt"
    count = 0
    try:
        for count, row in enumerate(scan_rows(path), start=1):  # noqa: B007
            if isinstance(row, UnreadableRow):
                problems.add(row.line, row.problem)
                continue
            if not columns:
                mode = find_mode(row.values)
            if len(columns) < MOST_COLUMNS:
                columns.update(dict.fromkeys(row.values))
            for text in find_row_problems(row.values, mode):
                problems.add(row.line, text)
    except FileError as error:
        problems.count += len(error.problems)
        problems.kept.extend(error.problems)
    if not count and not problems.count:
        problems.add(1, "the dataset has no rows.")
    return DatasetReport(
        path=str(path),
        format=path.suffix.lower().lstrip("."),
        bytes=path.stat().st_size,
        sha256=hash_file(path),
        rows=count,
        mode=mode,
        columns=tuple(columns),
        ignored_columns=list_ignored_columns(columns),
        problems=tuple(problems.kept),
        problem_count=problems.count,
    )


class SelectedTasks(Sequence[Task]):
    """The tasks of selected rows: their number is known, and they are read as they are played."""

    def __init__(self, path: Path, selection: RowSelection, mode: Mode) -> None:
        self.path = path
        self.selection = selection
        self.mode = mode

    def __len__(self) -> int:
        return len(self.selection)

    def __iter__(self) -> Iterator[Task]:
        for row in read_selected(self.path, self.selection.indices):
            yield build_task(row, self.mode, str(self.path))

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            chosen = replace_indices(self.selection, self.selection.indices[index])
            return SelectedTasks(self.path, chosen, self.mode)
        chosen = replace_indices(self.selection, [self.selection.indices[index]])
        return next(iter(SelectedTasks(self.path, chosen, self.mode)))


def replace_indices(selection: RowSelection, indices: Sequence[int]) -> RowSelection:
    return msgspec.structs.replace(selection, indices=indices)


def read_selected(path: Path, indices: Iterable[int]) -> Iterator[DataRow]:
    """The rows at ascending indices; reading ends with the last of them."""
    wanted = iter(indices)
    following = next(wanted, None)
    if following is None:
        return
    for row in scan_rows(path):
        if row.index != following:
            continue
        if isinstance(row, UnreadableRow):
            raise FileError(str(path), [(row.line, row.problem)])
        yield row
        following = next(wanted, None)
        if following is None:
            return
    raise ConfigError(f"{path} has no row {following:,}; it has changed since its rows were selected.")


def preview(path: Path, count: int) -> list[DataRow]:
    """The first rows."""
    return list(islice(read_rows(path), count))


def locate_dataset(name: str, folder: Path) -> Path:
    """The file of a dataset in a folder, by its name without the ending."""
    found = [path for suffix in FORMATS if (path := folder / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        files = " and ".join(path.name for path in found)
        raise ConfigError(f"The dataset {name!r} is ambiguous: {folder} has {files}; remove one of them.")
    if not found:
        known = sorted({path.stem for path in folder.glob("*") if path.suffix.lower() in FORMATS})
        raise ConfigError(
            f"There is no dataset {name!r}: {folder} has no {name}{{{','.join(FORMATS)}}}"
            f"{did_you_mean(name, known)}"
        )
    return found[0]
