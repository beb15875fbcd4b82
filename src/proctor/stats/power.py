"""Plan a paired comparison: how many tasks it needs, and the smallest difference it detects."""

from dataclasses import dataclass
from math import ceil, sqrt

from proctor.stats.interval import NORMAL, normal_quantile


@dataclass(frozen=True)
class PairedDesign:
    """How a paired comparison is run, and how noisy its tasks are.

    `difference_variance` is the variance of the true per-task difference; `variance_a` and `variance_b` are
    the within-task variances, each divided by its rollouts per task.
    """

    difference_variance: float
    variance_a: float = 0.0
    rollouts_a: int = 1
    variance_b: float = 0.0
    rollouts_b: int = 1
    alpha: float = 0.05
    power: float = 0.8

    @property
    def variance(self) -> float:
        """The variance of one task's measured difference."""
        noise = self.variance_a / self.rollouts_a + self.variance_b / self.rollouts_b
        return self.difference_variance + noise

    @property
    def quantile_sum(self) -> float:
        return normal_quantile(1 - self.alpha) + NORMAL.inv_cdf(self.power)


def tasks_needed(delta: float, design: PairedDesign) -> int:
    """How many tasks the comparison needs to detect a difference of `delta`."""
    return ceil((design.quantile_sum / delta) ** 2 * design.variance)


def minimum_detectable_effect(n: int, design: PairedDesign) -> float:
    """The smallest difference that the comparison detects with n tasks."""
    return design.quantile_sum * sqrt(design.variance / n)
