"""Pages of a run's rollouts: filtered, sorted, by offset or after the last item of another page.

Entries that lack the value they are sorted by come last in both directions. Ties are in task order, so that
an order does not depend on when rows arrived. Knows an index and nothing of where its rows are.
"""

from __future__ import annotations

import bisect
import math
from array import array
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from proctor.api.cursors import decode_cursor, encode_cursor
from proctor.api.refusals import InvalidError
from proctor.api.rollout_list import RolloutFilter, RolloutPage, RolloutQuery
from proctor.reading.rollout_index import OUTCOMES, RolloutIndex

KEPT_ORDERS = 8
"""Lists of slots that are kept until the next row arrives, for the next page of the same list."""
KEPT_METRICS = 8
"""Columns of metrics that are kept as long; readers choose which."""
Column = Callable[[int], float]
Kept = TypeVar("Kept")
Position = tuple[int, int]
"""In task order: the rank of the task, the number of the rollout."""


class SortedSlots(msgspec.Struct, frozen=True):
    """The slots that match a query, in its order."""

    slots: list[int]
    valued: int
    """How many of them have the value they are sorted by; the others follow."""


def list_rollouts(index: RolloutIndex, query: RolloutQuery) -> RolloutPage:
    with index.lock:
        found = find_slots(index, query)
        start = query.offset if query.cursor is None else position_after(index, found, query, query.cursor)
        shown = found.slots[start : start + query.limit]
        more = bool(shown) and start + len(shown) < len(found.slots)
        return RolloutPage(
            items=index.entries(shown),
            offset=start,
            total=len(found.slots),
            next_cursor=cursor_of(index, query, shown[-1]) if more else None,
            complete=index.complete,
        )


def find_slots(index: RolloutIndex, query: RolloutFilter) -> SortedSlots:
    """The slots that match, kept until the next row arrives."""
    wanted = repr([getattr(query, name) for name in RolloutFilter.__struct_fields__])  # JSON has no infinity
    return keep_some(
        index, "orders", KEPT_ORDERS, wanted, lambda: sort_slots(index, filter_slots(index, query), query)
    )


def keep_some(index: RolloutIndex, group: str, most: int, name: str, build: Callable[[], Kept]) -> Kept:
    """A cached value, valid until the next row arrives; their number is bounded, since readers choose the
    names."""
    kept: dict[str, Kept] = index.get_or_build(group, dict)
    if name not in kept:
        if len(kept) >= most:
            kept.pop(next(iter(kept)))
        kept[name] = build()
    return kept[name]


# Filters


def filter_slots(index: RolloutIndex, query: RolloutFilter) -> list[int]:
    """The slots that match a query: in order of arrival if it asks for that, and in task order if not."""
    slots = list(index.slots()) if query.sort == "arrival" else index.in_task_order
    if query.task is not None:
        task = index.find_task(query.task)
        slots = [slot for slot in slots if index.task[slot] == task]
    if query.outcome:
        outcomes = {OUTCOMES.index(outcome) for outcome in query.outcome}
        slots = [slot for slot in slots if index.outcome[slot] in outcomes]
    for texts, words in (
        (query.error_kind, index.error_kind),
        (query.stop_condition, index.stop_condition),
        (query.env, index.env),
    ):
        if texts:
            numbers, column = words.find(texts), words.column
            slots = [slot for slot in slots if column[slot] in numbers]
    return filter_text(index, filter_numbers(index, slots, query), query.q)


def filter_numbers(index: RolloutIndex, slots: list[int], query: RolloutFilter) -> list[int]:
    if query.passed is not None:
        threshold, reward = index.pass_threshold, index.reward
        slots = [slot for slot in slots if (reward[slot] >= threshold) is query.passed]
    slots = keep_range(slots, index.reward.__getitem__, query.reward_min, query.reward_max)
    slots = keep_range(slots, index.seconds.__getitem__, query.seconds_min, query.seconds_max)
    if query.tokens_min is not None or query.tokens_max is not None:
        slots = keep_range(slots, tokens_column(index), query.tokens_min, query.tokens_max)
    if query.metric_min is not None or query.metric_max is not None:
        slots = keep_range(slots, metric_column(index, query.metric), query.metric_min, query.metric_max)
    return slots


def keep_range(slots: list[int], value: Column, low: float | None, high: float | None) -> list[int]:
    """Those whose value is in a range; one that has no value is in none."""
    if low is None and high is None:
        return slots
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    return [slot for slot in slots if least <= value(slot) <= most]


def filter_text(index: RolloutIndex, slots: list[int], q: str | None) -> list[int]:
    """Those whose task's id, preview or error has the text, in capitals or not."""
    wanted = (q or "").strip().lower()
    if not wanted:
        return slots
    tasks = {number for number, task in enumerate(index.tasks) if wanted in str(task).lower()}
    in_text = find_text(index, wanted) if wanted.isascii() else None
    if in_text is not None:
        return [slot for slot in slots if slot in in_text or index.task[slot] in tasks]
    return [
        slot
        for slot in slots
        if index.task[slot] in tasks or any(wanted in text.lower() for text in index.texts(slot))
    ]


def find_text(index: RolloutIndex, wanted: str) -> set[int]:
    """The slots whose texts have an ASCII text: one search over all of them."""
    haystack, needle = bytes(index.text).lower(), wanted.encode()
    found: set[int] = set()
    at = haystack.find(needle)
    while at >= 0:
        slot = bisect.bisect_right(index.text_end, at)
        end = index.text_end[slot]
        if at + len(needle) <= end:
            found.add(slot)
            at = haystack.find(needle, end)
        else:  # across the border of two entries
            at = haystack.find(needle, at + 1)
    return found


# Orders


def tokens_column(index: RolloutIndex) -> Column:
    given, written = index.input_tokens, index.output_tokens
    return lambda slot: given[slot] + written[slot]


def metric_column(index: RolloutIndex, metric: str | None) -> Column:
    if metric is None:
        raise InvalidError("metric is required to filter or sort by a metric.", field="metric")
    column: array[float] = keep_some(
        index, "metric columns", KEPT_METRICS, metric, lambda: index.metrics.column(metric)
    )
    return column.__getitem__


def sort_column(index: RolloutIndex, query: RolloutFilter) -> Column | None:
    """The value to sort by; None for orders that slots are in already."""
    columns: dict[str, Callable[[], Column | None]] = {
        "arrival": lambda: None,
        "task": lambda: None,
        "number": lambda: index.number.__getitem__,
        "outcome": lambda: index.outcome.__getitem__,
        "reward": lambda: index.reward.__getitem__,
        "metric": lambda: metric_column(index, query.metric),
        "seconds": lambda: index.seconds.__getitem__,
        "tokens": lambda: tokens_column(index),
        "turns": lambda: index.turns.__getitem__,
        "cost": lambda: index.cost.__getitem__,
        "error": lambda: error_column(index),
    }
    return columns[query.sort]()


def error_column(index: RolloutIndex) -> Column:
    """The place of each error's kind in the alphabet; NaN where there is none."""
    words = index.error_kind
    order = {text: rank for rank, text in enumerate(sorted(text for text in words.texts if text))}
    ranks = [float(order[text]) if text else math.nan for text in words.texts]
    return lambda slot: ranks[words.column[slot]]


def sort_slots(index: RolloutIndex, slots: list[int], query: RolloutFilter) -> SortedSlots:
    column = sort_column(index, query)
    if column is None:
        return SortedSlots(slots[::-1] if query.descending else slots, len(slots))
    valued = [slot for slot in slots if not math.isnan(column(slot))]
    ordered = sorted(valued, key=column, reverse=query.descending)
    if len(valued) < len(slots):
        ordered += [slot for slot in slots if math.isnan(column(slot))]
    return SortedSlots(ordered, len(valued))


# Positions


def cursor_of(index: RolloutIndex, query: RolloutFilter, slot: int) -> str:
    """Names the rollout and the value it is sorted by, should it be gone from the list when it is used."""
    column = sort_column(index, query)
    value = None if column is None or math.isnan(column(slot)) else float(column(slot))
    return encode_cursor(query.sort, f"{index.keys[index.task[slot]]:016x}", index.number[slot], value, slot)


def position_after(index: RolloutIndex, found: SortedSlots, query: RolloutQuery, cursor: str) -> int:
    """How many of the slots come before the next page."""
    decoded = decode_cursor(cursor, str, str, int, float | None, int)
    if decoded is None or decoded[0] != query.sort:
        raise InvalidError("This cursor does not come from a list in this order.", field="cursor")
    _, key, number, value, arrived = decoded
    slot = index.find_slot(key, number)
    column = sort_column(index, query)
    if slot is not None and (column is None or is_same(column(slot), value)):
        try:
            return found.slots.index(slot) + 1
        except ValueError:
            pass
    return position_of_value(index, found, query, (slot, arrived, value))


def is_same(value: float, other: float | None) -> bool:
    return math.isnan(value) if other is None else value == other


def position_of_value(
    index: RolloutIndex, found: SortedSlots, query: RolloutQuery, last: tuple[int | None, int, float | None]
) -> int:
    """Where the list continues if the last rollout has left it: it matches no more, or has another value."""
    slot, arrived, value = last
    column = sort_column(index, query)
    sign = -1 if query.descending else 1
    if query.sort == "arrival":
        return bisect.bisect_right(found.slots, sign * arrived, key=lambda each: sign * each)
    ranks = index.task_ranks

    def position_of(each: int) -> Position:
        return ranks[index.task[each]], index.number[each]

    if column is None:
        if slot is None:
            raise InvalidError(
                "The rollout of this cursor is gone; ask for the first page again.", field="cursor"
            )
        return bisect_slots(
            found.slots, 0, len(found.slots), position_of, position_of(slot), query.descending
        )
    if value is None:
        low, high = found.valued, len(found.slots)
    else:
        slots = found.slots
        low = bisect.bisect_left(slots, sign * value, 0, found.valued, key=lambda each: sign * column(each))
        high = bisect.bisect_right(slots, sign * value, 0, found.valued, key=lambda each: sign * column(each))
    return (
        high if slot is None else bisect_slots(found.slots, low, high, position_of, position_of(slot), False)
    )


def bisect_slots(
    slots: Sequence[int],
    low: int,
    high: int,
    position_of: Callable[[int], Position],
    there: Position,
    descending: bool,
) -> int:
    """How many slots up to the end of a stretch in task order are not after a place."""
    if descending:
        return low + sum(position_of(each) >= there for each in slots[low:high])
    return bisect.bisect_right(slots, there, low, high, key=position_of)
