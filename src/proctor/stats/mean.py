"""Estimate one mean over tasks, with its standard error and interval.

The task is the unit: rollouts of one task are not independent, so no error here counts them as if they were.
Knows numbers, their grouping and seeds. Knows nothing of runs, models, outcomes or coverage: the caller
leaves out excluded and failed rollouts, and says so.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from random import Random

from proctor.stats.distributions import t_critical
from proctor.stats.interval import NORMAL, Interval
from proctor.stats.proportion import clopper_pearson, wilson
from proctor.stats.samples import Groups, all_agree, deviation, group_means, is_close, is_zero_one, mean_of

MANY_TASKS = 200
"""From here on the t interval is wide enough; below it, bootstrap."""

FEW_TASKS = 3
"""With fewer tasks' worth of failures, or of passes, resampling cannot tell how rare they are."""


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
    means = group_means(scored)
    estimate = mean_estimate(means, level)
    if estimate.mean is None or estimate.n < 2:
        return estimate

    if estimate.se is None:
        # Task means in [0, 1] spread no wider than coin flips do, so whole tasks as flips is the safe side.
        successes = estimate.mean * estimate.n
        agreed = clopper_pearson(successes, estimate.n, level) if is_zero_one(scored) else None
        return replace(estimate, interval=agreed)
    if is_zero_one(scored):
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
    centre = mean_of(values)
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
    return None if is_close(low, high) else Interval(low, high, "bootstrap", level)


def _bootstrap_tail(groups: int, level: float) -> float:
    # Plain percentiles are too narrow for few groups: they divide by n, not n - 1, and have normal tails,
    # not t. Reading further out undoes both; with many groups it changes nothing.
    return NORMAL.cdf(-sqrt(groups / (groups - 1)) * t_critical(level, groups - 1))


def _t_interval(centre: float, se: float, df: int, level: float) -> Interval:
    reach = t_critical(level, df) * se
    return Interval(centre - reach, centre + reach, "t", level)


def _clip_to_unit_range(interval: Interval | None, groups: Groups) -> Interval | None:
    """No share of successes lies outside [0, 1]."""
    if interval is None or (interval.low >= 0 and interval.high <= 1) or not is_zero_one(groups):
        return interval
    return replace(interval, low=max(0.0, interval.low), high=min(1.0, interval.high))
