"""An interval around an estimate, and the quantiles that set its width."""

from dataclasses import dataclass
from statistics import NormalDist

from proctor.stats.distributions import check_probability

NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """Where the true value plausibly lies."""

    low: float
    high: float
    kind: str
    level: float


def normal_quantile(level: float) -> float:
    return NORMAL.inv_cdf(1 - tail_probability(level))


def tail_probability(level: float) -> float:
    check_probability(level)
    return (1 - level) / 2
