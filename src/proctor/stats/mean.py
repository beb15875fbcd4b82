"""Estimate one mean over tasks, with its standard error and interval.

The task is the unit: rollouts of one task are not independent, so no error here counts them as if they were.
Knows numbers and their grouping. Knows nothing of runs, models, outcomes or coverage: the caller
leaves out excluded and failed rollouts, and says so.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import cbrt, fsum, sqrt

from proctor.stats.distributions import t_critical
from proctor.stats.interval import Interval, normal_quantile
from proctor.stats.proportion import clopper_pearson, wilson
from proctor.stats.samples import Groups, all_agree, deviation, group_means, is_zero_one, mean_of

FEW_TASKS = 3
"""With fewer tasks' worth of failures, or of passes, they do not tell how independent rollouts are."""


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over `n` tasks and how sure it is.

    Without any task there is no mean. With one task, or tasks that all agree, there is no `se`: a printed
    0 would claim a certainty that was not measured.
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


def headline_estimate(groups: Groups, level: float = 0.95) -> MeanEstimate:
    """The mean of the task means, with the interval its data deserve.

    - fewer than two tasks: none
    - every task mean the same: Clopper-Pearson on the number of tasks for 0/1 rewards. None for other
      rewards, whose range is unknown, so that agreement bounds nothing
    - 0/1 rewards: Wilson, with as many trials as independent rollouts would need for the same standard
      error; with tasks as the trials if nearly all passed or nearly all failed, for a few failures say little
      about the kinds of failure that were not drawn
    - other rewards: t, corrected for skewness

    A task without rewards is left out.
    """
    scored = list(filter(len, groups))
    means = group_means(scored)
    estimate = mean_estimate(means, level)
    if estimate.mean is None or estimate.n < 2:
        return estimate
    if is_zero_one(scored):
        return replace(estimate, interval=_success_interval(estimate, sum(map(len, scored)), level))
    if estimate.se is None:
        return estimate
    low, high = min(0.0, *map(min, scored)), max(1.0, *map(max, scored))
    interval = skew_corrected_interval(means, level)
    return replace(
        estimate, interval=replace(interval, low=max(low, interval.low), high=min(high, interval.high))
    )


def _success_interval(estimate: MeanEstimate, rollouts: int, level: float) -> Interval:
    """The interval of a success rate over `estimate.n` tasks."""
    assert estimate.mean is not None
    if estimate.se is None:
        # Task means in [0, 1] spread no wider than coin flips do, so whole tasks as flips is the safe side.
        return clopper_pearson(estimate.mean * estimate.n, estimate.n, level)
    passed = estimate.mean * estimate.n
    if min(passed, estimate.n - passed) < min(FEW_TASKS, estimate.n / 10):
        return wilson(passed, estimate.n, level)
    independent = estimate.mean * (1 - estimate.mean) / estimate.se**2
    trials = min(max(independent, estimate.n), rollouts)
    # The error is itself estimated from n tasks, so the trials count as if t were the quantile, not z.
    trials *= (normal_quantile(level) / t_critical(level, estimate.n - 1)) ** 2
    return wilson(estimate.mean * trials, trials, level)


def skew_corrected_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """A t interval after Hall's monotone cubic transformation, which removes the skewness of the t statistic.

    Symmetric values get the plain t interval. A long tail to one side, which a plain interval covers too
    seldom, moves and widens it to that side.
    """
    n, center = len(values), mean_of(values)
    spread = deviation(values) / sqrt(n - 1)
    third = fsum((value - center) ** 3 for value in values) / n
    skewness = third / (deviation(values) / sqrt(n)) ** 3
    reach = t_critical(level, n - 1) / sqrt(n)

    def undo(t: float) -> float:
        shifted = t - skewness / (6 * n)
        if abs(skewness) < 1e-6:
            return shifted
        return 3 * (cbrt(1 + skewness * shifted) - 1) / skewness

    low, high = center - spread * undo(reach), center - spread * undo(-reach)
    return Interval(low, high, "skew-corrected t", level)


def mean_estimate(task_means: Sequence[float], level: float = 0.95) -> MeanEstimate:
    """The mean of task means with a t interval; no interval when all agree."""
    n = len(task_means)
    if n == 0:
        return MeanEstimate(None, None, None, 0)
    mean = mean_of(task_means)
    if all_agree(task_means):
        return MeanEstimate(mean, None, None, n)
    se = deviation(task_means) / sqrt(n * (n - 1))
    return MeanEstimate(mean, se, _t_interval(mean, se, n - 1, level), n)


def clustered_se(
    values: Sequence[float], clusters: Sequence[Hashable], corrected: bool = True
) -> ClusteredStandardError:
    """The standard error of the mean when values share clusters; `corrected` is CR1, for few clusters."""
    count = len(set(clusters))
    if count < 2:
        return ClusteredStandardError(None, 0)
    center = mean_of(values)
    residuals: defaultdict[Hashable, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        residuals[cluster].append(value - center)
    squares = fsum(fsum(members) ** 2 for members in residuals.values())
    correction = count / (count - 1) if corrected else 1.0
    return ClusteredStandardError(sqrt(correction * squares) / len(values), count - 1)


def _t_interval(center: float, se: float, df: int, level: float) -> Interval:
    reach = t_critical(level, df) * se
    return Interval(center - reach, center + reach, "t", level)
