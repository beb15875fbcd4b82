"""How values are distributed: their middle, their tail, and how many lie where."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from proctor.stats.samples import is_zero_one

HISTOGRAM_PARTS = 20


class Spread(msgspec.Struct, frozen=True):
    """How a quantity is distributed over rollouts."""

    median: float
    p90: float
    longest: float


class Histogram(msgspec.Struct, frozen=True):
    """How many values lie in each of equal parts of a range."""

    low: float
    high: float
    counts: tuple[int, ...]


def compute_spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(ordered[last // 2], ordered[math.ceil(last * 0.9)], ordered[-1])


def compute_histogram(values: Sequence[float]) -> Histogram | None:
    """From 0 to 1, or as far as values lie beyond; None if every one is 0 or 1."""
    if not values or is_zero_one([values]):
        return None
    low, high = min(0.0, min(values)), max(1.0, max(values))
    counts, width = [0] * HISTOGRAM_PARTS, (high - low) / HISTOGRAM_PARTS
    for value in values:
        counts[min(HISTOGRAM_PARTS - 1, int((value - low) / width))] += 1
    return Histogram(low, high, tuple(counts))
