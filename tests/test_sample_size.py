"""What a plan promises is what a comparison finds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from proctor.comparison.design import DesignGoal, RolloutCost, design_evaluation
from proctor.comparison.measure import ComparisonOptions, compare_measure
from proctor.comparison.scores import RunScores, TaskScores
from proctor.stats.mean import headline_estimate
from proctor.stats.power import PairedDesign, tasks_needed
from proctor.stats.prediction import predict_total
from proctor.stats.sample_size import (
    detectable_with,
    halfwidth_with,
    tasks_for_halfwidth,
    tasks_to_detect,
    variance_range,
)

Draw = Callable[[Random], tuple[list[float], list[float]]]


@pytest.mark.parametrize(("halfwidth", "variance"), [(0.02, 0.25), (0.1, 0.25), (0.5, 0.25), (0.01, 0.1)])
def test_the_tasks_for_a_half_width_are_just_enough(halfwidth: float, variance: float) -> None:
    n = tasks_for_halfwidth(halfwidth, variance)

    assert halfwidth_with(n, variance) <= halfwidth < halfwidth_with(n - 1, variance)


@pytest.mark.parametrize("step", [0.0, 0.25, 1.0])
def test_the_tasks_for_a_difference_are_just_enough(step: float) -> None:
    design = PairedDesign(0.2)
    n = tasks_to_detect(0.1, design, step)

    assert detectable_with(n, design, step) <= 0.1 < detectable_with(n - 1, design, step)


def test_many_tasks_need_what_the_normal_formula_says() -> None:
    design = PairedDesign(1 / 9)

    assert tasks_needed(0.03, design) == 969
    assert tasks_to_detect(0.03, design) == pytest.approx(969, abs=4)


def test_the_range_of_a_variance_holds_it_and_narrows_with_tasks() -> None:
    low, high = variance_range(1.0, 19)
    closer = variance_range(1.0, 199)

    assert low < closer[0] < 1.0 < closer[1] < high
    assert (19 / low, 19 / high) == pytest.approx((27.204, 11.651), rel=0.01)  # chi-square tables


def test_a_total_is_predicted_with_the_doubt_of_the_sample_and_of_the_future() -> None:
    total = predict_total([1.0, 2.0, 3.0], 100)

    assert total.likely == 200
    assert total.low is not None
    assert total.high is not None
    assert total.high - 200 == pytest.approx(4.3027 * 100 * (1 / 3 + 1 / 100) ** 0.5, rel=1e-4)
    assert predict_total([1.0], 5).high is None


# --- by simulation


def shifted_passes(rollouts: int, shift: float) -> Draw:
    """Tasks of mixed difficulty, on which the candidate's rate is higher by the same amount."""

    def draw(random: Random) -> tuple[list[float], list[float]]:
        rate = random.betavariate(2, 2) * (1 - shift)
        return (
            [float(random.random() < rate) for _ in range(rollouts)],
            [float(random.random() < rate + shift) for _ in range(rollouts)],
        )

    return draw


def shifted_normal(shift: float) -> Draw:
    def draw(random: Random) -> tuple[list[float], list[float]]:
        task = random.gauss(0, 1)
        return [task + random.gauss(0, 0.5)], [task + shift + random.gauss(0, 0.5)]

    return draw


PROMISES = {
    "0/1, 1 rollout": (shifted_passes(1, 0.2), 0.2, 1),
    "0/1, 2 rollouts": (shifted_passes(2, 0.2), 0.2, 2),
    "0/1, 4 rollouts": (shifted_passes(4, 0.1), 0.1, 4),
    "normal": (shifted_normal(0.5), 0.5, 1),
}


def plan_tasks(draw: Draw, difference: float, rollouts: int) -> int:
    """What `eval plan` says, given pilots large enough to know the variance."""
    random = Random(99)
    pairs = [draw(random) for _ in range(20_000)]
    sides = [build_run(name, [pair[place] for pair in pairs]) for place, name in enumerate("ab")]
    goal = DesignGoal(kind="difference", amount=difference, rollouts=(rollouts,))
    return design_evaluation([sides[1]], [sides[0]], RolloutCost(), goal).rows[0].tasks


def build_run(name: str, groups: list[list[float]]) -> RunScores:
    tasks = [
        TaskScores(id=place, hash=str(place), rewards=tuple(group), rollouts=tuple(range(len(group))))
        for place, group in enumerate(groups)
    ]
    return RunScores(run=name, tasks=tasks, planned=sum(map(len, groups)))


def share_found(draw: Draw, tasks: int, trials: int) -> float:
    random, found = Random(4), 0
    for _ in range(trials):
        pairs = [draw(random) for _ in range(tasks)]
        ours, theirs = [pair[1] for pair in pairs], [pair[0] for pair in pairs]
        p = compare_measure("reward", theirs, ours, ComparisonOptions()).p
        found += p is not None and p <= 0.05
    return found / trials


def test_a_difference_of_the_planned_size_is_found_about_as_often_as_promised() -> None:
    draw, difference, rollouts = PROMISES["0/1, 1 rollout"]

    assert share_found(draw, plan_tasks(draw, difference, rollouts), 300) == pytest.approx(0.8, abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES)
def test_a_difference_of_the_planned_size_is_found_as_often_as_promised(name: str) -> None:
    draw, difference, rollouts = PROMISES[name]

    assert share_found(draw, plan_tasks(draw, difference, rollouts), 4000) == pytest.approx(0.8, abs=0.03)


def test_two_samples_of_one_model_seldom_differ() -> None:
    assert share_found(shifted_passes(1, 0.0), 40, 400) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize(("rollouts", "tasks"), [(1, 20), (1, 100), (3, 20), (4, 60)])
def test_two_samples_of_one_model_differ_no_more_often_than_promised(rollouts: int, tasks: int) -> None:
    assert share_found(shifted_passes(rollouts, 0.0), tasks, 3000) <= 0.06


def test_the_planned_half_width_is_what_a_run_of_that_size_has() -> None:
    random = Random(3)
    draw = shifted_passes(2, 0.0)
    pilot = build_run("pilot", [draw(random)[0] for _ in range(5000)])
    goal = DesignGoal(kind="halfwidth", amount=0.04, rollouts=(2,))
    (row,) = design_evaluation([pilot], [], RolloutCost(), goal).rows
    interval = headline_estimate([draw(random)[0] for _ in range(row.tasks)]).interval

    assert interval is not None
    assert (interval.high - interval.low) / 2 == pytest.approx(0.04, rel=0.1)
