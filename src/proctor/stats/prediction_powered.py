"""The mean that people would have given, from a judge's scores of everything and people's scores of a sample.

Prediction-powered inference (Angelopoulos and others, 2023): the judge's mean over all rollouts, corrected by
how far it was off where people looked, with the uncertainty of that correction in the interval. The weight of
the judge is chosen from the data, so that a useless judge costs nothing. Tasks are the unit, as everywhere.
Knows nothing of runs or of who judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from proctor.stats.distributions import t_critical
from proctor.stats.interval import Interval
from proctor.stats.samples import ZERO_ONE

FEW_LABELLED = 10
"""With labels in fewer tasks, no interval is claimed."""
JudgedRollout = tuple[float, float | None]
"""The judge's score, and people's where they gave one."""
JudgedTask = Sequence[JudgedRollout]


@dataclass(frozen=True)
class CorrectedMean:
    """A mean as people would score, estimated with a judge's help."""

    mean: float | None
    se: float | None
    interval: Interval | None
    judge_mean: float | None
    """What the judge says, uncorrected."""
    people_mean: float | None
    """What people say about the rollouts they scored."""
    weight: float
    """How much the judge's scores count: 1 is in full, 0 not at all."""
    labelled: int
    labelled_tasks: int


@dataclass(frozen=True)
class TaskSums:
    """What one task adds to the sums that the estimate is made of; rollouts weigh 1 / those of their task."""

    judge: float
    labelled: float
    """Weight of its labelled rollouts."""
    labelled_judge: float
    labelled_people: float


def prediction_powered_mean(tasks: Sequence[JudgedTask], level: float = 0.95) -> CorrectedMean:
    """The mean over tasks as people would score it.

    The labelled rollouts must be a random sample of all. Where judge and people say 0 or 1, the interval is
    computed with two more labels that disagree, one in each direction: from few labels without any
    disagreement it would otherwise be too narrow.
    """
    scored = [task for task in tasks if task]
    sums = [_sum_task(task) for task in scored]
    labelled = [(judge, people) for task in scored for judge, people in task if people is not None]
    in_tasks = sum(each.labelled > 0 for each in sums)
    if not labelled:
        judge_mean = fsum(each.judge for each in sums) / len(sums) if sums else None
        return CorrectedMean(None, None, None, judge_mean, None, 0.0, 0, 0)
    weight = _judge_weight(scored, labelled)
    mean = _estimate(_add(sums), len(sums), weight)
    se, interval = None, None
    if in_tasks >= FEW_LABELLED:
        is_binary = ZERO_ONE.issuperset(value for pair in labelled for value in pair)
        padded = [*sums, *_disagreements(_add(sums).labelled / len(labelled))] if is_binary else sums
        center, se = _jackknife(padded, weight)
        if se > 0:
            reach = t_critical(level, in_tasks - 1) * se
            low, high = center - reach, center + reach
            if is_binary:
                low, high = max(0.0, low), min(1.0, high)
            interval = Interval(low, high, "prediction-powered", level)
    total = _add(sums)
    return CorrectedMean(
        mean=mean,
        se=se or None,
        interval=interval,
        judge_mean=total.judge / len(sums),
        people_mean=total.labelled_people / total.labelled,
        weight=weight,
        labelled=len(labelled),
        labelled_tasks=in_tasks,
    )


def _disagreements(weight: float) -> tuple[TaskSums, TaskSums]:
    """A task that only the judge passes and one that only people pass, each with a label of usual weight."""
    return TaskSums(1.0, weight, weight, 0.0), TaskSums(0.0, weight, 0.0, weight)


def _judge_weight(tasks: Sequence[JudgedTask], labelled: Sequence[tuple[float, float]]) -> float:
    """The slope of people's scores on the judge's, which makes the variance least; from 0 to 1."""
    n = len(labelled)
    every = [judge for task in tasks for judge, _ in task]
    if n < 2 or len(every) < 2:
        return 0.0
    judge_mean = fsum(judge for judge, _ in labelled) / n
    people_mean = fsum(people for _, people in labelled) / n
    covariance = fsum((judge - judge_mean) * (people - people_mean) for judge, people in labelled) / n
    center = fsum(every) / len(every)
    spread = fsum((judge - center) ** 2 for judge in every) / (len(every) - 1)
    return min(1.0, max(0.0, covariance / spread)) if spread > 0 else 0.0


def _sum_task(task: JudgedTask) -> TaskSums:
    share = 1 / len(task)
    labelled = [(judge, people) for judge, people in task if people is not None]
    return TaskSums(
        judge=fsum(judge for judge, _ in task) * share,
        labelled=len(labelled) * share,
        labelled_judge=fsum(judge for judge, _ in labelled) * share,
        labelled_people=fsum(people for _, people in labelled) * share,
    )


def _add(sums: Sequence[TaskSums]) -> TaskSums:
    return TaskSums(
        fsum(each.judge for each in sums),
        fsum(each.labelled for each in sums),
        fsum(each.labelled_judge for each in sums),
        fsum(each.labelled_people for each in sums),
    )


def _estimate(total: TaskSums, tasks: int, weight: float) -> float:
    judge, labelled_judge = total.judge / tasks, total.labelled_judge / total.labelled
    return total.labelled_people / total.labelled + weight * (judge - labelled_judge)


def _jackknife(sums: Sequence[TaskSums], weight: float) -> tuple[float, float]:
    """The estimate and its standard error, from leaving out one task at a time."""
    total, n = _add(sums), len(sums)
    without = [
        _estimate(
            TaskSums(
                total.judge - each.judge,
                total.labelled - each.labelled,
                total.labelled_judge - each.labelled_judge,
                total.labelled_people - each.labelled_people,
            ),
            n - 1,
            weight,
        )
        for each in sums
    ]
    center = fsum(without) / n
    se = sqrt((n - 1) / n * fsum((each - center) ** 2 for each in without))
    return _estimate(total, n, weight), se
