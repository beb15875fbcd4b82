"""Predict a total from a sample of what it will be made of. Knows numbers, and nothing of what they count."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from proctor.stats.distributions import t_critical


@dataclass(frozen=True)
class PredictedTotal:
    """A total that is not known yet, and where it plausibly ends up."""

    likely: float
    low: float | None
    """None if a single value was seen, which tells nothing of the spread."""
    high: float | None


def predict_total(seen: Sequence[float], count: int, level: float = 0.95) -> PredictedTotal:
    """The total of `count` further values like those seen, none of which can be below 0."""
    likely = count * fmean(seen)
    if len(seen) < 2:
        return PredictedTotal(likely, None, None)
    # The mean is not known exactly, and the new values scatter around it too.
    scatter = stdev(seen) * count * sqrt(1 / len(seen) + 1 / max(1, count))
    reach = t_critical(level, len(seen) - 1) * scatter
    return PredictedTotal(likely, max(0.0, likely - reach), likely + reach)


def scale_total(total: PredictedTotal, factor: float) -> PredictedTotal:
    low, high = (None if end is None else end * factor for end in (total.low, total.high))
    return PredictedTotal(total.likely * factor, low, high)


def raise_total(total: PredictedTotal, least: float) -> PredictedTotal:
    """The total, where it cannot be less than this."""
    low, high = (None if end is None else max(end, least) for end in (total.low, total.high))
    return PredictedTotal(max(total.likely, least), low, high)
