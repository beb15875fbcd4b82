from __future__ import annotations

import pytest

from proctor.datasets.selection import (
    format_ranges,
    parse_ranges,
    sample_indices,
    select_rows,
)
from proctor.errors import ConfigError

HASH = "a" * 64


def test_without_a_limit_a_random_tenth_is_selected_the_same_everywhere() -> None:
    selection = select_rows(100, None, content_hash=HASH)

    assert list(selection.indices) == [4, 23, 39, 53, 64, 67, 72, 83, 85, 91]
    assert selection.seed == 0
    assert selection.describe() == "10 of 100 rows: a random 10% (seed 0)"


def test_the_tenth_depends_on_the_seed_and_on_the_content() -> None:
    indices = select_rows(100, None, content_hash=HASH).indices

    assert select_rows(100, None, content_hash=HASH, seed=1).indices != indices
    assert select_rows(100, None, content_hash="b" * 64).indices != indices


def test_a_tenth_of_few_rows_is_one() -> None:
    assert len(select_rows(3, None, content_hash=HASH)) == 1


def test_every_row_is_equally_likely() -> None:
    counts = [0] * 10
    for seed in range(2_000):
        for index in sample_indices(10, 3, seed, HASH):
            counts[index] += 1

    assert all(520 < count < 680 for count in counts)  # 600 expected, 4 standard deviations


def test_a_number_selects_the_first_rows_and_all_selects_all() -> None:
    assert list(select_rows(10, 3, content_hash=HASH).indices) == [0, 1, 2]
    assert len(select_rows(10, 99, content_hash=HASH)) == 10
    assert select_rows(10, "all", content_hash=HASH).describe() == "10 of 10 rows: all"


def test_an_offset_leaves_out_the_first_rows_of_each_rule() -> None:
    assert list(select_rows(10, 3, content_hash=HASH, offset=5).indices) == [5, 6, 7]
    assert list(select_rows(10, "all", content_hash=HASH, offset=8).indices) == [8, 9]
    assert all(50 <= index < 100 for index in select_rows(100, None, content_hash=HASH, offset=50).indices)
    with pytest.raises(ConfigError, match="--offset 10 leaves out every row"):
        select_rows(10, None, content_hash=HASH, offset=10)


def test_rows_are_named_by_ranges() -> None:
    selection = select_rows(30, None, content_hash=HASH, rows=parse_ranges("3, 7,10-20,12"))

    assert list(selection.indices) == [3, 7, *range(10, 21)]
    assert selection.ranges == "3,7,10-20"
    with pytest.raises(ConfigError, match="names row 40; the dataset has 30, from 0 to 29"):
        select_rows(30, None, content_hash=HASH, rows=parse_ranges("40"))


@pytest.mark.parametrize("text", ["", "a", "3-", "5-3", "-1", "1,,2"])
def test_ranges_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--rows"):
        parse_ranges(text)


def test_many_ranges_are_shown_as_the_first_ones() -> None:
    assert format_ranges([1, 3, 5, 6, 9], most=2) == "1,3,…"
