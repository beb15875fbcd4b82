"""Which rows of a dataset a run plays.

    limit absent     a random tenth, at least one row: the same rows on every machine, because they follow
                     from the seed and the file's content alone
    limit = N        the first N
    limit = "all"    every row

`rows` names them one by one instead; `offset` leaves out the first ones before any of this. Knows counts and
indices, and nothing of files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from proctor.errors import ConfigError

ALL = "all"
SAMPLED_SHARE = 10
"""One row in so many."""
WORD_BYTES = 8
SHOWN_RANGES = 20
RANGE = re.compile(r"(\d{1,12})(?:\s*-\s*(\d{1,12}))?")

Limit = int | Literal["all"] | None


class RowSelection(msgspec.Struct, frozen=True):
    """The selected rows, and why those."""

    total: int
    """Rows in the dataset."""
    indices: Sequence[int]
    """Positions in the dataset from 0, ascending."""
    rule: str
    """In words."""
    seed: int | None = None
    """Of a random selection."""

    def __len__(self) -> int:
        return len(self.indices)

    def describe(self) -> str:
        return f"{len(self):,} of {self.total:,} rows: {self.rule}"

    @property
    def ranges(self) -> str:
        """All indices in the spelling of --rows."""
        return format_ranges(self.indices)

    @property
    def short_ranges(self) -> str:
        return format_ranges(self.indices, SHOWN_RANGES)


def select_rows(
    total: int,
    limit: Limit,
    *,
    content_hash: str,
    seed: int = 0,
    offset: int = 0,
    rows: Sequence[range] = (),
    most_listed: int | None = None,
) -> RowSelection:
    """The rows that a limit, an offset or a list of ranges selects. Those that are not one range are listed
    one by one; with `most_listed`, more than that are refused."""
    if total < 1:
        raise ConfigError("The dataset has no rows.")
    if rows:
        refuse_many(sum(each.stop - each.start for each in rows), most_listed)
        return select_named_rows(total, rows)
    if offset >= total:
        raise ConfigError(f"--offset {offset:,} leaves out every row; the dataset has {total:,}.")
    after = f" after the first {offset:,}" if offset else ""
    rest = total - offset
    if limit is None:
        count = max(1, rest // SAMPLED_SHARE)
        refuse_many(count, most_listed)
        chosen = sample_indices(rest, count, seed, content_hash)
        rule = f"a random {100 // SAMPLED_SHARE}%{after} (seed {seed})"
        return RowSelection(total, [offset + index for index in chosen], rule, seed)
    count = rest if limit == ALL else min(int(limit), rest)
    rule = f"the first {count:,}{after}" if count < rest else f"all{after}"
    return RowSelection(total, range(offset, offset + count), rule)


def refuse_many(count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise ConfigError(
            f"This selects {count:,} rows one by one, and at most {most:,} can be listed here; take all of "
            f"them, or the first ones."
        )


def select_named_rows(total: int, rows: Sequence[range]) -> RowSelection:
    last = max(each[-1] for each in rows)
    if last >= total:
        raise ConfigError(f"--rows names row {last:,}; the dataset has {total:,}, from 0 to {total - 1:,}.")
    indices = sorted({index for each in rows for index in each})
    return RowSelection(total, indices, "named by --rows")


def parse_ranges(text: str, flag: str = "--rows") -> tuple[range, ...]:
    """Rows as people write them: '3,7,10-20', both ends included, counted from 0."""
    ranges = []
    for word in (word.strip() for word in text.split(",")):
        found = RANGE.fullmatch(word)
        if found is None:
            raise ConfigError(f"{flag} must look like 3,7,10-20, counted from 0; {word!r} does not.")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ConfigError(f"{flag}: {word!r} ends before it begins.")
        ranges.append(range(first, last + 1))
    return tuple(ranges)


def format_ranges(indices: Sequence[int], most: int | None = None) -> str:
    """Ascending indices in the spelling of --rows; '…' for all ranges after the first `most`."""
    if isinstance(indices, range):
        return "" if not indices else f"{indices[0]}-{indices[-1]}" if len(indices) > 1 else f"{indices[0]}"
    words: list[str] = []
    for first, last in find_runs(indices):
        if most is not None and len(words) == most:
            return ",".join(words) + ",…"
        words.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(words)


def find_runs(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    first = last = -2
    for index in indices:
        if index != last + 1:
            if first >= 0:
                yield first, last
            first = index
        last = index
    if first >= 0:
        yield first, last


def sample_indices(total: int, count: int, seed: int, content_hash: str) -> list[int]:
    """`count` of `total` indices, all equally likely, ascending: Floyd's algorithm.

    Its random numbers are defined here, because those of the standard library may change with its version.
    """
    draw = draw_numbers(f"proctor rows 1\n{seed}\n{content_hash}\n")
    chosen: set[int] = set()
    for largest in range(total - count, total):
        index = draw_below(largest + 1, draw)
        chosen.add(index if index not in chosen else largest)
    return sorted(chosen)


def draw_numbers(key: str) -> Iterator[int]:
    """64-bit numbers: SHA-256 of the key and a counter, in pieces."""
    block = 0
    while True:
        digest = hashlib.sha256(f"{key}{block}".encode()).digest()
        for start in range(0, len(digest), WORD_BYTES):
            yield int.from_bytes(digest[start : start + WORD_BYTES], "big")
        block += 1


def draw_below(bound: int, draw: Iterator[int]) -> int:
    """A number below the bound, all equally likely."""
    span = 2 ** (8 * WORD_BYTES)
    largest = span - span % bound
    return next(number for number in draw if number < largest) % bound
