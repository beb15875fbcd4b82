"""Say how far a number may be believed.

The task is the unit: rollouts of one task are not independent, so no error here counts them as if they were.
Knows numbers, their grouping and seeds. Knows nothing of runs, models, outcomes or coverage: what was
excluded or failed must be left out, and said so, by whoever calls.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, comb, dist, erfc, fsum, isclose, isfinite, log, sqrt
from operator import mul
from random import Random
from statistics import NormalDist, correlation

from proctor.stats.distributions import (
    beta_quantile,
    check_probability,
    regularized_beta,
    t_critical,
    t_p_value,
)

MANY_TASKS = 200
"""From here on the t interval is wide enough; below it the bootstrap speaks."""

FEW_TASKS = 3
"""With fewer tasks' worth of failures, or of passes, resampling cannot tell how rare they are."""

ZERO_ONE = frozenset((0.0, 1.0))
NORMAL = NormalDist()
Groups = Sequence[Sequence[float]]
"""The rewards of each task's rollouts, one group for each task."""


@dataclass(frozen=True)
class Interval:
    """Where the true value plausibly lies."""

    low: float
    high: float
    kind: str
    level: float


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over `n` tasks and how sure it is.

    Without any task there is no mean. With one task, or tasks that all agree, there is no `se`: a printed
    0 would claim a certainty nobody measured.
    """

    mean: float | None
    se: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True)
class ClusteredStandardError:
    """A standard error that lets values of one cluster move together; `se` needs two clusters."""

    se: float | None
    df: int


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


@dataclass(frozen=True)
class ChiSquare:
    """A chi-square statistic with one degree of freedom, and its p-value."""

    statistic: float
    p: float


# --- success within k tries


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The chance that at least one of k tries succeeds, from c successes in n; undefined when n < k."""
    _check_tries(n, c, k)
    if n < k:
        return None
    # Whole numbers until the last division: exact however large n is.
    every = comb(n, k)
    return (every - comb(n - c, k)) / every


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The chance that all of k tries succeed (pass^k), from c successes in n; undefined when n < k."""
    _check_tries(n, c, k)
    return None if n < k else comb(c, k) / comb(n, k)


def _check_tries(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"need k >= 1 and 0 <= c <= n, got n={n}, c={c}, k={k}")


# --- one mean


def headline_estimate(groups: Groups, seed: int = 0, level: float = 0.95) -> MeanEstimate:
    """The mean of the task means, with the interval its data deserve.

    - fewer than two tasks: none
    - every task mean the same: Clopper-Pearson on the number of tasks for 0/1 rewards. None for other
      rewards, whose range is unknown, so that agreement bounds nothing
    - 0/1 rewards, one rollout each: Wilson
    - 0/1 rewards that nearly all passed or nearly all failed: Wilson with tasks as the trials, for a few
      failures say little about the kinds of failure that were not drawn
    - 200 tasks or more: t
    - otherwise: a seeded bootstrap over tasks

    A task without rewards is left out.
    """
    scored = list(filter(len, groups))
    means = _group_means(scored)
    estimate = mean_estimate(means, level)
    if estimate.mean is None or estimate.n < 2:
        return estimate

    if estimate.se is None:
        # Task means in [0, 1] spread no wider than coin flips do, so whole tasks as flips is the safe side.
        successes = estimate.mean * estimate.n
        agreed = clopper_pearson(successes, estimate.n, level) if _is_zero_one(scored) else None
        return replace(estimate, interval=agreed)
    if _is_zero_one(scored):
        passed = estimate.mean * estimate.n
        is_rare = min(passed, estimate.n - passed) < min(FEW_TASKS, estimate.n / 10)
        if max(map(len, scored)) == 1 or is_rare:
            return replace(estimate, interval=wilson(passed, estimate.n, level))
    if estimate.n >= MANY_TASKS:
        return replace(estimate, interval=_clip_to_unit_range(estimate.interval, scored))
    return replace(estimate, interval=cluster_bootstrap([[mean] for mean in means], seed, level=level))


def mean_estimate(task_means: Sequence[float], level: float = 0.95) -> MeanEstimate:
    """The mean of task means with a t interval; no interval when all agree."""
    n = len(task_means)
    if n == 0:
        return MeanEstimate(None, None, None, 0)
    mean = _mean(task_means)
    if _all_agree(task_means):
        return MeanEstimate(mean, None, None, n)
    se = _deviation(task_means) / sqrt(n * (n - 1))
    return MeanEstimate(mean, se, _t_interval(mean, se, n - 1, level), n)


def clustered_se(
    values: Sequence[float], clusters: Sequence[Hashable], corrected: bool = True
) -> ClusteredStandardError:
    """The standard error of the mean when values share clusters; `corrected` is CR1, for few clusters."""
    count = len(set(clusters))
    if count < 2:
        return ClusteredStandardError(None, 0)
    centre = _mean(values)
    residuals: defaultdict[Hashable, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        residuals[cluster].append(value - centre)
    squares = fsum(fsum(members) ** 2 for members in residuals.values())
    correction = count / (count - 1) if corrected else 1.0
    return ClusteredStandardError(sqrt(correction * squares) / len(values), count - 1)


def cluster_bootstrap(
    groups: Groups, seed: int, resamples: int = 2000, level: float = 0.95
) -> Interval | None:
    """A percentile interval for the mean of all values, resampling whole groups.

    Every value weighs the same; pass one mean per group where every group should. None when fewer than two
    groups have values, or when the resamples agree. The order of groups does not matter.
    """
    # Sorted, because rollouts finish in any order and the same rewards must print the same interval.
    totals = sorted((fsum(group), len(group)) for group in groups if len(group))
    if len(totals) < 2:
        return None
    # A complex number carries a sum and a size through one addition: half the time of adding each.
    pool, random = [complex(*total) for total in totals], Random(seed)
    resampled = (sum(random.choices(pool, k=len(pool))) for _ in range(resamples))
    means = sorted(total.real / total.imag for total in resampled)
    beyond = int(_bootstrap_tail(len(totals), level) * resamples)
    low, high = means[beyond], means[-1 - beyond]
    return None if _is_close(low, high) else Interval(low, high, "bootstrap", level)


def _bootstrap_tail(groups: int, level: float) -> float:
    # Plain percentiles are too narrow for few groups: they divide by n, not n - 1, and have normal tails,
    # not t. Reading further out undoes both; with many groups it changes nothing.
    return NORMAL.cdf(-sqrt(groups / (groups - 1)) * t_critical(level, groups - 1))


# --- a proportion


def wilson(successes: float, n: int, level: float = 0.95) -> Interval:
    """The score interval for a proportion of independent 0/1 results."""
    _check_proportion(successes, n)
    z, rate = _z(level), successes / n
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    reach = z * sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2) / shrink
    low = 0.0 if successes == 0 else centre - reach
    high = 1.0 if successes == n else centre + reach
    return Interval(low, high, "wilson", level)


def clopper_pearson(successes: float, n: int, level: float = 0.95) -> Interval:
    """The interval for a proportion that never covers less than its level; wider than Wilson."""
    _check_proportion(successes, n)
    tail, failures = _tail(level), n - successes
    low = 0.0 if successes == 0 else beta_quantile(tail, successes, failures + 1)
    high = 1.0 if failures == 0 else beta_quantile(1 - tail, successes + 1, failures)
    return Interval(low, high, "clopper-pearson", level)


def rule_of_three(n: int, level: float = 0.95) -> Interval:
    """How common something may still be that was never seen in n tries: about 3/n at 95 %, one-sided."""
    _check_proportion(0, n)
    return Interval(0.0, min(1.0, -log(2 * _tail(level)) / n), "rule of three", level)


def _check_proportion(successes: float, n: int) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"need n >= 1 and 0 <= successes <= n, got {successes} of {n}")


# --- where the spread comes from


def within_task_variance(groups: Groups) -> float | None:
    """E[v]: how much rollouts of one task differ, unbiased; needs a task with two rollouts."""
    repeated = [group for group in groups if len(group) > 1]
    return _mean([_variance(group) for group in repeated]) if repeated else None


def between_task_variance(groups: Groups) -> float | None:
    """Var(x): how much tasks differ once rollout noise is taken away; never below 0."""
    scored = list(filter(len, groups))
    within = within_task_variance(scored)
    if within is None or len(scored) < 2:
        return None
    noise = within * _mean([1 / len(group) for group in scored])
    return max(0.0, _variance(_group_means(scored)) - noise)


def icc(groups: Groups) -> float | None:
    """The share of a rollout's variance that its task explains; undefined when nothing varies."""
    within, between = within_task_variance(groups), between_task_variance(groups)
    if within is None or between is None or within + between == 0:
        return None
    return between / (within + between)


# --- two models on the same tasks


def compare_paired(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> PairedComparison:
    """Compare task means of A and B, given in the same task order.

    Where A leads by the same amount on every task there is no spread to judge by, so no p. Where every
    task ties, p is 1, as in the exact tests.
    """
    differences = [_difference(x, y) for x, y in zip(a, b, strict=True)]
    estimate = mean_estimate(differences, level)
    p = 1.0 if differences and not any(differences) else None
    if estimate.mean is not None and estimate.se is not None:
        p = t_p_value(estimate.mean / estimate.se, estimate.n - 1)
    wins = sum(difference > 0 for difference in differences)
    losses = sum(difference < 0 for difference in differences)
    return PairedComparison(
        diff=estimate.mean,
        se=estimate.se,
        interval=estimate.interval,
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


def mcnemar_chi2(b: int, c: int, corrected: bool = True) -> ChiSquare:
    """McNemar's approximation for many discordant tasks; `corrected` for continuity."""
    _check_counts(b, c)
    if b + c == 0:
        return ChiSquare(0.0, 1.0)
    gap = max(0, abs(b - c) - 1) if corrected else abs(b - c)
    statistic = gap * gap / (b + c)
    return ChiSquare(statistic, erfc(sqrt(statistic / 2)))


def sign_flip_permutation(d: Sequence[float], seed: int, resamples: int = 2000) -> float:
    """The p-value for paired differences: how often random signs reach a sum as far from 0."""
    unequal = sorted(difference for difference in d if difference)
    # Sums that are equal on paper differ in the last digits; a tie must count as reached.
    reached = abs(fsum(unequal)) - 1e-9 * fsum(map(abs, unequal))
    random, signs = Random(seed), (-1.0, 1.0)
    as_far: int = sum(
        abs(sum(map(mul, random.choices(signs, k=len(unequal)), unequal))) >= reached
        for _ in range(resamples)
    )
    return (1 + as_far) / (1 + resamples)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for having made all of these comparisons, in the order given."""
    adjusted, floor = [0.0] * len(p_values), 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(ascending):
        floor = max(floor, min(1.0, p_values[position] * (len(p_values) - rank)))
        adjusted[position] = floor
    return adjusted


def _difference(x: float, y: float) -> float:
    return 0.0 if _is_close(x, y) else x - y


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    if len(a) < 2 or _all_agree(a) or _all_agree(b):
        return None
    return correlation(a, b)


def _check_counts(b: int, c: int) -> None:
    if b < 0 or c < 0:
        raise ValueError(f"counts of tasks cannot be negative, got {b} and {c}")


# --- planning a comparison


def tasks_needed(
    delta: float,
    w2: float,
    v_a: float = 0.0,
    k_a: int = 1,
    v_b: float = 0.0,
    k_b: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """How many tasks a paired comparison needs to see a difference of `delta`.

    `w2` is the variance of the true per-task difference; `v_a` and `v_b` the within-task variances, each
    divided by its rollouts per task `k_a`, `k_b`.
    """
    return ceil((_power_quantiles(alpha, power) / delta) ** 2 * _paired_variance(w2, v_a, k_a, v_b, k_b))


def minimum_detectable_effect(
    n: int,
    w2: float,
    v_a: float = 0.0,
    k_a: int = 1,
    v_b: float = 0.0,
    k_b: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """The smallest difference a paired comparison of n tasks sees; arguments as in `tasks_needed`."""
    return _power_quantiles(alpha, power) * sqrt(_paired_variance(w2, v_a, k_a, v_b, k_b) / n)


def _paired_variance(w2: float, v_a: float, k_a: int, v_b: float, k_b: int) -> float:
    return w2 + v_a / k_a + v_b / k_b


def _power_quantiles(alpha: float, power: float) -> float:
    return _z(1 - alpha) + NORMAL.inv_cdf(power)


# --- small shared steps


def _group_means(groups: Groups) -> list[float]:
    return [fsum(group) / len(group) for group in groups]


def _mean(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    if not isfinite(mean):
        raise ValueError("a value is not finite; a NaN or infinite reward is a grader error, not a score")
    return mean


def _variance(values: Sequence[float]) -> float:
    return _deviation(values) ** 2 / (len(values) - 1)


def _deviation(values: Sequence[float]) -> float:
    """The root of the summed squares about the mean."""
    return dist(values, [_mean(values)] * len(values))


def _all_agree(values: Sequence[float]) -> bool:
    return _is_close(min(values), max(values))


def _is_close(x: float, y: float) -> bool:
    # 0.1 + 0.2 against 0.3 is a tie, not a narrow win.
    return isclose(x, y, abs_tol=1e-12)


def _t_interval(centre: float, se: float, df: int, level: float) -> Interval:
    reach = t_critical(level, df) * se
    return Interval(centre - reach, centre + reach, "t", level)


def _clip_to_unit_range(interval: Interval | None, groups: Groups) -> Interval | None:
    """No share of successes lies outside [0, 1]."""
    if interval is None or (interval.low >= 0 and interval.high <= 1) or not _is_zero_one(groups):
        return interval
    return replace(interval, low=max(0.0, interval.low), high=min(1.0, interval.high))


def _is_zero_one(groups: Groups) -> bool:
    return ZERO_ONE.issuperset(chain.from_iterable(groups))


def _z(level: float) -> float:
    return NORMAL.inv_cdf(1 - _tail(level))


def _tail(level: float) -> float:
    check_probability(level)
    return (1 - level) / 2
