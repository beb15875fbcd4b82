"""Compare one measure of two sides: the reward, or a metric.

The task is the unit: the rollouts of a task are averaged before anything is tested. Knows paired lists of
numbers, and nothing of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from proctor.stats.equivalence import margin_tests
from proctor.stats.interval import Interval
from proctor.stats.paired import (
    PairedComparison,
    adjusted_difference,
    compare_paired,
    mcnemar_exact,
    permutation_is_cheap,
    sign_flip_permutation,
)
from proctor.stats.power import PairedDesign
from proctor.stats.sample_size import detectable_with
from proctor.stats.samples import Groups, group_means, is_close, is_zero_one, mean_of

Verdict = Literal["better", "worse", "higher", "lower", "no_difference_shown", "too_little_data"]
"""A metric is higher or lower: whether that is good is not known here."""
EquivalenceVerdict = Literal["equivalent", "no_worse", "worse", "not_shown", "too_little_data"]
TestName = Literal["mcnemar", "permutation", "t", "none"]


class ComparisonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to compare."""

    level: float = 0.95
    """Of intervals; tests are made at 1 - level."""
    power: float = 0.8
    """How often a difference of the smallest detectable size would have been found."""
    margin: float | None = None
    """The largest difference that does not matter: ask for equivalence as well."""
    min_coverage: float | None = None
    """Instead of what each run asked for."""
    metrics: tuple[str, ...] | None = None
    """Only these, beside the reward; all if None."""
    most_tasks: int = 1000
    """Task rows to list."""
    seed: int = 0
    """Of the permutation test."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.level <= 0.9999:
            raise ValueError(f"level lies between 0.5 and 0.9999; got {self.level}")
        if self.margin is not None and not 0 < self.margin < math.inf:
            raise ValueError(f"margin is a positive difference, such as 0.02; got {self.margin}")
        if self.min_coverage is not None and not 0 <= self.min_coverage <= 1:
            raise ValueError(f"min_coverage lies between 0 and 1; got {self.min_coverage}")

    @property
    def alpha(self) -> float:
        return round(1 - self.level, 12)


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the difference is smaller than a margin: two one-sided tests."""

    margin: float
    verdict: EquivalenceVerdict
    p_equivalent: float | None
    """Of lying between -margin and +margin."""
    p_no_worse: float | None
    """Of lying above -margin."""
    text: str = ""


class MeasureComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How the candidate differs from the baseline in one measure, over the tasks that both scored."""

    name: str
    member: str = ""
    """Which of several environments; empty for all."""
    n: int
    """Paired tasks."""
    baseline: float | None
    candidate: float | None
    difference: float | None
    """Candidate minus baseline."""
    se: float | None
    interval: Interval | None
    test: TestName
    p: float | None
    p_adjusted: float | None
    """By Holm, for all tests of the same kind that were made together."""
    tests: int
    """How many those are."""
    correlation: float | None
    wins: int
    """Tasks on which the candidate scored higher."""
    ties: int
    losses: int
    smallest_detectable: float | None
    """The smallest true difference that such a comparison finds with the stated power."""
    verdict: Verdict
    text: str = ""
    equivalence: Equivalence | None = None


def compare_measure(
    name: str, baseline: Groups, candidate: Groups, options: ComparisonOptions, member: str = ""
) -> MeasureComparison:
    """Compare the rollouts of tasks that are in the same order on both sides; not yet a verdict."""
    ours, theirs = group_means(candidate), group_means(baseline)
    paired = compare_paired(ours, theirs, options.level)
    flips = is_zero_one(baseline) and is_zero_one(candidate)
    single = flips and all(len(group) == 1 for group in (*baseline, *candidate))
    se, interval = _spread(paired, flips, single, options.level)
    test, p = _test(paired, ours, theirs, single, options.seed)
    measured = MeasureComparison(
        name=name,
        member=member,
        n=paired.n,
        baseline=mean_of(theirs) if theirs else None,
        candidate=mean_of(ours) if ours else None,
        difference=paired.diff,
        se=paired.se,
        interval=interval,
        test=test,
        p=p,
        p_adjusted=p,
        tests=1,
        correlation=paired.correlation,
        wins=paired.wins,
        ties=paired.ties,
        losses=paired.losses,
        smallest_detectable=_smallest_detectable(
            paired.n,
            se if paired.se is None else paired.se,
            1 / min(map(len, (*baseline, *candidate))) if flips and paired.n else 0.0,
            options,
        ),
        verdict="too_little_data",
    )
    return msgspec.structs.replace(measured, equivalence=_equivalence(measured, se, options))


def _smallest_detectable(n: int, se: float | None, step: float, options: ComparisonOptions) -> float | None:
    """As `proctor eval plan` computes it for the same tasks and rollouts."""
    if se is None or n < 2:
        return None
    return detectable_with(n, PairedDesign(se * se * n, alpha=options.alpha, power=options.power), step)


def _spread(
    paired: PairedComparison, flips: bool, single: bool, level: float
) -> tuple[float | None, Interval | None]:
    """The error and interval of the difference.

    0/1 results of single rollouts, and 0/1 results that all tie, get the interval made for them: agreement in
    a few tasks is not certainty.
    """
    if paired.n and (single or (flips and paired.se is None and not paired.diff)):
        return adjusted_difference(paired.wins, paired.losses, paired.n, level)
    return paired.se, paired.interval


def _test(
    paired: PairedComparison, ours: Sequence[float], theirs: Sequence[float], single: bool, seed: int
) -> tuple[TestName, float | None]:
    if not paired.n:
        return "none", None
    if single:
        return "mcnemar", mcnemar_exact(paired.wins, paired.losses)
    differences = [0.0 if is_close(x, y) else round(x - y, 12) for x, y in zip(ours, theirs, strict=True)]
    if paired.p is None or permutation_is_cheap(differences):
        return "permutation", sign_flip_permutation(differences, seed)
    return "t", paired.p


def _equivalence(
    measured: MeasureComparison, se: float | None, options: ComparisonOptions
) -> Equivalence | None:
    """Two one-sided tests, each at 1 - level; nothing is shown where the differences have no spread."""
    if options.margin is None:
        return None
    if se is None or measured.difference is None or measured.n < 2:
        return Equivalence(
            margin=options.margin, verdict="too_little_data", p_equivalent=None, p_no_worse=None
        )
    tests = margin_tests(measured.difference, se, measured.n - 1, options.margin)
    verdict: EquivalenceVerdict = "not_shown"
    if tests.p_equivalent <= options.alpha:
        verdict = "equivalent"
    elif tests.p_above_lower <= options.alpha:
        verdict = "no_worse"
    elif tests.p_below_lower <= options.alpha:
        verdict = "worse"
    return Equivalence(
        margin=options.margin,
        verdict=verdict,
        p_equivalent=tests.p_equivalent,
        p_no_worse=tests.p_above_lower,
    )
