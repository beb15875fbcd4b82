"""What two sequences have in common, in their order: a longest common subsequence, found at a bounded cost.

`difflib` takes cubic time on sequences of few different items, such as roles of messages, and anyone can
write such a rollout. Here a row of the usual table is one integer, and so one step. Knows nothing of
messages.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple


class Stretch(NamedTuple):
    """Parts of two sequences that correspond."""

    is_same: bool
    start: int
    end: int
    other_start: int
    other_end: int


def find_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The places of common items in both, the earliest where there is a choice."""
    places: dict[Hashable, int] = {}
    for place, item in enumerate(other):
        places[item] = places.get(item, 0) | 1 << place
    full = (1 << len(other)) - 1
    rows = [full]
    """A bit of a row is 0 where one more item of `other` makes the common part longer."""
    for item in one:
        row, there = rows[-1], places.get(item, 0)
        rows.append((row + (row & there) | row - (row & there)) & full)
    found: list[tuple[int, int]] = []
    left, right = len(one), len(other)
    while left and right:
        if rows[left] >> right - 1 & 1:
            right -= 1
            continue
        left -= 1
        if rows[left] >> right - 1 & 1:
            right -= 1
            found.append((left, right))
    return found[::-1]


def find_stretches(one: Sequence[Hashable], other: Sequence[Hashable]) -> Iterator[Stretch]:
    """Both sequences from their beginning to their end, as stretches that are the same or not."""
    at, other_at = 0, 0
    same_from = (0, 0)
    for place, other_place in [*find_common(one, other), (len(one), len(other))]:
        if (place, other_place) != (at, other_at) or place == len(one) or other_place == len(other):
            if same_from != (at, other_at):
                yield Stretch(True, same_from[0], at, same_from[1], other_at)
            if (at, other_at) != (place, other_place):
                yield Stretch(False, at, place, other_at, other_place)
            same_from = (place, other_place)
        at, other_at = place + 1, other_place + 1
