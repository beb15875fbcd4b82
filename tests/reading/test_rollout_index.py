"""Lists of rollouts: every rollout once, in the order asked for, also while rows arrive."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.api.refusals import InvalidError
from proctor.api.rollout_list import DistributionQuery, RolloutEntry, RolloutQuery, TaskQuery
from proctor.reading.distribution import compute_distribution
from proctor.reading.entries import EntryRecord
from proctor.reading.failures import list_failures
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import list_rollouts
from proctor.reading.task_groups import list_tasks
from proctor.stats.samples import variance
from tests.reading.records import indexed, record, records

SORTS = ["arrival", "task", "number", "outcome", "reward", "metric", "seconds", "tokens", "cost", "error"]
ROLLOUTS = st.lists(records(), max_size=40)
QUERIES = st.builds(
    RolloutQuery,
    sort=st.sampled_from(SORTS),
    descending=st.booleans(),
    limit=st.integers(1, 5),
    metric=st.just("style"),
    outcome=st.sampled_from([[], ["scored"], ["timeout", "scored"]]),
    reward_min=st.sampled_from([None, 0.0, 0.6]),
    q=st.sampled_from([None, "ANSWER", "ärger", "too many", "b/c"]),
)


def names(entries: list[RolloutEntry]) -> list[tuple[object, int]]:
    return [(entry.task, entry.number) for entry in entries]


def walk(index: RolloutIndex, query: RolloutQuery) -> list[RolloutEntry]:
    """Every page, each after the last item of the one before."""
    found: list[RolloutEntry] = []
    cursor = None
    while True:
        page = list_rollouts(index, msgspec.structs.replace(query, cursor=cursor))
        assert page.offset == len(found)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            assert len(found) == page.total
            return found


def value_of(entry: RolloutEntry, sort: str) -> object:
    values = {
        "number": entry.number,
        "reward": entry.reward,
        "metric": entry.metrics.get("style"),
        "seconds": entry.seconds,
        "tokens": entry.input_tokens + entry.output_tokens,
        "cost": entry.cost_usd,
        "error": entry.error_kind or None,
    }
    return values.get(sort, 0)


def matches(entry: RolloutEntry, query: RolloutQuery) -> bool:
    text = f"{entry.task}\n{entry.error}\n{entry.preview}".lower()
    return (
        (not query.outcome or entry.outcome in query.outcome)
        and (query.reward_min is None or (entry.reward is not None and entry.reward >= query.reward_min))
        and (query.q is None or query.q.lower() in text)
    )


@settings(max_examples=40)
@given(ROLLOUTS, QUERIES)
def test_pages_hold_every_match_once_and_in_order(found: list[EntryRecord], query: RolloutQuery) -> None:
    index = indexed(found)
    everything = index.entries(index.slots())

    listed = walk(index, query)

    assert sorted(map(str, names(listed))) == sorted(
        str(name) for name in names([e for e in everything if matches(e, query)])
    )
    valued = [value for entry in listed if (value := value_of(entry, query.sort)) is not None]
    assert valued == sorted(valued, reverse=query.descending)  # type: ignore[type-var]
    assert [value_of(entry, query.sort) is None for entry in listed] == sorted(
        value_of(entry, query.sort) is None for entry in listed
    ), "what has no value comes last"


@settings(max_examples=40)
@given(ROLLOUTS, ROLLOUTS, QUERIES)
def test_a_list_that_grows_while_it_is_read_repeats_and_skips_nothing(
    first: list[EntryRecord], later: list[EntryRecord], query: RolloutQuery
) -> None:
    index = indexed(first)
    before = {
        name: index.entry(slot)
        for slot, name in zip(index.slots(), names(index.entries(index.slots())), strict=True)
    }
    arriving = iter(later)
    seen: list[RolloutEntry] = []
    cursor = None
    for _ in range(200):
        page = list_rollouts(index, msgspec.structs.replace(query, cursor=cursor))
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
        if (record := next(arriving, None)) is not None:
            index.add(record)

    settled = {name for name, entry in before.items() if entry.settled}
    for name in settled:
        expected = int(matches(before[name], query))
        assert names(seen).count(name) == expected


def test_a_failed_rollout_is_replaced_and_a_settled_one_stays() -> None:
    failed = record(outcome="timeout", reward=None)

    index = indexed([failed, record(reward=0.25), record(reward=0.75)])

    (entry,) = list_rollouts(index, RolloutQuery()).items
    assert entry.reward == 0.25
    assert len(index) == 1
    assert index.find_slot(entry.key, 0) == 1


def test_a_cursor_continues_after_its_rollout_has_left_the_list() -> None:
    """It was listed as failed, and is scored when the next page is asked for."""
    found = [record(task, outcome="timeout", reward=None) for task in range(4)]
    index = indexed(found)
    failed = RolloutQuery(outcome=["timeout"], sort="task", limit=2)
    page = list_rollouts(index, failed)
    index.add(record(1, reward=1.0))

    rest = list_rollouts(
        index, RolloutQuery(outcome=["timeout"], sort="task", limit=2, cursor=page.next_cursor)
    )

    assert [entry.task for entry in rest.items] == [2, 3]


def test_a_cursor_of_another_order_is_refused() -> None:
    page = list_rollouts(indexed([record(task) for task in range(3)]), RolloutQuery(limit=1))

    with pytest.raises(InvalidError, match="in this order"):
        list_rollouts(indexed([record()]), RolloutQuery(sort="reward", cursor=page.next_cursor))


def test_sorting_by_a_metric_needs_its_name() -> None:
    with pytest.raises(InvalidError, match="metric is required"):
        list_rollouts(indexed([record()]), RolloutQuery(sort="metric"))


@settings(max_examples=40)
@given(ROLLOUTS, st.sampled_from(["task", "mean", "spread", "failed", "lowest"]), st.booleans())
def test_task_groups_add_up(found: list[EntryRecord], sort: str, descending: bool) -> None:
    index = indexed(found)

    page = list_tasks(index, TaskQuery(sort=sort, descending=descending, limit=100))  # type: ignore[arg-type]

    assert sum(group.rollouts for group in page.items) == len(index)
    for group in page.items:
        rewards = [entry.reward for entry in group.entries if entry.reward is not None]
        assert group.scored == len(rewards)
        assert group.failed == len(group.entries) - len(rewards)
        assert group.mean == pytest.approx(sum(rewards) / len(rewards)) if rewards else group.mean is None
        assert group.spread == (pytest.approx(variance(rewards) ** 0.5) if len(rewards) > 1 else None)
        assert [entry.number for entry in group.entries] == sorted(entry.number for entry in group.entries)


@settings(max_examples=40)
@given(ROLLOUTS, st.sampled_from(["reward", "seconds", "tokens", "cost", "metric"]), st.integers(1, 30))
def test_a_distribution_counts_every_value_once(found: list[EntryRecord], of: str, bins: int) -> None:
    index = indexed(found)

    told = compute_distribution(index, DistributionQuery(of=of, metric="style", bins=bins))  # type: ignore[arg-type]

    assert sum(each.count for each in told.bins) == told.n
    assert told.n + told.missing == len(index)
    assert all(one.high <= other.low for one, other in zip(told.bins, told.bins[1:], strict=False))


def test_a_reward_of_zero_or_one_has_two_bins() -> None:
    index = indexed([record(task, reward=float(task % 2)) for task in range(5)])

    told = compute_distribution(index, DistributionQuery())

    assert [(each.low, each.high, each.count) for each in told.bins] == [(0.0, 0.0, 3), (1.0, 1.0, 2)]


def test_many_values_share_equal_bins_between_zero_and_one() -> None:
    index = indexed([record(task, reward=task / 40) for task in range(41)])

    told = compute_distribution(index, DistributionQuery(bins=4))

    assert [each.count for each in told.bins] == [10, 10, 10, 11]
    assert (told.bins[0].low, told.bins[-1].high, told.median) == (0.0, 1.0, 0.5)


def test_failures_are_grouped_by_cause_with_what_to_do() -> None:
    limited = {"outcome": "model_error", "reward": None, "error_kind": "RateLimitError", "error": "429"}
    crashed = {
        "outcome": "environment_error",
        "reward": None,
        "error_kind": "KeyError",
        "location": "env.py:3",
    }
    elsewhere = {**crashed, "location": "env.py:9"}
    left_out = {"outcome": "excluded", "reward": None}
    found: list[dict[str, Any]] = [limited, limited, crashed, elsewhere, left_out, {}]
    index = indexed([record(task, **fields) for task, fields in enumerate(found)])

    groups = list_failures(index)

    assert [(group.kind, group.location, group.count) for group in groups] == [
        ("RateLimitError", "", 2),
        ("KeyError", "env.py:3", 1),
        ("KeyError", "env.py:9", 1),
    ]
    assert "max_concurrent" in groups[0].next_step
    assert [entry.task for entry in groups[0].examples] == [0, 1]


def test_numbered_tasks_come_first_and_by_number() -> None:
    index = indexed([record(task) for task in ("b", 10, "a", 9)])

    assert [entry.task for entry in list_rollouts(index, RolloutQuery(sort="task")).items] == [
        9,
        10,
        "a",
        "b",
    ]


def test_a_value_of_a_range_is_inside_and_a_missing_one_is_not() -> None:
    index = indexed([record(0, reward=0.5), record(1, outcome="timeout", reward=None)])

    assert list_rollouts(index, RolloutQuery(reward_min=0.5, reward_max=0.5)).total == 1
    assert list_rollouts(index, RolloutQuery(reward_min=-inf)).total == 1
    assert list_rollouts(index, RolloutQuery(passed=False)).total == 1
