"""Means and spreads of plain numbers, computed so that rounding never invents a difference."""

from collections.abc import Sequence
from itertools import chain
from math import dist, fsum, isclose, isfinite

ZERO_ONE = frozenset((0.0, 1.0))
Groups = Sequence[Sequence[float]]
"""The rewards of each task's rollouts, one group per task."""


def group_means(groups: Groups) -> list[float]:
    return [fsum(group) / len(group) for group in groups]


def mean_of(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    if not isfinite(mean):
        raise ValueError("a value is not finite; a NaN or infinite reward is a grader error, not a score")
    return mean


def variance(values: Sequence[float]) -> float:
    return deviation(values) ** 2 / (len(values) - 1)


def deviation(values: Sequence[float]) -> float:
    """The root of the summed squares about the mean."""
    return dist(values, [mean_of(values)] * len(values))


def all_agree(values: Sequence[float]) -> bool:
    return is_close(min(values), max(values))


def is_close(x: float, y: float) -> bool:
    # 0.1 + 0.2 against 0.3 is a tie, not a narrow win.
    return isclose(x, y, abs_tol=1e-12)


def is_zero_one(groups: Groups) -> bool:
    return ZERO_ONE.issuperset(chain.from_iterable(groups))
