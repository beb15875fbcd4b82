"""How many tasks a measurement needs, and what a number of tasks can show.

Unlike the formulas of `power`, which take the normal distribution, these keep their word for few tasks: they
use Student's t, and allow for the steps of exact tests. Knows variances, and nothing of runs.
"""

from collections.abc import Callable
from math import ceil, sqrt

from proctor.stats.distributions import t_critical
from proctor.stats.interval import NORMAL
from proctor.stats.power import PairedDesign

FEWEST = 2
MOST_TASKS = 10**9


def halfwidth_with(n: int, variance: float, level: float = 0.95) -> float:
    """Half the width of the interval of a mean over n tasks whose means have this variance."""
    return t_critical(level, n - 1) * sqrt(variance / n)


def tasks_for_halfwidth(halfwidth: float, variance: float, level: float = 0.95) -> int:
    """How many tasks make the interval that narrow."""
    return _settle(lambda n: (t_critical(level, n - 1) / halfwidth) ** 2 * variance)


def detectable_with(n: int, design: PairedDesign, step: float = 0.0) -> float:
    """The smallest true difference that a comparison over n tasks finds with the design's power.

    `step` is half of what one task can change in the sum of differences when its sign turns, 1 / r for r 0/1
    rollouts: the p-values of an exact test come in steps as well, which costs power. 0 for other rewards.
    """
    return _reach(n, design) * sqrt(design.variance / n) + step / n


def tasks_to_detect(difference: float, design: PairedDesign, step: float = 0.0) -> int:
    """How many tasks a comparison needs to find a true difference with the design's power."""

    def count_needed(n: int) -> float:
        reach = _reach(n, design) * sqrt(design.variance)
        return ((reach + sqrt(reach**2 + 4 * difference * step)) / (2 * difference)) ** 2

    return _settle(count_needed)


def variance_range(variance: float, df: int, level: float = 0.8) -> tuple[float, float]:
    """Where the true variance plausibly lies, if it was estimated with these degrees of freedom."""
    z = NORMAL.inv_cdf((1 + level) / 2)
    return variance * df / _chi_square(df, z), variance * df / _chi_square(df, -z)


def _chi_square(df: int, z: float) -> float:
    """Wilson and Hilferty's quantile: the cube root of a chi-square variable is nearly normal."""
    return df * max(1e-3, 1 - 2 / (9 * df) + z * sqrt(2 / (9 * df))) ** 3


def _reach(n: int, design: PairedDesign) -> float:
    """How many standard errors a difference must measure to be found that often."""
    df = n - 1
    return t_critical(1 - design.alpha, df) + t_critical(2 * design.power - 1, df)


def _settle(count_needed: Callable[[int], float]) -> int:
    """The smallest n that is as large as what n tasks need, which falls as n grows."""
    low = min(MOST_TASKS, max(FEWEST, ceil(count_needed(MOST_TASKS))))
    high = min(MOST_TASKS, max(low, ceil(count_needed(low))))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if count_needed(middle) <= middle else (middle + 1, high)
    return low
