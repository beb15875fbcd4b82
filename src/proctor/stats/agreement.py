"""How far people, or a person and a judge, agree beyond chance: Cohen's kappa and Krippendorff's alpha.

Knows ratings and their grouping. Knows nothing of runs, judges or people.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import atanh, fsum, sqrt, tanh
from typing import Literal, TypeVar

from proctor.stats.distributions import t_critical
from proctor.stats.interval import Interval
from proctor.stats.proportion import clopper_pearson
from proctor.stats.samples import deviation, mean_of

Unit = TypeVar("Unit")
Scale = Literal["nominal", "interval"]
Ratings = Sequence[float]
"""All ratings of one unit, such as one rollout, by anybody."""
ALMOST_ONE = 1 - 1e-9
FEW_UNITS = 10
"""Of fewer clusters than this, agreement has no interval that would keep its level."""


@dataclass(frozen=True)
class AgreementEstimate:
    """Agreement beyond chance: 1 is perfect, 0 is what chance gives, below 0 is worse than chance.

    Without variation in the ratings there is nothing to agree on, so no `value`.
    """

    value: float | None
    interval: Interval | None
    observed: float | None
    """The share of pairs of ratings that are equal."""
    n: int
    """Units that count: those with at least two ratings."""


def cohen_kappa(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> AgreementEstimate:
    """The agreement of two raters on the same units; units of one cluster, such as a task, may go together.

    The interval comes from leaving out one cluster at a time. Where the two always agree there is no spread
    to judge by, and it tells what agreement so many clusters rule out.
    """
    pairs = list(zip(first, second, strict=True))
    groups = _group(pairs, clusters)
    value = _kappa(Counter(pairs))
    observed = fsum(one == other for one, other in pairs) / len(pairs) if pairs else None
    if value is None:
        return AgreementEstimate(None, None, observed, len(pairs))
    if value >= ALMOST_ONE:
        interval = _perfect_interval(len(groups), _chance_agreement(Counter(pairs)), level)
    else:
        total = Counter(pairs)
        left_out = [_kappa(total - Counter(group)) for group in groups]
        interval = _jackknife_interval(value, left_out, level)
    return AgreementEstimate(value, interval, observed, len(pairs))


def krippendorff_alpha(
    units: Sequence[Ratings],
    scale: Scale = "nominal",
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> AgreementEstimate:
    """The agreement of any number of raters, who need not have rated the same units.

    On a nominal scale two ratings are equal or not; on an interval scale they are apart by the square of
    their difference. For two values, both give the same.
    """
    labels = clusters if clusters is not None else range(len(units))
    kept = [(unit, label) for unit, label in zip(units, labels, strict=True) if len(unit) > 1]
    if not kept:
        return AgreementEstimate(None, None, None, 0)
    center = mean_of([value for unit, _ in kept for value in unit])  # sums of squares lose digits far from 0
    paired = [[value - center for value in unit] for unit, _ in kept]
    groups = [_sum_ratings(group) for group in _group(paired, [label for _, label in kept])]
    total = sum(groups, RatingSums())
    value, observed = total.alpha(scale), 1 - total.unequal / total.ratings
    if value is None:
        interval = None
    elif value < ALMOST_ONE:
        interval = _jackknife_interval(value, [(total - group).alpha(scale) for group in groups], level)
    elif scale == "nominal":
        interval = _perfect_interval(len(groups), 1 - total.expected_distance("nominal"), level)
    else:
        interval = None  # how far apart a disagreement would have been is unknown
    return AgreementEstimate(value, interval, observed, len(paired))


@dataclass(frozen=True)
class RatingSums:
    """Everything that alpha needs of some units; sums, so that units can be left out."""

    ratings: int = 0
    unequal: float = 0.0
    """Over the units: the share of its pairs of ratings that differ, times its ratings."""
    apart: float = 0.0
    """The same with squared differences."""
    total: float = 0.0
    squares: float = 0.0
    counts: Mapping[float, int] = field(default_factory=dict)

    def __add__(self, other: "RatingSums") -> "RatingSums":
        return self._combine(other, 1)

    def __sub__(self, other: "RatingSums") -> "RatingSums":
        return self._combine(other, -1)

    def _combine(self, other: "RatingSums", sign: int) -> "RatingSums":
        counts = Counter(self.counts)
        for value, count in other.counts.items():
            counts[value] += sign * count
        return RatingSums(
            self.ratings + sign * other.ratings,
            self.unequal + sign * other.unequal,
            self.apart + sign * other.apart,
            self.total + sign * other.total,
            self.squares + sign * other.squares,
            counts,
        )

    def expected_distance(self, scale: Scale) -> float:
        """The mean distance of two ratings, drawn from all of them without putting one back."""
        n = self.ratings
        if n < 2:
            return 0.0
        if scale == "nominal":
            return (n * n - sum(count * count for count in self.counts.values())) / (n * (n - 1))
        return max(0.0, 2 * (n * self.squares - self.total**2)) / (n * (n - 1))

    def alpha(self, scale: Scale) -> float | None:
        expected = self.expected_distance(scale)
        if expected < 1e-12:
            return None
        return 1 - (self.unequal if scale == "nominal" else self.apart) / self.ratings / expected


def _sum_ratings(units: Sequence[Ratings]) -> RatingSums:
    unequal, apart = [], []
    for unit in units:
        n = len(unit)
        same = sum(count * count for count in Counter(unit).values())
        unequal.append((n * n - same) / (n - 1))
        apart.append(2 * n * deviation(unit) ** 2 / (n - 1))
    values = [value for unit in units for value in unit]
    squares = fsum(value * value for value in values)
    return RatingSums(len(values), fsum(unequal), fsum(apart), fsum(values), squares, Counter(values))


def _kappa(pairs: Counter[tuple[float, float]]) -> float | None:
    n = pairs.total()
    if not n:
        return None
    chance = _chance_agreement(pairs)
    if chance >= ALMOST_ONE:
        return None
    observed = sum(count for (one, other), count in pairs.items() if one == other) / n
    return (observed - chance) / (1 - chance)


def _chance_agreement(pairs: Counter[tuple[float, float]]) -> float:
    first: Counter[float] = Counter()
    second: Counter[float] = Counter()
    for (one, other), count in pairs.items():
        first[one] += count
        second[other] += count
    return sum(first[value] * second[value] for value in first) / pairs.total() ** 2


def _group(units: Sequence[Unit], clusters: Sequence[Hashable] | None) -> list[list[Unit]]:
    groups: defaultdict[Hashable, list[Unit]] = defaultdict(list)
    for unit, cluster in zip(units, clusters if clusters is not None else range(len(units)), strict=True):
        groups[cluster].append(unit)
    return list(groups.values())


def _jackknife_interval(value: float, left_out: Sequence[float | None], level: float) -> Interval | None:
    """A t interval on the scale of atanh, where agreement near 1 has room below and none above."""
    if len(left_out) < FEW_UNITS or any(each is None for each in left_out):
        return None
    scaled = [atanh(min(max(each, -ALMOST_ONE), ALMOST_ONE)) for each in left_out if each is not None]
    center, count = fsum(scaled) / len(scaled), len(scaled)
    se = sqrt((count - 1) / count * fsum((each - center) ** 2 for each in scaled))
    reach = t_critical(level, count - 1) * se
    middle = atanh(max(value, -ALMOST_ONE))
    return Interval(tanh(middle - reach), tanh(middle + reach), "jackknife", level)


def _perfect_interval(clusters: int, chance: float, level: float) -> Interval | None:
    """No one disagreed: how low agreement may still be, from how rare disagreement may be in so many."""
    if clusters < FEW_UNITS:
        return None
    rarest = clopper_pearson(clusters, clusters, level).low
    return Interval((rarest - chance) / (1 - chance), 1.0, "clopper-pearson", level)
