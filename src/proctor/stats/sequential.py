"""A confidence sequence: intervals that hold at every look at once, so that you may stop whenever you like.

The sequence is Robbins' normal mixture for an unknown variance (Lai 1976; Wang and Ramdas 2023). After n
values with mean m and standard deviation s it is

    m ± s / √n · √((n - 1) · (R - 1) / (1 - R / N)),   N = 1 + n · g,   R = (N / α²)^(1/n)

and unbounded while R ≥ N, which at 95 % is below 15 values. For normal values, the chance that it ever leaves
out the true mean is at most α, however often you look; for others that holds as n grows. So that values which
agree by luck do not look certain, the lowest and the highest possible value count PRIOR times each in s.
Knows numbers in the order they came, and nothing of runs.
"""

from dataclasses import dataclass
from math import inf, sqrt

from proctor.stats.interval import Interval

BEST_AT = 200
"""Where the sequence is narrowest, compared with an interval for a single look."""
MIXTURE = 8 / BEST_AT
"""g, the variance of the mixture over effect sizes: about 8 / n is best at n, for a level of 95 %."""
PRIOR = 4
"""With fewer, rare failures and long tails are left out more often than promised (tests/stats)."""
KIND = "confidence sequence"


@dataclass
class ConfidenceSequence:
    """The mean of the values so far with its interval, updated one value at a time."""

    level: float = 0.95
    low: float = 0.0
    high: float = 1.0
    """The range of possible values, as far as it is known; a value outside widens it."""
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """The sum of squared deviations from the mean."""

    def add(self, value: float) -> None:
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)
        self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def halfwidth(self) -> float:
        """How far the interval reaches to either side; infinite while nothing can be claimed."""
        reach = boundary(self.n, self.level)
        if reach == inf:
            return inf
        extremes = (self.low - self.mean) ** 2 + (self.high - self.mean) ** 2
        return reach * sqrt(self.squares + PRIOR * extremes) / self.n

    @property
    def interval(self) -> Interval | None:
        reach = self.halfwidth
        return None if reach == inf else Interval(self.mean - reach, self.mean + reach, KIND, self.level)


def boundary(n: int, level: float) -> float:
    """How many standard errors the sequence reaches after n values: what 1.96 is to a single look."""
    mixed = 1 + n * MIXTURE
    ratio = inf if n < 2 else (mixed / (1 - level) ** 2) ** (1 / n)
    return inf if ratio >= mixed else sqrt((n - 1) * (ratio - 1) / (1 - ratio / mixed))
