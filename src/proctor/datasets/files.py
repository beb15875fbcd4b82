"""The rows of a CSV, JSON Lines or Parquet file, one at a time, each with its line.

A file is never loaded whole, and a row that cannot be read is reported and skipped. Knows nothing of what the
columns mean.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from proctor.datasets.parquet import ParquetProblem, read_parquet
from proctor.errors import ConfigError, FileError, describe_os_error

LONGEST_ROW_BYTES = 16 * 2**20
CHUNK_BYTES = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Row = dict[str, Any]


class DataRow(msgspec.Struct, frozen=True, gc=False):
    """One row of a file."""

    index: int
    """Its position among the rows, from 0."""
    line: int
    """The line it begins on; of a Parquet file, the number of the row, from 1."""
    values: Row


class UnreadableRow(msgspec.Struct, frozen=True, gc=False):
    """A row that cannot be read, and why."""

    index: int
    line: int
    problem: str


Scanner = Callable[[Path], Iterator[DataRow | UnreadableRow]]


def scan_rows(path: Path) -> Iterator[DataRow | UnreadableRow]:
    """Every row in order; one that cannot be read keeps its position."""
    scan = find_scanner(path)
    try:
        yield from scan(path)
    except OSError as error:
        raise FileError(str(path), [(1, f"the file cannot be read: {describe_os_error(error)}.")]) from error


def read_rows(path: Path) -> Iterator[DataRow]:
    """Every row in order; the first that cannot be read is an error with its line."""
    for row in scan_rows(path):
        if isinstance(row, UnreadableRow):
            raise FileError(str(path), [(row.line, row.problem)])
        yield row


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's content: two files with the same hash are the same dataset."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise FileError(str(path), [(1, f"the file cannot be read: {describe_os_error(error)}.")]) from error
    return digest.hexdigest()


def find_scanner(path: Path) -> Scanner:
    scanner = SCANNERS.get(path.suffix.lower())
    if scanner is None:
        raise ConfigError(
            f"{str(path)!r} has an unknown format; the name of a dataset ends in {', '.join(SCANNERS)}."
        )
    if not path.is_file():
        raise ConfigError(f"There is no dataset {str(path)!r}.")
    return scanner


# JSON Lines


def scan_jsonl(path: Path) -> Iterator[DataRow | UnreadableRow]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    index = 0
    for number, line in read_lines(path):
        if line is not None and not line.strip():
            continue
        if line is None:
            yield UnreadableRow(index, number, describe_long_row())
        else:
            try:
                yield DataRow(index, number, decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                yield UnreadableRow(index, number, f"this is not a JSON object: {error}.")
        index += 1


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file with their numbers; None for one that is too long, which is read past."""
    with path.open("rb") as file:
        if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
            file.seek(0)
        number = 0
        while line := file.readline(LONGEST_ROW_BYTES + 1):
            number += 1
            if len(line) <= LONGEST_ROW_BYTES:
                yield number, line
            else:
                skip_line(file, line)
                yield number, None


def skip_line(file: IO[bytes], piece: bytes) -> None:
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(CHUNK_BYTES)


def describe_long_row() -> str:
    return f"this row has more than {LONGEST_ROW_BYTES // 2**20} MB."


# CSV


class CsvLines:
    """Feeds a csv.reader, and keeps what it cannot tell: the current row's first line, and bad bytes."""

    def __init__(self, path: Path) -> None:
        self._lines = read_lines(path)
        self._bytes = 0
        self.number = 0
        self.first = 0
        self.problem = ""

    def start_row(self) -> None:
        self._bytes, self.first, self.problem = 0, 0, ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        self.first = self.first or self.number
        self._bytes += LONGEST_ROW_BYTES + 1 if line is None else len(line)
        if self._bytes > LONGEST_ROW_BYTES:
            raise csv.Error(f"{describe_long_row()[:-1]}; is a quotation mark not closed?")
        assert line is not None
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.problem = "this row is not text in UTF-8."
            return line.decode(errors="replace")


def scan_csv(path: Path) -> Iterator[DataRow | UnreadableRow]:
    csv.field_size_limit(LONGEST_ROW_BYTES)
    lines = CsvLines(path)
    reader = csv.reader(lines, strict=True)
    columns = read_csv_header(path, reader, lines)
    index = 0
    while True:
        lines.start_row()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield UnreadableRow(index, lines.first, describe_csv_error(error))
            index += 1
            continue
        if cells is None:
            return
        if cells:
            yield build_csv_row(index, lines, columns, cells)
            index += 1


def describe_csv_error(error: csv.Error) -> str:
    return f"this is not valid CSV: {str(error).rstrip('?.')}."


def read_csv_header(path: Path, reader: Iterator[list[str]], lines: CsvLines) -> list[str]:
    try:
        columns = next(reader, None)
    except csv.Error as error:
        raise FileError(str(path), [(1, describe_csv_error(error))]) from error
    problem = lines.problem
    if not columns:
        problem = "the first line of a CSV file names its columns, and this one is empty."
    elif duplicates := {name for name in columns if columns.count(name) > 1}:
        problem = f"two columns are called {min(duplicates)!r}."
    if problem:
        raise FileError(str(path), [(1, problem)])
    assert columns is not None
    return columns


def build_csv_row(
    index: int, lines: CsvLines, columns: list[str], cells: list[str]
) -> DataRow | UnreadableRow:
    if lines.problem:
        return UnreadableRow(index, lines.first, lines.problem)
    if len(cells) != len(columns):
        problem = f"this row has {len(cells)} cells, and the file has {len(columns)} columns."
        return UnreadableRow(index, lines.first, problem)
    return DataRow(index, lines.first, dict(zip(columns, cells, strict=True)))


# Parquet


def scan_parquet(path: Path) -> Iterator[DataRow | UnreadableRow]:
    index = 0
    try:
        for values in read_parquet(path, LONGEST_ROW_BYTES):
            if values is None:
                yield UnreadableRow(index, index + 1, describe_long_row())
            else:
                yield DataRow(index, index + 1, values)
            index += 1
    except ParquetProblem as error:
        raise FileError(str(path), [(index + 1, str(error))]) from error


SCANNERS: dict[str, Scanner] = {".jsonl": scan_jsonl, ".csv": scan_csv, ".parquet": scan_parquet}
FORMATS = tuple(SCANNERS)
"""The endings of files that are datasets."""
