"""Design an evaluation from past runs: how many tasks and rollouts for what you want to show, at what cost.

Past runs tell how much tasks differ, how much rollouts of one task differ, and what a rollout costs. From
these follow the tasks that a precision or a difference needs for each number of rollouts per task, and the
reverse: what an amount of money or of rollouts can show. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Literal

import msgspec

from proctor.comparison.pairing import find_content_problem, pair_tasks, pool_tasks
from proctor.comparison.scores import RunScores
from proctor.report.summary import Summary
from proctor.stats.distributions import t_critical
from proctor.stats.power import PairedDesign
from proctor.stats.sample_size import (
    detectable_with,
    halfwidth_with,
    tasks_for_halfwidth,
    tasks_to_detect,
    variance_range,
)
from proctor.stats.samples import Groups, group_means, is_zero_one, mean_of, variance
from proctor.stats.variance import between_task_variance, within_task_variance

USUAL_ROLLOUTS = (1, 2, 4, 8)
MOST_ROLLOUTS = 10_000
Goal = Literal["halfwidth", "difference", "budget", "rollouts"]


class DesignGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What you want to show, or what you have."""

    kind: Goal
    amount: float
    """Of reward, of dollars, or of rollouts."""
    level: float = 0.95
    power: float = 0.8
    correlation: float = 0.5
    """Between the task means of two models, where no second run tells it."""
    most_tasks: int | None = None
    """There are no more."""
    rollouts: tuple[int, ...] = ()
    """Rollouts per task to look at; the usual ones if empty."""


class RolloutCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout took in past runs, on average; None if unknown."""

    usd: float | None = None
    seconds: float | None = None
    tokens: float | None = None


def measure_cost(summaries: Sequence[Summary]) -> RolloutCost:
    """What a rollout took in these runs, on average."""
    finished = sum(summary.finished for summary in summaries)
    if not finished:
        return RolloutCost()
    played = [summary for summary in summaries if summary.finished]
    costs = [summary.cost_usd for summary in played if summary.cost_usd is not None]
    tokens = sum(summary.usage.input_tokens + summary.usage.output_tokens for summary in played)
    return RolloutCost(
        usd=sum(costs) / finished if len(costs) == len(played) else None, tokens=tokens / finished
    )


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """What past runs say about the variance."""

    runs: tuple[str, ...]
    against: tuple[str, ...]
    """Runs of the other model, if given."""
    tasks: int
    rollouts: int
    mean: float
    zero_one: bool
    between: float | None
    """The variance between tasks; None where no task has two rollouts."""
    within: float | None
    """The variance between rollouts of one task."""
    task_variance: float
    """The variance of task means, with as many rollouts as there were."""
    difference_between: float
    """The variance between tasks of the true difference of two models."""
    difference_within: float | None
    """The sum of both models' variances within tasks."""
    cost: RolloutCost


class DesignRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way to do it."""

    rollouts_per_task: int
    tasks: int
    fewest_tasks: int | None
    """Of the 80 % range that the pilot leaves for the variance, what the smallest variance needs."""
    most_tasks: int | None
    """And what the largest needs."""
    rollouts: int
    cost_usd: float | None
    halfwidth: float
    smallest_difference: float
    """That a comparison of two such runs finds with the stated power."""
    enough_tasks: bool
    """Whether there are that many tasks."""


class EvaluationDesign(msgspec.Struct, frozen=True, kw_only=True):
    """The ways to reach a goal; `--json` prints it unchanged."""

    goal: DesignGoal
    pilot: Pilot
    rows: tuple[DesignRow, ...]
    cheapest: int | None
    """The place of the row with the fewest rollouts among those that there are tasks for."""
    twice_the_tasks: float
    """The share by which twice the tasks narrow the interval of the pilot."""
    twice_the_rollouts: float | None
    """The share by which twice the rollouts per task do."""


def design_evaluation(
    runs: Sequence[RunScores],
    against: Sequence[RunScores],
    cost: RolloutCost,
    goal: DesignGoal,
) -> EvaluationDesign:
    """Every usual number of rollouts per task, with the tasks that it needs or allows."""
    pilot = read_pilot(runs, against, cost, goal.correlation)
    counts = choose_rollouts(pilot, goal)
    rows = [row for count in counts if (row := _design_row(pilot, goal, count)) is not None]
    possible = [index for index, row in enumerate(rows) if row.enough_tasks]
    if goal.kind in ("halfwidth", "difference"):
        best = min(possible, key=lambda index: rows[index].rollouts, default=None)
    else:
        best = min(possible, key=lambda index: rows[index].halfwidth, default=None)
    return EvaluationDesign(
        goal=goal,
        pilot=pilot,
        rows=tuple(rows),
        cheapest=best,
        twice_the_tasks=1 - sqrt(0.5),
        twice_the_rollouts=_gain_of_rollouts(pilot),
    )


# What past runs say


def read_pilot(
    runs: Sequence[RunScores], against: Sequence[RunScores], cost: RolloutCost, correlation: float
) -> Pilot:
    tasks = [task for task in pool_tasks(runs) if task.rewards]
    groups = [task.rewards for task in tasks]
    if len(groups) < 2:
        raise ValueError("a plan takes a pilot with at least two scored tasks")
    between, within = between_task_variance(groups), within_task_variance(groups)
    spread = variance(group_means(groups))
    paired_between, paired_within = _paired_variance(runs, against, between, within, spread, correlation)
    return Pilot(
        runs=tuple(run.run for run in runs),
        against=tuple(run.run for run in against),
        tasks=len(groups),
        rollouts=sum(map(len, groups)),
        mean=mean_of(group_means(groups)),
        zero_one=is_zero_one(groups),
        between=between,
        within=within,
        task_variance=spread,
        difference_between=paired_between,
        difference_within=paired_within,
        cost=cost,
    )


def _paired_variance(
    runs: Sequence[RunScores],
    against: Sequence[RunScores],
    between: float | None,
    within: float | None,
    spread: float,
    correlation: float,
) -> tuple[float, float | None]:
    """The variance of a difference, between and within tasks: measured if there is another run."""
    if not against:
        if between is None or within is None:  # then no correlation is known either: the safe side
            return 2 * spread, None
        return 2 * between * (1 - correlation), 2 * within
    if problem := find_content_problem(against, runs):
        raise ValueError(problem)
    pairs, _ = pair_tasks(pool_tasks(against), pool_tasks(runs))
    if len(pairs) < 2:
        raise ValueError("the two runs have fewer than two scored tasks in common")
    ours, theirs = [pair.candidate.rewards for pair in pairs], [pair.baseline.rewards for pair in pairs]
    return _measured_difference(ours, theirs)


def _measured_difference(ours: Groups, theirs: Groups) -> tuple[float, float | None]:
    differences = [x - y for x, y in zip(group_means(ours), group_means(theirs), strict=True)]
    spread = variance(differences)
    inside = [within_task_variance(side) for side in (ours, theirs)]
    if inside[0] is None or inside[1] is None:
        return spread, None
    noise = sum(
        each * mean_of([1 / len(group) for group in side])
        for each, side in zip(inside, (ours, theirs), strict=True)
        if each is not None
    )
    return max(0.0, spread - noise), inside[0] + inside[1]


# The rows


def choose_rollouts(pilot: Pilot, goal: DesignGoal) -> list[int]:
    """Rollouts per task to look at. Without repeats in the pilot, only the pilot's own number is known."""
    if pilot.within is None:
        return [1]
    own = max(1, round(pilot.rollouts / pilot.tasks))
    counts = {*(goal.rollouts or (*USUAL_ROLLOUTS, own))}
    if not goal.rollouts and goal.most_tasks is not None and (count := _rollouts_for(pilot, goal)):
        counts.add(count)
    return sorted(counts)


def _rollouts_for(pilot: Pilot, goal: DesignGoal) -> int | None:
    """The rollouts per task with which the tasks that there are suffice for a precision, if any do."""
    n = goal.most_tasks
    if goal.kind != "halfwidth" or n is None or n < 2 or pilot.between is None or pilot.within is None:
        return None
    left = n * (goal.amount / t_critical(goal.level, n - 1)) ** 2 - pilot.between
    if left <= 0:
        return None
    count = max(1, ceil(pilot.within / left))
    return count if count <= MOST_ROLLOUTS else None


def _design_row(pilot: Pilot, goal: DesignGoal, rollouts: int) -> DesignRow | None:
    """None where not even two tasks can be afforded."""
    spread, paired = _variance_of(pilot, rollouts), _paired_design(pilot, goal, rollouts)
    step = 1 / rollouts if pilot.zero_one else 0.0
    low = high = None
    if goal.kind == "halfwidth":
        tasks, low, high = (
            tasks_for_halfwidth(goal.amount, each, goal.level) for each in _range(pilot, spread)
        )
    elif goal.kind == "difference":
        tasks, low, high = (
            tasks_to_detect(goal.amount, _scale_design(paired, each), step)
            for each in _range(pilot, paired.variance)
        )
    else:
        tasks = _affordable(pilot, goal, rollouts)
        if goal.most_tasks is not None:
            tasks = min(tasks, goal.most_tasks)
    if tasks < 2:
        return None
    return DesignRow(
        rollouts_per_task=rollouts,
        tasks=tasks,
        fewest_tasks=low,
        most_tasks=high,
        rollouts=tasks * rollouts,
        cost_usd=None if pilot.cost.usd is None else tasks * rollouts * pilot.cost.usd,
        halfwidth=halfwidth_with(tasks, spread, goal.level),
        smallest_difference=detectable_with(tasks, paired, step),
        enough_tasks=goal.most_tasks is None or tasks <= goal.most_tasks,
    )


def _range(pilot: Pilot, spread: float) -> tuple[float, float, float]:
    return (spread, *variance_range(spread, pilot.tasks - 1))


def _variance_of(pilot: Pilot, rollouts: int) -> float:
    """Of task means over this many rollouts."""
    if pilot.between is None or pilot.within is None:
        return pilot.task_variance
    return pilot.between + pilot.within / rollouts


def _paired_design(pilot: Pilot, goal: DesignGoal, rollouts: int) -> PairedDesign:
    return PairedDesign(
        pilot.difference_between,
        variance_a=pilot.difference_within or 0.0,
        rollouts_a=rollouts,
        alpha=round(1 - goal.level, 12),
        power=goal.power,
    )


def _scale_design(design: PairedDesign, spread: float) -> PairedDesign:
    return PairedDesign(spread, alpha=design.alpha, power=design.power)


def _affordable(pilot: Pilot, goal: DesignGoal, rollouts: int) -> int:
    if goal.kind == "rollouts":
        return int(goal.amount) // rollouts
    if not pilot.cost.usd:
        known = "is not known" if pilot.cost.usd is None else "is nothing"
        raise ValueError(f"what a rollout costs {known}, so a budget limits nothing; plan for --rollouts")
    return int(goal.amount / pilot.cost.usd / rollouts)


def _gain_of_rollouts(pilot: Pilot) -> float | None:
    if pilot.between is None or pilot.within is None:
        return None
    own = pilot.rollouts / pilot.tasks
    now, then = pilot.between + pilot.within / own, pilot.between + pilot.within / (2 * own)
    return 1 - sqrt(then / now) if now else 0.0
