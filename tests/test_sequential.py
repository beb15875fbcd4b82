"""The confidence sequence that early stops rely on, by its formula and by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from random import Random
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.stats.distributions import t_critical
from proctor.stats.sequential import MIXTURE, PRIOR, ConfidenceSequence, boundary

Draw = Callable[[Random], float]


def test_a_sequence_reaches_further_than_a_single_look() -> None:
    reaches = [boundary(n, 0.95) for n in (20, 50, 100, 200, 1000, 5000)]

    assert all(reach > t_critical(0.95, n - 1) for n, reach in zip((20, 50, 100, 200), reaches, strict=False))
    assert reaches == pytest.approx([5.697, 3.482, 3.157, 3.067, 3.160, 3.371], abs=0.001)


def test_below_fifteen_tasks_nothing_is_claimed() -> None:
    sequence = ConfidenceSequence()
    for _ in range(12):
        sequence.add(1.0)

    assert sequence.halfwidth == inf
    assert sequence.interval is None


def test_the_half_width_is_that_of_the_formula() -> None:
    values = [0.0, 1.0, 0.5, 0.25] * 10
    sequence = ConfidenceSequence()
    for value in values:
        sequence.add(value)

    n, mean = len(values), sum(values) / len(values)
    squares = stdev(values) ** 2 * (n - 1) + PRIOR * (mean**2 + (1 - mean) ** 2)
    mixed = 1 + n * MIXTURE
    ratio = (mixed / 0.05**2) ** (1 / n)
    expected = sqrt(squares / n) / sqrt(n) * sqrt((n - 1) * (ratio - 1) / (1 - ratio / mixed))
    assert sequence.halfwidth == pytest.approx(expected)


def test_tasks_that_all_passed_still_leave_room_for_failures() -> None:
    sequence = ConfidenceSequence()
    for _ in range(100):
        sequence.add(1.0)

    assert sequence.interval is not None
    assert sequence.interval.low < 1 - 3 / 100  # the rule of three, for one look


@given(st.lists(st.floats(-5, 5), min_size=20, max_size=60))
def test_the_interval_is_around_the_mean(values: list[float]) -> None:
    sequence = ConfidenceSequence()
    for value in values:
        sequence.add(value)

    assert sequence.mean == pytest.approx(sum(values) / len(values), abs=1e-9)
    assert sequence.interval is not None
    assert sequence.interval.low <= sequence.mean <= sequence.interval.high


# --- its error rate, by simulation


@dataclass(frozen=True)
class Population:
    """Task means, or differences of task means, and the truth about them."""

    draw: Draw
    truth: float
    low: float = 0.0


def passes(rollouts: int, rate: Draw) -> Draw:
    """The share of a task's rollouts that pass, where the rate differs from task to task."""

    def draw(random: Random) -> float:
        chance = rate(random)
        return sum(random.random() < chance for _ in range(rollouts)) / rollouts

    return draw


def coin(chance: float) -> Draw:
    return passes(1, lambda _: chance)


def difference(chance: float) -> Draw:
    return lambda random: float(random.random() < chance) - float(random.random() < chance)


POPULATIONS = {
    "0/1, mixed rates": Population(passes(1, Random.random), 0.5),
    "0/1, mixed rates, 4 rollouts": Population(passes(4, Random.random), 0.5),
    "rare successes": Population(passes(1, lambda random: random.betavariate(0.5, 9.5)), 0.05),
    "2 % pass": Population(coin(0.02), 0.02),
    "90 % pass": Population(coin(0.9), 0.9),
    "exponential": Population(lambda random: random.expovariate(1.0), 1.0),
    "lognormal": Population(lambda random: random.lognormvariate(0, 1), exp(0.5)),
    "normal": Population(lambda random: random.gauss(0, 1), 0.0),
    "two samples of one model": Population(difference(0.5), 0.0, low=-1.0),
    "two samples of one good model": Population(difference(0.97), 0.0, low=-1.0),
}


def share_that_ever_misses(population: Population, runs: int, tasks: int) -> float:
    """The share of runs in which the sequence leaves out the truth at any look, one after every task."""
    missed = 0
    reaches = [boundary(n, 0.95) for n in range(tasks + 1)]
    for run in range(runs):
        random, sequence = Random(run), ConfidenceSequence(low=population.low)
        for n in range(1, tasks + 1):
            sequence.add(population.draw(random))
            distance = abs(sequence.mean - population.truth)
            extremes = (sequence.low - sequence.mean) ** 2 + (sequence.high - sequence.mean) ** 2
            # halfwidth, with the boundaries computed once
            if distance * n > reaches[n] * sqrt(sequence.squares + PRIOR * extremes):
                missed += 1
                break
    return missed / runs


@pytest.mark.parametrize("name", ["2 % pass", "exponential", "two samples of one model"])
def test_looking_after_every_task_misses_about_as_seldom_as_promised(name: str) -> None:
    assert share_that_ever_misses(POPULATIONS[name], runs=150, tasks=200) <= 0.05 + 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", POPULATIONS)
def test_looking_after_every_task_misses_as_seldom_as_promised(name: str) -> None:
    assert share_that_ever_misses(POPULATIONS[name], runs=2000, tasks=1000) <= 0.05
