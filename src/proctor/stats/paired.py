"""Compare two models on the same tasks, and adjust for making many comparisons."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum, sqrt
from operator import mul
from random import Random
from statistics import correlation

from proctor.stats.distributions import regularized_beta, t_p_value
from proctor.stats.interval import Interval, normal_quantile
from proctor.stats.mean import mean_estimate
from proctor.stats.samples import all_agree, is_close

MOST_ENUMERATED = 12
"""Up to so many differences, every pattern of signs is tried instead of a sample of them."""
MOST_SIGNS = 2_000_000
"""Work that a permutation test may take; where it would take more, its t test says the same."""


@dataclass(frozen=True)
class PairedComparison:
    """How A differs from B on the same tasks; a win is a task where A scored higher."""

    diff: float | None
    se: float | None
    interval: Interval | None
    p: float | None
    correlation: float | None
    n: int
    wins: int
    ties: int
    losses: int


def compare_paired(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> PairedComparison:
    """Compare task means of A and B, given in the same task order.

    Where A leads by the same amount on every task there is no spread to judge by, so no p. Where every
    task ties, p is 1, as in the exact tests. Means from 0 to 1 differ by at most 1.
    """
    differences = [_difference(x, y) for x, y in zip(a, b, strict=True)]
    estimate = mean_estimate(differences, level)
    p = 1.0 if differences and not any(differences) else None
    if estimate.mean is not None and estimate.se is not None:
        p = t_p_value(estimate.mean / estimate.se, estimate.n - 1)
    wins = sum(difference > 0 for difference in differences)
    losses = sum(difference < 0 for difference in differences)
    interval = estimate.interval
    if interval is not None and all(0 <= mean <= 1 for mean in (*a, *b)):
        interval = replace(interval, low=max(-1.0, interval.low), high=min(1.0, interval.high))
    return PairedComparison(
        diff=estimate.mean,
        se=estimate.se,
        interval=interval,
        p=p,
        correlation=_correlation(a, b),
        n=estimate.n,
        wins=wins,
        ties=estimate.n - wins - losses,
        losses=losses,
    )


def mcnemar_exact(b: int, c: int) -> float:
    """The p-value for b tasks only A solved against c only B solved: were they coin flips?"""
    _check_counts(b, c)
    fewer, flips = min(b, c), b + c
    if flips == 0:
        return 1.0
    return min(1.0, 2 * regularized_beta(0.5, flips - fewer, fewer + 1))


def sign_flip_permutation(d: Sequence[float], seed: int, resamples: int = 2000) -> float:
    """The p-value for paired differences: how often random signs reach a sum as far from 0.

    Every pattern of signs counts where there are few differences; otherwise a seeded sample of them.
    """
    unequal = sorted(abs(difference) for difference in d if difference)
    # Sums that are equal on paper differ in the last digits; a tie must count as reached.
    reached = abs(fsum(d)) - 1e-9 * fsum(unequal)
    if len(unequal) <= MOST_ENUMERATED:
        patterns = product((-1.0, 1.0), repeat=len(unequal))
        exact = [abs(sum(map(mul, signs, unequal))) >= reached for signs in patterns]
        return exact.count(True) / len(exact)
    as_far = sum(abs(total) >= reached for total in _random_sums(Counter(unequal), Random(seed), resamples))
    return (1 + as_far) / (1 + resamples)


def permutation_is_cheap(d: Sequence[float], resamples: int = 2000) -> bool:
    """Whether a permutation test of these differences is done in about a second."""
    return len({abs(difference) for difference in d}) * resamples <= MOST_SIGNS


def adjusted_difference(b: int, c: int, n: int, level: float = 0.95) -> tuple[float, Interval]:
    """The standard error and interval of (b - c) / n for b tasks only A solved and c only B solved, of n.

    Bonett and Price: one task more of each kind, which keeps the level for few tasks and never has width 0.
    """
    _check_counts(b, c)
    more_a, more_b = (b + 1) / (n + 2), (c + 1) / (n + 2)
    center = more_a - more_b
    se = sqrt((more_a + more_b - center**2) / (n + 2))
    reach = normal_quantile(level) * se
    return se, Interval(max(-1.0, center - reach), min(1.0, center + reach), "bonett-price", level)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for having made all of these comparisons, in the order given."""
    adjusted, floor = [0.0] * len(p_values), 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(ascending):
        floor = max(floor, min(1.0, p_values[position] * (len(p_values) - rank)))
        adjusted[position] = floor
    return adjusted


def _random_sums(counts: Counter[float], random: Random, resamples: int) -> Iterator[float]:
    """Sums under random signs. Of equal differences, only the number of plus signs counts: bits of a draw."""
    kinds = list(counts.items())
    for _ in range(resamples):
        yield sum(size * (2 * random.getrandbits(count).bit_count() - count) for size, count in kinds)


def _difference(x: float, y: float) -> float:
    return 0.0 if is_close(x, y) else x - y


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    if len(a) < 2 or all_agree(a) or all_agree(b):
        return None
    return correlation(a, b)


def _check_counts(b: int, c: int) -> None:
    if b < 0 or c < 0:
        raise ValueError(f"counts of tasks cannot be negative, got {b} and {c}")
