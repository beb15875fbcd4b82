"""Intervals for a proportion of independent 0/1 results."""

from math import log, sqrt

from proctor.stats.distributions import beta_quantile
from proctor.stats.interval import Interval, normal_quantile, tail_probability


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """The score interval for a proportion of independent 0/1 results; n may be an effective number."""
    _check_proportion(successes, n)
    z, rate = normal_quantile(level), successes / n
    shrink = 1 + z * z / n
    center = (rate + z * z / (2 * n)) / shrink
    reach = z * sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2) / shrink
    low = 0.0 if successes == 0 else center - reach
    high = 1.0 if successes == n else center + reach
    return Interval(low, high, "wilson", level)


def clopper_pearson(successes: float, n: int, level: float = 0.95) -> Interval:
    """The interval for a proportion that never covers less than its level; wider than Wilson."""
    _check_proportion(successes, n)
    tail, failures = tail_probability(level), n - successes
    low = 0.0 if successes == 0 else beta_quantile(tail, successes, failures + 1)
    high = 1.0 if failures == 0 else beta_quantile(1 - tail, successes + 1, failures)
    return Interval(low, high, "clopper-pearson", level)


def rule_of_three(n: int, level: float = 0.95) -> Interval:
    """How common something may still be that was never seen in n tries: about 3/n at 95 %, one-sided."""
    _check_proportion(0, n)
    return Interval(0.0, min(1.0, -log(2 * tail_probability(level)) / n), "rule of three", level)


def _check_proportion(successes: float, n: float) -> None:
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"need n > 0 and 0 <= successes <= n, got {successes} of {n}")
