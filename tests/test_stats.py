"""The numbers a report prints, against published tables, known values and laws they must obey."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import comb, inf, isclose, nan, sqrt
from random import Random
from statistics import NormalDist, fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.stats import distributions
from proctor.stats.distributions import t_critical, t_p_value
from proctor.stats.interval import Interval
from proctor.stats.mean import (
    MeanEstimate,
    clustered_se,
    headline_estimate,
    mean_estimate,
    skew_corrected_interval,
)
from proctor.stats.paired import compare_paired, holm, mcnemar_exact, sign_flip_permutation
from proctor.stats.pass_k import pass_at_k, pass_hat_k
from proctor.stats.power import PairedDesign, minimum_detectable_effect, tasks_needed
from proctor.stats.proportion import clopper_pearson, rule_of_three, wilson
from proctor.stats.variance import between_task_variance, icc, within_task_variance

# tau-bench, gpt-4o on the airline tasks: successes in 4 trials of each of 50 tasks.
AIRLINE_SUCCESSES = [
    *(0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4),
    *(0, 2, 2, 0, 1, 2, 2, 0, 0, 3, 4, 4, 3, 4, 1, 3, 2, 4, 1, 2, 2, 2, 1, 4, 4),
]
AIRLINE = [[1.0] * wins + [0.0] * (4 - wins) for wins in AIRLINE_SUCCESSES]
AIRLINE_MEANS = [wins / 4 for wins in AIRLINE_SUCCESSES]

# 100 tasks: 40 solved by both, 15 by A only, 5 by B only, 40 by neither.
A_SOLVED = [1.0] * 40 + [1.0] * 15 + [0.0] * 5 + [0.0] * 40
B_SOLVED = [1.0] * 40 + [0.0] * 15 + [1.0] * 5 + [0.0] * 40

# A busy machine must not fail a law for being slow.
briefly = settings(max_examples=40, deadline=None)
rewards = st.floats(-10, 10) | st.sampled_from((0.0, 0.25, 0.5, 1.0))
flips = st.sampled_from((0.0, 1.0))
tries = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def groups_of(reward: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(reward, min_size=1, max_size=4), min_size=2, max_size=12)


def holds(interval: Interval, value: float) -> bool:
    return interval.low - 1e-9 <= value <= interval.high + 1e-9


def bounds(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


# --- success within k tries


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (10, 3, 1, 0.3),
        (10, 3, 5, 0.916667),
        (5, 2, 3, 0.9),
        (200, 12, 10, 0.469324),
        (10, 0, 5, 0.0),
        (3, 2, 2, 1.0),
    ],
)
def test_pass_at_k_matches_the_reference_values(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("n", "c", "k", "expected"), [(10, 3, 2, 0.066667), (4, 3, 2, 0.5), (8, 7, 4, 0.5)])
def test_pass_hat_k_matches_the_reference_values(n: int, c: int, k: int, expected: float) -> None:
    assert pass_hat_k(n, c, k) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [(pass_hat_k, (0.420, 0.2733, 0.220, 0.200)), (pass_at_k, (0.420, 0.5667, 0.660, 0.720))],
)
def test_the_published_tau_bench_table_is_reproduced(
    measure: Callable[[int, int, int], float], expected: tuple[float, ...]
) -> None:
    table = tuple(fmean(measure(4, wins, k) for wins in AIRLINE_SUCCESSES) for k in (1, 2, 3, 4))

    assert table == pytest.approx(expected, abs=5e-5)


def test_more_tries_than_were_made_are_undefined() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None


def test_thousands_of_tries_stay_exact() -> None:
    assert pass_at_k(5000, 1, 2500) == 0.5
    assert pass_hat_k(5000, 4999, 2500) == 0.5
    assert pass_at_k(10**6, 1, 1) == 1e-6


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    for measure in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="0 <= c <= n"):
            measure(n, c, k)


@briefly
@given(tries)
def test_pass_at_k_grows_and_pass_hat_k_shrinks_with_k(counts: tuple[int, int]) -> None:
    n, c = counts
    at = [pass_at_k(n, c, k) or 0.0 for k in range(1, n + 1)]
    hat = [pass_hat_k(n, c, k) or 0.0 for k in range(1, n + 1)]

    assert all(fewer <= more for fewer, more in pairwise(at))
    assert all(fewer >= more for fewer, more in pairwise(hat))
    assert at[0] == hat[0] == c / n


@briefly
@given(tries, st.integers(1, 60))
def test_pass_hat_k_mirrors_pass_at_k_of_the_failures(counts: tuple[int, int], k: int) -> None:
    n, c = counts
    at, hat = pass_at_k(n, n - c, k), pass_hat_k(n, c, k)

    assert (at is None and hat is None) if n < k else (at is not None and hat == pytest.approx(1 - at))


# --- one mean


def test_the_airline_mean_has_the_reference_error_and_interval() -> None:
    estimate = mean_estimate(AIRLINE_MEANS)

    assert estimate.mean == pytest.approx(0.42)
    assert estimate.se == pytest.approx(0.0522162, abs=5e-8)
    assert bounds(estimate.interval) == pytest.approx((0.31507, 0.52493), abs=5e-6)
    assert estimate.n == 50


def test_a_z_interval_would_be_narrower_than_the_t_interval() -> None:
    reach = NormalDist().inv_cdf(0.975) * (mean_estimate(AIRLINE_MEANS).se or 0)

    assert (0.42 - reach, 0.42 + reach) == pytest.approx((0.31766, 0.52234), abs=5e-6)


def test_clustering_rollouts_by_task_gives_the_error_of_task_means() -> None:
    rollouts = [reward for group in AIRLINE for reward in group]
    tasks = [task for task, group in enumerate(AIRLINE) for _ in group]

    corrected, plain = clustered_se(rollouts, tasks), clustered_se(rollouts, tasks, corrected=False)

    assert corrected.se == pytest.approx(0.0522162, abs=5e-8)
    assert plain.se == pytest.approx(0.0516914, abs=5e-8)
    assert corrected.df == plain.df == 49


def test_treating_rollouts_as_independent_would_be_too_sure() -> None:
    naive = sqrt(0.42 * 0.58 / 200)

    assert naive == pytest.approx(0.0348999, abs=5e-8)
    assert (mean_estimate(AIRLINE_MEANS).se or 0) / naive == pytest.approx(1.50, abs=5e-3)


@briefly
@given(st.lists(st.lists(rewards, min_size=3, max_size=3), min_size=2, max_size=12))
def test_corrected_clusters_of_equal_size_equal_the_error_of_their_means(groups: list[list[float]]) -> None:
    values = [value for group in groups for value in group]
    clusters = [number for number, group in enumerate(groups) for _ in group]

    estimate = mean_estimate([fmean(group) for group in groups])

    assert clustered_se(values, clusters).se == pytest.approx(estimate.se or 0.0, abs=1e-7)


def test_one_cluster_has_no_error() -> None:
    assert clustered_se([1.0, 0.0], ["a", "a"]).se is None
    assert clustered_se([], []).se is None


def test_nothing_measured_is_no_mean_and_one_task_no_interval() -> None:
    for estimate in (mean_estimate([]), headline_estimate([]), headline_estimate([[], []])):
        assert estimate == MeanEstimate(None, None, None, 0)
    for estimate in (
        mean_estimate([0.5]),
        headline_estimate([[1.0, 0.0]]),
        headline_estimate([[1.0, 0.0], []]),
    ):
        assert estimate == MeanEstimate(0.5, None, None, 1)


def test_tasks_that_agree_claim_no_certainty() -> None:
    assert mean_estimate([0.25] * 20) == MeanEstimate(0.25, None, None, 20)
    assert mean_estimate([0.1 + 0.2, 0.3]).se is None


@pytest.mark.parametrize("broken", [nan, inf])
def test_a_reward_that_is_no_number_is_refused(broken: float) -> None:
    with pytest.raises(ValueError, match="grader error"):
        headline_estimate([[1.0], [broken]])


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_is_a_probability(level: float) -> None:
    for ask in (
        lambda: mean_estimate([0.0, 1.0], level),
        lambda: wilson(8, 10, level),
        lambda: clopper_pearson(8, 10, level),
        lambda: rule_of_three(10, level),
        lambda: headline_estimate(AIRLINE, level=level),
    ):
        with pytest.raises(ValueError, match=r"like 0\.95"):
            ask()


@briefly
@given(st.lists(rewards, min_size=2, max_size=30))
def test_a_wider_level_gives_a_wider_interval_around_the_mean(values: list[float]) -> None:
    likely, surer = mean_estimate(values, 0.8), mean_estimate(values, 0.99)
    if likely.interval and surer.interval and likely.mean is not None:
        assert holds(likely.interval, likely.mean)
        assert surer.interval.low < likely.interval.low < likely.interval.high < surer.interval.high


# --- the headline


def coin_groups(tasks: int, rollouts: int, rate: float = 0.6) -> list[list[float]]:
    random = Random(7)
    return [[float(random.random() < rate) for _ in range(rollouts)] for _ in range(tasks)]


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        (coin_groups(30, 1), "wilson"),
        (coin_groups(1000, 1), "wilson"),
        (coin_groups(200, 3), "wilson"),
        (coin_groups(5, 3), "wilson"),
        ([[0.2], [0.7], [0.4]], "skew-corrected t"),
        ([[0.1 * (task % 7)] for task in range(200)], "skew-corrected t"),
        ([[0.0] * 3] * 5, "clopper-pearson"),
        ([[1.0]] * 300, "clopper-pearson"),
        ([[1.0, 0.0]] * 5, "clopper-pearson"),
    ],
)
def test_the_headline_names_the_interval_its_data_deserve(groups: list[list[float]], kind: str) -> None:
    interval = headline_estimate(groups).interval

    assert interval is not None
    assert interval.kind == kind
    assert interval.low < interval.high


def test_thirty_passes_of_thirty_still_leave_room_for_failures() -> None:
    estimate = headline_estimate([[1.0, 1.0]] * 30)

    assert (estimate.mean, estimate.se) == (1.0, None)
    assert estimate.interval == clopper_pearson(30, 30)
    assert bounds(estimate.interval) == pytest.approx((0.025 ** (1 / 30), 1.0))


def test_one_failure_does_not_make_the_interval_narrower_than_none_did() -> None:
    flawless, one_failure = (
        headline_estimate([[1.0] * 3] * 20).interval,
        headline_estimate([[1.0] * 3] * 19 + [[1.0, 1.0, 0.0]]).interval,
    )

    assert flawless is not None
    assert one_failure is not None
    assert one_failure.kind == "wilson"
    assert one_failure.low < flawless.low
    assert one_failure.high < flawless.high


def test_a_constant_reward_of_unknown_range_has_no_interval() -> None:
    assert headline_estimate([[0.75], [0.75, 0.75], [0.75]]) == MeanEstimate(0.75, None, None, 3)
    assert headline_estimate([[0.1], [0.1, 0.1, 0.1]]).interval is None


def test_every_task_weighs_the_same_however_many_rollouts_it_has() -> None:
    assert headline_estimate([[1.0] * 9, [0.0]]).mean == 0.5


def test_the_interval_of_a_success_rate_never_passes_one() -> None:
    nearly_all = [[1.0, 1.0]] * 197 + [[0.0, 0.0]] * 3
    raw = mean_estimate([fmean(group) for group in nearly_all]).interval
    low, high = bounds(headline_estimate(nearly_all).interval)

    assert raw is not None
    assert raw.high > 1
    assert low < 197 / 200 < high < 1


def test_rollouts_of_one_task_count_as_many_trials_as_they_are_independent() -> None:
    alike, apart = [[1.0] * 8] * 20 + [[0.0] * 8] * 20, [[1.0, 0.0] * 4] * 39 + [[1.0] + [0.0] * 7]
    tasks_only, as_good_as_free = (headline_estimate(groups).interval for groups in (alike, apart))

    assert tasks_only is not None
    assert as_good_as_free is not None
    assert bounds(tasks_only) == pytest.approx(bounds(wilson(20, 40)), abs=0.01)
    assert bounds(as_good_as_free) == pytest.approx(bounds(wilson(157, 320)), abs=0.01)


def test_symmetric_rewards_get_the_plain_t_interval() -> None:
    values = [0.1, 0.2, 0.3, 0.4, 0.5]

    assert bounds(skew_corrected_interval(values)) == pytest.approx(bounds(mean_estimate(values).interval))


def test_a_long_tail_moves_the_interval_towards_it() -> None:
    values = [1.0, 1.1, 1.2, 1.3, 1.4, 9.0]
    plain, moved = mean_estimate(values).interval, skew_corrected_interval(values)

    assert plain is not None
    assert moved.low > plain.low
    assert moved.high > plain.high


def test_the_interval_stays_where_rewards_can_be() -> None:
    interval = headline_estimate([[0.9], [0.95], [1.0], [0.2]]).interval

    assert bounds(interval)[1] <= 1.0


@briefly
@given(groups_of(rewards) | groups_of(flips), st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_rollouts_changes_nothing(groups: list[list[float]], random: Random) -> None:
    shuffled = [random.sample(group, len(group)) for group in random.sample(groups, len(groups))]

    one, other = headline_estimate(shuffled), headline_estimate(groups)
    assert replace(one, se=None) == replace(other, se=None)
    assert one.se == pytest.approx(other.se)  # sums are taken in another order


@briefly
@given(groups_of(flips))
def test_a_success_rate_always_has_an_interval_with_width_that_holds_it(groups: list[list[float]]) -> None:
    estimate = headline_estimate(groups)

    assert estimate.mean is not None
    assert estimate.interval is not None
    assert 0 <= estimate.interval.low < estimate.interval.high <= 1 + 1e-9
    assert holds(estimate.interval, estimate.mean)


@briefly
@given(groups_of(rewards))
def test_any_headline_interval_holds_its_mean(groups: list[list[float]]) -> None:
    estimate = headline_estimate(groups)

    assert estimate.mean == pytest.approx(fmean(fmean(group) for group in groups), abs=1e-9)
    if estimate.interval:
        assert holds(estimate.interval, estimate.mean or 0.0)


# --- coverage, by simulation


def test_clustered_intervals_cover_what_naive_ones_miss() -> None:
    """30 clusters of 10 with a fifth of the variance between clusters: published 95.1 and 74.5 %."""
    random, trials, reach = Random(2024), 400, t_critical(0.95, 29)
    clusters = [cluster for cluster in range(30) for _ in range(10)]
    clustered = naive = 0
    for _ in range(trials):
        effects = [random.gauss(0, 0.5) for _ in range(30)]
        values = [effects[cluster] + random.gauss(0, 1) for cluster in clusters]
        distance = abs(fmean(values))
        clustered += distance <= reach * (clustered_se(values, clusters).se or 0)
        naive += distance <= 1.96 * (mean_estimate(values).se or 0)

    assert clustered / trials == pytest.approx(0.95, abs=0.03)
    assert naive / trials == pytest.approx(0.75, abs=0.06)


Suite = Callable[[Random], list[list[float]]]


def flipped(tasks: int, rollouts: int, rate: Callable[[Random], float]) -> Suite:
    """0/1 rewards whose success rate differs from task to task."""

    def suite(random: Random) -> list[list[float]]:
        rates = [rate(random) for _ in range(tasks)]
        return [[float(random.random() < each) for _ in range(rollouts)] for each in rates]

    return suite


def exponential(tasks: int, rollouts: int) -> Suite:
    """Skewed rewards with a mean of 1."""
    return lambda random: [[random.expovariate(1.0) for _ in range(rollouts)] for _ in range(tasks)]


def uniform_rate(random: Random) -> float:
    return random.random()


def rare_rate(random: Random) -> float:
    return random.betavariate(0.5, 9.5)


COVERED = {
    "0/1, 10 x 1": (flipped(10, 1, uniform_rate), 0.5, 0.93, 0.99),
    "0/1, 10 x 3": (flipped(10, 3, uniform_rate), 0.5, 0.93, 0.985),
    "0/1, 20 x 4": (flipped(20, 4, uniform_rate), 0.5, 0.93, 0.975),
    "0/1, 50 x 4": (flipped(50, 4, uniform_rate), 0.5, 0.93, 0.97),
    "rare 0/1, 10 x 1": (flipped(10, 1, rare_rate), 0.05, 0.93, 1.0),
    "rare 0/1, 50 x 4": (flipped(50, 4, rare_rate), 0.05, 0.93, 0.98),
    "exponential, 5 x 3": (exponential(5, 3), 1.0, 0.92, 0.98),
    "exponential, 10 x 1": (exponential(10, 1), 1.0, 0.92, 0.98),
    "exponential, 20 x 1": (exponential(20, 1), 1.0, 0.92, 0.98),
    "exponential, 50 x 4": (exponential(50, 4), 1.0, 0.92, 0.98),
}
"""Suites, their true mean, and the share of nominal 95 % intervals that must hold it."""


def share_covered(suite: Suite, truth: float, trials: int) -> float:
    random = Random(5)
    intervals = [headline_estimate(suite(random)).interval for _ in range(trials)]
    return sum(interval is not None and holds(interval, truth) for interval in intervals) / trials


@pytest.mark.parametrize("name", ["0/1, 10 x 3", "rare 0/1, 10 x 1", "exponential, 10 x 1"])
def test_intervals_cover_about_what_they_promise(name: str) -> None:
    suite, truth, least, most = COVERED[name]

    assert least - 0.025 <= share_covered(suite, truth, 500) <= most + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_intervals_cover_what_they_promise(name: str) -> None:
    suite, truth, least, most = COVERED[name]

    assert least <= share_covered(suite, truth, 10_000) <= most


# --- a proportion


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (wilson(8, 10), (0.490162, 0.943318)),
        (wilson(30, 30), (0.886487, 1)),
        (clopper_pearson(8, 10), (0.443905, 0.974789)),
    ],
)
def test_proportions_match_the_reference_intervals(interval: Interval, expected: tuple[float, float]) -> None:
    assert bounds(interval) == pytest.approx(expected, abs=5e-7)


def test_the_rule_of_three_bounds_what_was_never_seen() -> None:
    bound = rule_of_three(100)

    assert (bound.low, bound.kind, bound.level) == (0.0, "rule of three", 0.95)
    assert bound.high == pytest.approx(3 / 100, rel=2e-3)
    assert rule_of_three(1).high == 1.0


@briefly
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_proportion_intervals_hold_the_rate_and_mirror_for_failures(counts: tuple[int, int]) -> None:
    successes, n = counts
    for method in (wilson, clopper_pearson):
        interval, mirrored = method(successes, n), method(n - successes, n)

        assert 0 <= interval.low <= successes / n <= interval.high <= 1
        assert interval.low < interval.high
        assert bounds(interval) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


@pytest.mark.parametrize("successes", [0, 1, 7, 20])
def test_clopper_pearson_leaves_exactly_its_tails(successes: int) -> None:
    interval = clopper_pearson(successes, 20)

    if successes > 0:
        assert 1 - binomial_cdf(successes - 1, 20, interval.low) == pytest.approx(0.025)
    if successes < 20:
        assert binomial_cdf(successes, 20, interval.high) == pytest.approx(0.025)


def binomial_cdf(most: int, n: int, rate: float) -> float:
    return sum(comb(n, hits) * rate**hits * (1 - rate) ** (n - hits) for hits in range(most + 1))


@pytest.mark.parametrize("method", [wilson, clopper_pearson])
def test_impossible_proportions_are_refused(method: Callable[[float, int], Interval]) -> None:
    for successes, n in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="successes"):
            method(successes, n)


# --- where the spread comes from


def test_the_airline_variance_splits_as_in_the_reference() -> None:
    assert within_task_variance(AIRLINE) == pytest.approx(0.146667, abs=5e-7)
    assert between_task_variance(AIRLINE) == pytest.approx(0.099660, abs=5e-7)
    assert icc(AIRLINE) == pytest.approx(0.4046, abs=5e-5)


def test_variance_of_task_means_is_between_plus_within_over_k() -> None:
    within, between = within_task_variance(AIRLINE), between_task_variance(AIRLINE)

    assert within is not None
    assert between is not None
    assert between + within / 4 == pytest.approx(50 * (mean_estimate(AIRLINE_MEANS).se or 0) ** 2)


def test_spread_needs_repeats_and_tasks() -> None:
    assert within_task_variance([[1.0], [0.0]]) is None
    assert between_task_variance([[1.0], [0.0]]) is None
    assert between_task_variance([[1.0, 0.0]]) is None
    assert icc([[1.0, 0.0]]) is None
    assert icc([[1.0, 1.0], [1.0, 1.0]]) is None


@briefly
@given(groups_of(rewards))
def test_the_share_that_tasks_explain_is_a_share(groups: list[list[float]]) -> None:
    share = icc(groups)

    assert share is None or 0 <= share <= 1


def test_tasks_that_explain_all_or_nothing() -> None:
    assert icc([[0.0, 0.0], [1.0, 1.0]]) == 1
    assert icc([[0.0, 1.0], [1.0, 0.0]]) == 0


# --- two models on the same tasks


def test_pairing_matches_the_reference_and_beats_not_pairing() -> None:
    result = compare_paired(A_SOLVED, B_SOLVED)
    error_a, error_b = mean_estimate(A_SOLVED).se or 0, mean_estimate(B_SOLVED).se or 0
    unpaired = sqrt(error_a**2 + error_b**2)

    assert result.diff == pytest.approx(0.10)
    assert result.se == pytest.approx(0.0438086, abs=5e-8)
    assert result.correlation == pytest.approx(0.616162, abs=5e-7)
    assert result.p == pytest.approx(0.0245895, abs=5e-8)
    assert (result.n, result.wins, result.ties, result.losses) == (100, 15, 80, 5)
    assert unpaired == pytest.approx(0.0707107, abs=5e-8)
    assert t_p_value(0.10 / unpaired, 198) == pytest.approx(0.158870, abs=5e-7)


def test_mcnemar_matches_the_reference_value() -> None:
    assert mcnemar_exact(15, 5) == pytest.approx(0.0413895, abs=5e-8)


def test_the_published_math_comparison_is_reproduced() -> None:
    """Miller: 5000 questions, .655 against .630 with correlation .50, is +1.2 to +3.8 points."""
    both, only_a, only_b, neither = 2637, 638, 513, 1212
    a = [1.0] * (both + only_a) + [0.0] * (only_b + neither)
    b = [1.0] * both + [0.0] * only_a + [1.0] * only_b + [0.0] * neither

    result = compare_paired(a, b)

    assert mean_estimate(a).se == pytest.approx(0.0067, abs=5e-5)
    assert mean_estimate(b).se == pytest.approx(0.0068, abs=5e-5)
    assert result.correlation == pytest.approx(0.50, abs=5e-3)
    assert result.se == pytest.approx(0.00678, abs=5e-6)
    assert bounds(result.interval) == pytest.approx((0.012, 0.038), abs=5e-4)


@briefly
@given(st.lists(st.tuples(rewards, rewards), min_size=2, max_size=30))
def test_the_paired_error_follows_from_both_errors_and_their_correlation(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    error_a, error_b = mean_estimate(a).se, mean_estimate(b).se
    result = compare_paired(a, b)
    if error_a is None or error_b is None or result.correlation is None:
        return

    identity = error_a**2 + error_b**2 - 2 * result.correlation * error_a * error_b
    assert (result.se or 0.0) ** 2 == pytest.approx(identity, abs=1e-6)


@briefly
@given(st.lists(st.tuples(rewards, rewards), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_swapping_models_mirrors_the_comparison_and_order_is_irrelevant(
    pairs: list[tuple[float, float]], random: Random
) -> None:
    shuffled = random.sample(pairs, len(pairs))
    result = compare_paired([x for x, _ in pairs], [y for _, y in pairs])
    swapped = compare_paired([y for _, y in shuffled], [x for x, _ in shuffled])

    assert swapped.diff == pytest.approx(-(result.diff or 0.0))
    assert swapped.p == (None if result.p is None else pytest.approx(result.p))
    assert (swapped.wins, swapped.ties, swapped.losses) == (result.losses, result.ties, result.wins)
    assert result.wins + result.ties + result.losses == len(pairs)
    if result.interval:
        assert holds(result.interval, result.diff or 0.0)


def test_a_difference_without_spread_is_not_tested() -> None:
    ahead = compare_paired([0.5, 0.7, 0.9], [0.4, 0.6, 0.8])
    tied = compare_paired([0.1 + 0.2, 0.7], [0.3, 0.7])

    assert ahead.diff == pytest.approx(0.1)
    assert (ahead.se, ahead.interval, ahead.p) == (None, None, None)
    assert (tied.diff, tied.p, tied.ties) == (0, 1.0, 2)
    assert compare_paired([], []).p is None


def test_unmatched_tasks_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compare_paired([1.0, 0.0], [1.0])


@briefly
@given(st.integers(0, 60), st.integers(0, 60))
def test_the_exact_test_equals_its_binomial_sum(b: int, c: int) -> None:
    tail = sum(comb(b + c, hits) for hits in range(min(b, c) + 1)) / 2 ** (b + c)

    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, 2 * tail))


def test_no_discordant_task_is_no_evidence() -> None:
    assert mcnemar_exact(0, 0) == 1.0
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)


def test_sign_flips_agree_with_the_exact_test_on_solved_tasks() -> None:
    differences = [a - b for a, b in zip(A_SOLVED, B_SOLVED, strict=True)]

    p = sign_flip_permutation(differences, seed=3, resamples=10_000)

    assert p == pytest.approx(mcnemar_exact(15, 5), abs=0.006)
    assert p == sign_flip_permutation(differences[::-1], seed=3, resamples=10_000)


def test_sign_flips_never_report_an_impossible_zero() -> None:
    assert sign_flip_permutation([0.3] * 40, seed=0, resamples=99) == 1 / 100
    assert sign_flip_permutation([0.0] * 5, seed=0) == 1.0
    assert sign_flip_permutation([0.3], seed=0) == 1.0


def test_holm_asks_more_of_the_smallest_p() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@briefly
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_raises_every_p_keeps_their_order_and_stops_at_one(p_values: list[float]) -> None:
    adjusted = holm(p_values)

    assert all(p <= raised <= 1 for p, raised in zip(p_values, adjusted, strict=True))
    ranked = sorted(zip(p_values, adjusted, strict=True))
    assert all(lower[1] <= higher[1] for lower, higher in pairwise(ranked))


# --- planning


def test_planning_matches_the_reference_values() -> None:
    exactly = 969 * (minimum_detectable_effect(969, PairedDesign(1 / 9)) / 0.03) ** 2

    assert exactly == pytest.approx(968.997, abs=5e-4)
    assert tasks_needed(0.03, PairedDesign(1 / 9)) == 969


@pytest.mark.parametrize(("rollouts", "expected"), [(1, 0.13273), (10, 0.07567)])
def test_more_rollouts_reveal_smaller_differences(rollouts: int, expected: float) -> None:
    design = PairedDesign(1 / 9, 1 / 6, rollouts, 1 / 6, rollouts)

    assert minimum_detectable_effect(198, design) == pytest.approx(expected, abs=5e-6)


@briefly
@given(st.floats(0.01, 0.5), st.floats(0.001, 1), st.floats(0, 0.25), st.integers(1, 20))
def test_the_tasks_needed_are_just_enough(delta: float, w2: float, v: float, k: int) -> None:
    design = PairedDesign(w2, v, k, v, k)
    n = tasks_needed(delta, design)

    assert minimum_detectable_effect(n, design) <= delta * (1 + 1e-9)
    if n > 1:
        assert minimum_detectable_effect(n - 1, design) >= delta * (1 - 1e-9)


# --- distributions


@pytest.mark.parametrize(
    ("level", "df", "expected"),
    [
        (0.95, 1, 12.706205),
        (0.95, 4, 2.776445),
        (0.95, 49, 2.009575),
        (0.99, 2, 9.924843),
        (0.9, 30, 1.697261),
    ],
)
def test_t_matches_its_printed_table(level: float, df: int, expected: float) -> None:
    assert t_critical(level, df) == pytest.approx(expected, abs=5e-7)


def test_t_becomes_normal_with_many_tasks() -> None:
    assert t_critical(0.95, 10**7) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-6)


@briefly
@given(st.floats(0.01, 0.999), st.integers(1, 2000))
def test_the_p_value_undoes_the_critical_value(level: float, df: int) -> None:
    assert t_p_value(t_critical(level, df), df) == pytest.approx(1 - level, abs=1e-9)


@briefly
@given(st.floats(0.01, 0.99), st.integers(1, 40), st.integers(1, 40))
def test_the_beta_function_equals_its_binomial_sum(x: float, a: int, b: int) -> None:
    at_least = 1 - binomial_cdf(a - 1, a + b - 1, x)

    assert distributions.regularized_beta(x, a, b) == pytest.approx(at_least, abs=1e-9)


@briefly
@given(st.floats(0.001, 0.999), st.floats(1, 500), st.floats(1, 500))
def test_the_beta_quantile_undoes_the_beta_function(probability: float, a: float, b: float) -> None:
    assert distributions.regularized_beta(
        distributions.beta_quantile(probability, a, b), a, b
    ) == pytest.approx(probability, abs=1e-9)


def test_a_beta_function_of_no_number_ends() -> None:
    assert not isclose(distributions.regularized_beta(nan, 2, 3), 0.5)
