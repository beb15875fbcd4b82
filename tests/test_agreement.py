"""Agreement of judges and people, and the corrected score: against published values, other libraries and
simulation."""

from random import Random

import pytest

from proctor.stats.agreement import cohen_kappa, krippendorff_alpha
from proctor.stats.interval import Interval
from proctor.stats.prediction_powered import prediction_powered_mean

# Krippendorff's own example: four observers, twelve units, some not rated.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [[float(value) for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def ratings(table: list[list[int]]) -> tuple[list[float], list[float]]:
    """Two raters' ratings from the counts of each pair of categories."""
    cells = [
        (row, column) for row, counts in enumerate(table) for column, n in enumerate(counts) for _ in range(n)
    ]
    return [float(row) for row, _ in cells], [float(column) for _, column in cells]


@pytest.mark.parametrize(
    ("table", "kappa", "se"),
    [  # values and asymptotic standard errors: statsmodels, cohens_kappa
        ([[20, 5], [10, 15]], 0.4, 0.1270),
        ([[53, 5, 2], [11, 14, 5], [1, 6, 3]], 0.4286, 0.0760),
    ],
)
def test_kappa_and_the_width_of_its_interval_match_statsmodels(
    table: list[list[int]], kappa: float, se: float
) -> None:
    found = cohen_kappa(*ratings(table))

    assert found.value == pytest.approx(kappa, abs=1e-4)
    assert found.interval is not None
    assert (found.interval.high - found.interval.low) / (2 * 1.96) == pytest.approx(se, rel=0.06)
    assert found.interval.low < kappa < found.interval.high


def test_alpha_matches_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(UNITS).value == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(UNITS, "interval").value == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha(UNITS).n == 11, "a unit that one observer rated says nothing of agreement"


def test_alpha_does_not_depend_on_where_the_scale_starts() -> None:
    shifted = [[value + 1e6 for value in unit] for unit in UNITS]

    found, moved = krippendorff_alpha(UNITS, "interval"), krippendorff_alpha(shifted, "interval")

    assert found.value is not None
    assert moved.value == pytest.approx(found.value, abs=1e-9)


def test_for_two_values_both_scales_give_the_same() -> None:
    units = [[float(one), float(other)] for one, other in zip(*ratings([[20, 5], [10, 15]]), strict=True)]

    assert krippendorff_alpha(units).value == pytest.approx(krippendorff_alpha(units, "interval").value)


def test_raters_who_always_agree_get_a_lower_bound_and_no_false_certainty() -> None:
    few = cohen_kappa([0.0, 1.0] * 6, [0.0, 1.0] * 6)
    many = cohen_kappa([0.0, 1.0] * 100, [0.0, 1.0] * 100)

    assert few.value == many.value == 1
    assert few.interval is not None
    assert many.interval is not None
    assert few.interval.low < 0.6 < 0.95 < many.interval.low


def test_raters_who_only_ever_say_one_thing_have_no_agreement_beyond_chance_to_measure() -> None:
    assert cohen_kappa([1.0] * 20, [1.0] * 20).value is None
    assert krippendorff_alpha([[1.0, 1.0]] * 20).value is None
    assert krippendorff_alpha([[1.0]] * 20).n == 0
    assert cohen_kappa([], []).value is None


def test_too_few_units_get_no_interval() -> None:
    assert cohen_kappa([0.0, 1.0, 1.0], [0.0, 1.0, 0.0]).interval is None


def test_rollouts_of_one_task_count_as_one_cluster() -> None:
    first, second = ratings([[20, 5], [10, 15]])
    alone = cohen_kappa(first, second).interval
    doubled = cohen_kappa(first * 2, second * 2, [*range(50), *range(50)]).interval

    assert alone is not None
    assert doubled is not None
    assert (doubled.low, doubled.high) == pytest.approx((alone.low, alone.high), abs=1e-9)


# The corrected score

LABELLED = [(1, 1), (0, 0), (1, 1), (1, 1), (1, 0), (1, 1), (0, 1), (0, 0), (1, 1), (1, 1), (1, 1), (0, 0)]
UNLABELLED = [1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1]


def test_the_corrected_mean_matches_the_reference_implementation() -> None:
    labelled = [[(float(judge), float(people))] for judge, people in LABELLED]
    rest = [[(float(judge), None)] for judge in UNLABELLED]

    found = prediction_powered_mean([*labelled, *rest])

    assert found.mean == pytest.approx(0.6797138, abs=1e-6)  # ppi_py, ppi_mean_pointestimate
    assert (found.judge_mean, found.people_mean) == pytest.approx((0.6875, 2 / 3))
    assert found.interval is not None
    # ppi_mean_ci gives 0.449 to 0.911 with a normal quantile; ours is wider, for twelve labels are few
    assert found.interval.low < 0.449
    assert found.interval.high > 0.911


def test_a_judge_that_is_no_better_than_noise_is_left_out() -> None:
    random = Random(3)
    tasks = [[(float(random.random() < 0.5), float(number % 2))] for number in range(200)]

    assert prediction_powered_mean(tasks).weight < 0.2


def test_without_labels_there_is_nothing_to_correct_with() -> None:
    found = prediction_powered_mean([[(1.0, None)], [(0.0, None)]])

    assert (found.mean, found.judge_mean, found.labelled) == (None, 0.5, 0)
    assert prediction_powered_mean([]).judge_mean is None


def test_when_everything_is_labelled_the_people_decide() -> None:
    found = prediction_powered_mean([[(1.0, 0.0)]] * 6 + [[(1.0, 1.0)]] * 14)

    assert found.mean == pytest.approx(0.7)


def simulate_judged(
    random: Random, tasks: int, rollouts: int, labels: int, accuracy: tuple[float, float], rate: float
) -> list[list[tuple[float, float | None]]]:
    """A run whose judge is right with one probability where people pass, and another where they do not."""
    played: list[list[tuple[float, float]]] = []
    for _ in range(tasks):
        difficulty = random.betavariate(2 * rate, 2 * (1 - rate))
        task = []
        for _ in range(rollouts):
            people = float(random.random() < difficulty)
            right = random.random() < accuracy[0 if people else 1]
            task.append((people if right else 1 - people, people))
        played.append(task)
    places = [(task, number) for task in range(tasks) for number in range(rollouts)]
    sample = set(random.sample(places, labels))
    return [
        [
            (judge, people if (place, number) in sample else None)
            for number, (judge, people) in enumerate(task)
        ]
        for place, task in enumerate(played)
    ]


DESIGNS = [
    (100, 1, 30, (0.9, 0.9), 0.5),
    (200, 1, 30, (0.97, 0.97), 0.7),
    (50, 4, 60, (0.9, 0.8), 0.3),
    (300, 1, 60, (0.95, 0.7), 0.8),
    (200, 1, 30, (0.6, 0.5), 0.5),
]


def coverage(design: tuple[int, int, int, tuple[float, float], float], runs: int) -> tuple[float, float]:
    """How often the corrected interval covers the truth, and how often the judge's plain mean would."""
    random, rate = Random(1), design[4]
    covered = 0
    misses = []
    for _ in range(runs):
        found = prediction_powered_mean(simulate_judged(random, *design))
        assert found.interval is not None
        assert found.judge_mean is not None
        covered += found.interval.low <= rate <= found.interval.high
        misses.append(found.judge_mean - rate)
    return covered / runs, sum(misses) / runs


def test_the_corrected_interval_covers_what_people_would_say_though_the_judge_is_biased() -> None:
    covered, bias = coverage((80, 2, 50, (0.95, 0.6), 0.4), 120)

    assert bias > 0.15, "the judge alone is far off"
    assert covered >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_the_corrected_interval_keeps_its_level(
    design: tuple[int, int, int, tuple[float, float], float],
) -> None:
    covered, _ = coverage(design, 2000)

    assert 0.93 <= covered <= 0.998


@pytest.mark.slow
@pytest.mark.parametrize(("units", "accuracy"), [(20, 0.9), (50, 0.8), (50, 0.97), (200, 0.95)])
def test_intervals_of_kappa_keep_their_level(units: int, accuracy: float) -> None:
    random, truth = Random(2), 2 * accuracy - 1
    inside: list[Interval] = []
    for _ in range(1000):
        first = [float(random.random() < 0.5) for _ in range(units)]
        second = [value if random.random() < accuracy else 1 - value for value in first]
        interval = cohen_kappa(first, second).interval
        assert interval is not None
        inside += [interval] if interval.low <= truth <= interval.high else []

    assert 0.93 <= len(inside) / 1000 <= 0.995
