"""A run's log file, line by line: indexed as it grows, read in either direction, by level and by text.

Lines are numbered from 1. A line that has no time of its own, such as those of a traceback, belongs to the
entry before it. Knows nothing of runs or HTTP.
"""

from __future__ import annotations

import os
import re
from array import array
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from proctor.api.log import LogEntry, LogPage, LogQuery
from proctor.reading.folders.rows_file import iterate_lines
from proctor.reading.log_pages import LEVELS, build_log_page, list_levels
from proctor.support.regular_files import open_regular

HEAD = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([A-Z]+) ?")
LONGEST_LINE = 20_000
"""Characters; a longer line is cut."""


class LogFile:
    """One log file. Used in threads, one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._inode = 0
        self._reached = 0
        self._start = array("Q")
        self._level = bytearray()
        self._is_head = bytearray()

    def page(self, query: LogQuery, *, is_complete: bool) -> LogPage:
        with self._lock:
            try:
                file = open_regular(self.path)
            except OSError:  # most runs of other tools have none
                return LogPage(items=[], is_complete=is_complete)
            try:
                self._read_on(file)
                return self._page(file, query, is_complete)
            finally:
                os.close(file)

    def number_at(self, at: float) -> int | None:
        """The line nearest to a time, by the times of lines, which grow."""
        with self._lock:
            try:
                file = open_regular(self.path)
            except OSError:
                return None
            try:
                self._read_on(file)
                return self._find_time(file, at)
            finally:
                os.close(file)

    def _read_on(self, file: int) -> None:
        status = os.fstat(file)
        if status.st_ino != self._inode or status.st_size < self._reached:
            self._forget()
            self._inode = status.st_ino
        for start, raw in iterate_lines(file, self._reached):
            head = HEAD.match(raw)
            level = head[2].decode() if head else ""
            known = level in LEVELS
            self._start.append(start)
            self._is_head.append(bool(head and known))
            last = self._level[-1] if self._level else 0
            self._level.append(LEVELS.index(level) if head and known else last)
            self._reached = start + len(raw)

    # Pages

    def _page(self, file: int, query: LogQuery, is_complete: bool) -> LogPage:
        matches = Matcher(self, file, list_levels(query), (query.q or "").strip().lower())
        count = len(self._start)
        return build_log_page(
            count, query, matches, lambda number: self._entry(number, self.read(file, number)), is_complete
        )

    def _entry(self, number: int, raw: bytes) -> LogEntry:
        head = HEAD.match(raw) if self._is_head[number - 1] else None
        text = (raw[head.end() :] if head else raw).decode("utf-8", "replace").rstrip("\r\n")
        return LogEntry(
            number=number,
            at=None if head is None else parse_time(head[1]),
            level=LEVELS[self._level[number - 1]],
            text=text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} …",
        )

    def read(self, file: int, number: int) -> bytes:
        start = self._start[number - 1]
        end = self._start[number] if number < len(self._start) else self._reached
        return os.pread(file, min(end - start, 4 * LONGEST_LINE), start)

    def level(self, number: int) -> int:
        return self._level[number - 1]

    def _find_time(self, file: int, at: float) -> int | None:
        heads = [index + 1 for index, is_head in enumerate(self._is_head) if is_head]
        low, high = 0, len(heads)
        while low < high:
            middle = (low + high) // 2
            head = HEAD.match(self.read(file, heads[middle]))
            if head is not None and parse_time(head[1]) <= at:
                low = middle + 1
            else:
                high = middle
        return heads[max(0, low - 1)] if heads else None


class Matcher:
    """Whether a line has one of the levels, and a text."""

    def __init__(self, log: LogFile, file: int, levels: set[int], text: str) -> None:
        self._log, self._file, self._levels, self._text = log, file, levels, text

    def __call__(self, number: int) -> bool:
        if self._log.level(number) not in self._levels:
            return False
        if not self._text:
            return True
        return self._text in self._log.read(self._file, number).decode("utf-8", "replace").lower()


def parse_time(stamp: bytes) -> float:
    try:
        return datetime.strptime(stamp.decode(), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
