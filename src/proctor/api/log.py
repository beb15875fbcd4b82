"""A run's log, read in either direction, by level and by text."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
MOST_LINES_AT_ONCE = 2_000


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines: the last ones, those before or after a number, or those around it."""

    before: int | None = None
    after: int | None = None
    around: int | None = None
    level: list[LogLevel] = []
    q: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES_AT_ONCE)] = 500


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    """Grows with each line; numbers may have gaps."""
    at: float | None = None
    level: str = ""
    text: str = ""


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[LogEntry]
    more_before: bool = False
    more_after: bool = False
    is_complete: bool = False
    """The run has ended, so that no lines follow but those that `more_after` is about."""
