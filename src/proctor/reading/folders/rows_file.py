"""results.jsonl of one run: an index of its rows that follows the file as it grows.

Rows are read once, in a thread, and found again by their position in the file. A file that was replaced, as
a resumed run does, or cut is read anew. Knows nothing of metadata or HTTP.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Lock

from proctor.reading.entries import CostOf, EntryRow, read_entry
from proctor.reading.foreign_rows import read_foreign_entry
from proctor.reading.rollout_index import RolloutIndex
from proctor.report.tally import Tally
from proctor.store.folder import UNREADABLE
from proctor.support.regular_files import open_regular

CHUNK_BYTES = 2**20
LONGEST_ROW = 512 * 2**20
"""A line beyond that is skipped: it could not be sent anyway."""


class ReadRows:
    """The rows of one file as far as they were read. Another file means another object."""

    def __init__(self, file: int, pass_threshold: float) -> None:
        self.file = file
        self.inode = os.fstat(file).st_ino
        self.index = RolloutIndex(pass_threshold)
        self.index.complete = False
        self.tally = Tally(pass_threshold)
        self.start = array("Q")
        self.length = array("Q")
        self.reached = 0
        """Up to here the file was read."""
        self.lines = 0
        self.unreadable = 0
        self.replaced = 0
        """Rows of rollouts that a later row stands for; the tally counts them too."""

    def add(self, raw: bytes, start: int, cost_of: CostOf | None) -> None:
        self.lines += 1
        found = self._decode(raw, cost_of)
        if found is None:
            self.unreadable += bool(raw.strip())
            return
        with self.index.lock:
            before = self.index.count
            slot = self.index.add(found.record)
            if slot is None:
                return
            self.start.append(start)
            self.length.append(len(raw))
            self.replaced += self.index.count == before
            self.tally.add(found.line)

    def _decode(self, raw: bytes, cost_of: CostOf | None) -> EntryRow | None:
        try:
            return read_entry(raw, cost_of)
        except UNREADABLE:
            pass
        try:
            return read_foreign_entry(raw, self.lines, self.index.next_number, cost_of)
        except UNREADABLE:
            return None

    def row(self, slot: int) -> bytes:
        return os.pread(self.file, self.length[slot], self.start[slot])

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


class RowsFile:
    """Follows one results file. `refresh` is called in threads, one at a time."""

    def __init__(self, path: Path, pass_threshold: float, cost_of: CostOf | None) -> None:
        self.path = path
        self._pass_threshold = pass_threshold
        self._cost_of = cost_of
        self._lock = Lock()
        self._closed = Event()
        self.rows: ReadRows | None = None
        self._previous: ReadRows | None = None

    def refresh(self) -> ReadRows:
        """Read what is new. Raises OSError if the file cannot be read."""
        with self._lock:
            rows = self._current()
            self._read_on(rows)
            return rows

    def close(self) -> None:
        """Ends a reading in progress; rows can no longer be read."""
        self._closed.set()
        with self._lock:
            for rows in (self.rows, self._previous):
                if rows is not None:
                    rows.close()

    def _current(self) -> ReadRows:
        """The rows of the current file."""
        known = self.rows
        status = self.path.stat()
        if known is not None and known.inode == status.st_ino and known.reached <= status.st_size:
            return known
        rows = ReadRows(open_regular(self.path), self._pass_threshold)
        if self._previous is not None:
            self._previous.close()
        self._previous, self.rows = known, rows  # a request may still read from the last one
        return rows

    def _read_on(self, rows: ReadRows) -> None:
        for start, raw in iterate_lines(rows.file, rows.reached, self._closed):
            rows.add(raw, start, self._cost_of)
            rows.reached = start + len(raw)
        if self._closed.is_set():
            return
        rows.index.complete = True


def iterate_lines(file: int, start: int, closed: Event | None = None) -> Iterator[tuple[int, bytes]]:
    """Whole lines after a position, with where each starts; one that is still being written is left out, and
    so is one that is too long to keep in memory. Ends early once `closed` is set."""
    chunk = bytearray(CHUNK_BYTES)  # filled again and again: each line is copied once
    view = memoryview(chunk)
    parts: list[bytes] = []  # of a line whose end is in a later chunk
    at, position = start, start
    while (closed is None or not closed.is_set()) and (size := os.preadv(file, [chunk], position)):
        begin = 0
        while end := chunk.find(b"\n", begin, size) + 1:
            if position + end - at <= LONGEST_ROW:
                yield at, b"".join((*parts, view[begin:end]))
            at = position + end
            begin, parts = end, []
        position += size
        if position - at <= LONGEST_ROW:
            parts.append(bytes(view[begin:size]))
        else:
            parts = []


def read_batches(rows: ReadRows, slots: Sequence[int], most_bytes: int) -> Iterator[list[tuple[int, bytes]]]:
    """Rows in the order of their slots, this many bytes at a time."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for slot in slots:
        raw = rows.row(slot)
        batch.append((slot, raw))
        size += len(raw)
        if size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
