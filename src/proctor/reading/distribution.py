"""How a quantity is distributed over a run's rollouts.

Knows an index and nothing of where its rows are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from proctor.api.rollout_list import Distribution, DistributionBin, DistributionQuery
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import Column, metric_column, tokens_column

MOST_SINGLE_VALUES = 10
"""With no more values than that, each gets a bin of its own."""


def compute_distribution(index: RolloutIndex, query: DistributionQuery) -> Distribution:
    with index.lock:
        column = find_column(index, query)
        values = sorted(value for slot in index.slots() if (value := column(slot)) == value)
        name = query.metric if query.of == "metric" and query.metric is not None else query.of
        return Distribution(
            of=name,
            n=len(values),
            missing=len(index) - len(values),
            bins=build_bins(values, query.bins, is_share=query.of in ("reward", "metric")),
            mean=math.fsum(values) / len(values) if values else None,
            median=quantile(values, 0.5),
            p90=quantile(values, 0.9),
            lowest=values[0] if values else None,
            highest=values[-1] if values else None,
            complete=index.complete,
        )


def find_column(index: RolloutIndex, query: DistributionQuery) -> Callable[[int], float]:
    if query.of == "metric":
        return metric_column(index, query.metric)
    if query.of == "tokens":
        return tokens_column(index)
    columns: dict[str, Column] = {
        "reward": index.reward.__getitem__,
        "seconds": index.seconds.__getitem__,
        "turns": index.turns.__getitem__,
        "cost": index.cost.__getitem__,
    }
    return columns[query.of]


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value that this share of the values does not exceed, as in a run's summary."""
    return ordered[math.ceil((len(ordered) - 1) * share)] if ordered else None


def build_bins(ordered: Sequence[float], most: int, is_share: bool) -> list[DistributionBin]:
    if not ordered:
        return []
    single = Counter(ordered)
    if len(single) <= min(most, MOST_SINGLE_VALUES):
        return [DistributionBin(value, value, count) for value, count in sorted(single.items())]
    low, high = float(ordered[0]), float(ordered[-1])
    if is_share and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    width = (high - low) / most
    if not width > 0:  # as far apart as two numbers can just be
        return [DistributionBin(low, high, len(ordered))]
    counts = [0] * most
    for value in ordered:
        counts[min(most - 1, int((value - low) / width))] += 1
    return [
        DistributionBin(low + width * index, low + width * (index + 1), count)
        for index, count in enumerate(counts)
    ]
