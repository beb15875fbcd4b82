"""Pages of a log: which lines, in either direction, by level and by text.

Lines are numbered from 1 without gaps. Knows nothing of where lines come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from proctor.api.log import LogEntry, LogPage, LogQuery
from proctor.support.logs import PRINTED

LEVELS = ("", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", PRINTED)
ASKED_AS = {"CRITICAL": "ERROR", PRINTED: "INFO"}
"""The level by which one asks for lines of these."""
MOST_PAGE_CHARACTERS = 4 * 2**20

Matches = Callable[[int], bool]


def list_levels(query: LogQuery) -> set[int]:
    """The levels that a query asks for, as places in LEVELS."""
    return {
        index
        for index, level in enumerate(LEVELS)
        if not query.level or ASKED_AS.get(level, level) in query.level
    }


def build_log_page(
    count: int, query: LogQuery, matches: Matches, read: Callable[[int], LogEntry], is_complete: bool
) -> LogPage:
    """A page of at most this many lines; it ends early, at its far end, if its lines are long."""
    numbers = choose_lines(count, query, matches)
    from_end = query.after is None and query.around is None
    chosen: list[int] = []
    entries: list[LogEntry] = []
    size = 0
    for number in reversed(numbers) if from_end else numbers:
        entry = read(number)
        size += len(entry.text)
        if entries and size > MOST_PAGE_CHARACTERS:
            break
        chosen.append(number)
        entries.append(entry)
    if from_end:
        chosen.reverse()
        entries.reverse()
    first, last = (chosen[0], chosen[-1]) if chosen else find_edges(count, query)
    return LogPage(
        items=entries,
        more_before=next(filter(matches, range(first - 1, 0, -1)), None) is not None,
        more_after=next(filter(matches, range(last + 1, count + 1)), None) is not None,
        is_complete=is_complete,
    )


def choose_lines(count: int, query: LogQuery, matches: Matches) -> list[int]:
    """The numbers of the lines of a page."""
    if query.after is not None:
        return take(filter(matches, range(max(0, query.after) + 1, count + 1)), query.limit)
    if query.around is not None:
        middle = max(1, min(query.around, count))
        before = take(filter(matches, range(middle - 1, 0, -1)), query.limit // 2)
        after = take(filter(matches, range(middle, count + 1)), query.limit - len(before))
        return [*reversed(before), *after]
    end = count if query.before is None else min(count, query.before - 1)
    return take(filter(matches, range(end, 0, -1)), query.limit)[::-1]


def find_edges(count: int, query: LogQuery) -> tuple[int, int]:
    """Between which lines an empty page is."""
    if query.before is not None:
        return 1, max(0, query.before - 1)
    return (query.after or 0) + 1, count


def take(numbers: Iterator[int], most: int) -> list[int]:
    return [number for number, _ in zip(numbers, range(most), strict=False)]
