"""What the process that reads a dataset is given, and what it answers. Knows nothing of sandboxes."""

from __future__ import annotations

import msgspec

RESULT_FILE = "result.json"


class ScanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which file to read, and how much of it."""

    file: str
    """Its name in the folder that the process was started in."""
    shown_rows: int
    counts: bool
    """Read to the end, to count the rows and to find one that cannot be read."""
    is_beginning: bool = False
    """The file is the beginning of a longer one: its last row may be cut off."""


class DatasetScan(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds."""

    columns: list[str] = []
    rows: list[list[str | None]] = []
    """The first ones: a text per column, None where a row has no such column."""
    total: int | None = None
    """All rows; None if they were not counted."""
    is_whole: bool = False
    """The file has no rows beside those in `rows`."""
    problem: str = ""
    """Why it is no dataset, with the line."""
