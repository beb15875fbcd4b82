"""What two sequences have in common."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from proctor.store.subsequence import find_common, find_stretches

LETTERS = st.text("abc", max_size=12)


def longest(one: str, other: str) -> int:
    """By the definition."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, letter in enumerate(one, 1):
        for j, there in enumerate(other, 1):
            same = table[i - 1][j - 1] + (letter == there)
            table[i][j] = max(same, table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


@given(LETTERS, LETTERS)
def test_the_common_part_is_common_in_order_and_the_longest(one: str, other: str) -> None:
    found = find_common(one, other)
    assert all(one[left] == other[right] for left, right in found)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(found))
    assert len(found) == longest(one, other)


@given(LETTERS, LETTERS)
def test_stretches_cover_both_sequences_once(one: str, other: str) -> None:
    found = list(find_stretches(one, other))
    assert "".join(one[each.start : each.end] for each in found) == one
    assert "".join(other[each.other_start : each.other_end] for each in found) == other
    for each in found:
        parts = one[each.start : each.end], other[each.other_start : each.other_end]
        assert any(parts)
        assert not each.is_same or parts[0] == parts[1]
    assert sum(each.end - each.start for each in found if each.is_same) == longest(one, other)
    assert all(a.is_same != b.is_same for a, b in itertools.pairwise(found))
