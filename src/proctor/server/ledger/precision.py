"""How precise a run of so many tasks and rollouts will be: from earlier rewards, else the worst case.

Uses the formulas of `proctor eval plan`. Knows nothing of money or of HTTP.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from proctor.server.db.tables import rollouts, runs
from proctor.server.ledger.past_rollouts import PlannedRun, newest_seen
from proctor.stats.proportion import clopper_pearson
from proctor.stats.sample_size import halfwidth_with
from proctor.stats.samples import Groups, all_agree, group_means, is_zero_one, mean_of, variance
from proctor.stats.variance import between_task_variance, within_task_variance

FEWEST_TASKS = 2
WORST_VARIANCE = 0.25
"""Of rewards between 0 and 1: half of all tasks fail, and rollouts of one task agree."""
WIDEST = 0.5
"""Of rewards between 0 and 1: from the one to the other."""


class Precision(msgspec.Struct, frozen=True):
    """Half the width of the interval of a mean, and where it is known from."""

    basis: str
    halfwidth: float | None = None
    is_bound: bool = False


def predict_precision(
    connection: Connection, planned: PlannedRun, tasks: int | None, rollouts_per_task: int
) -> Precision:
    if tasks is None:
        return Precision("The number of tasks is unknown: this version was not checked yet.")
    if tasks < FEWEST_TASKS or rollouts_per_task < 1:
        return Precision("One task gives no interval; play two or more.")
    groups = read_rewards(connection, planned)
    if len(groups) < FEWEST_TASKS:
        return Precision(
            "The worst case for rewards between 0 and 1: no earlier run tells how much they differ.",
            min(WIDEST, halfwidth_with(tasks, WORST_VARIANCE)),
            is_bound=True,
        )
    known = f"{len(groups)} tasks that {planned.model} played before"
    if all_agree(group_means(groups)):
        return predict_from_agreement(groups, tasks, known)
    halfwidth = halfwidth_with(tasks, spread_of(groups, rollouts_per_task))
    if all(0 <= reward <= 1 for group in groups for reward in group):
        halfwidth = min(WIDEST, halfwidth)
    return Precision(f"From the rewards of {known}.", halfwidth)


def read_rewards(connection: Connection, planned: PlannedRun) -> list[list[float]]:
    """Earlier rewards of the same model, by task; the newest."""
    query = (
        select(rollouts.c.task, rollouts.c.reward)
        .join(runs, runs.c.id == rollouts.c.run_id)
        .where(rollouts.c.reward.is_not(None), rollouts.c.outcome != "excluded")
    )
    found: dict[str, list[float]] = {}
    for row in connection.execute(newest_seen(query, planned, planned.model)):
        found.setdefault(row.task, []).append(row.reward)
    return list(found.values())


def predict_from_agreement(groups: Groups, tasks: int, known: str) -> Precision:
    """Rewards that never differed do not say that they never will."""
    if not is_zero_one(groups):
        return Precision(f"All of {known} had the same reward, so their spread is unknown.")
    interval = clopper_pearson(mean_of(group_means(groups)) * tasks, tasks)
    return Precision(
        f"All of {known} had the same reward; exact interval if these do too.",
        (interval.high - interval.low) / 2,
    )


def spread_of(groups: Groups, rollouts_per_task: int) -> float:
    """The variance of task means over so many rollouts."""
    between, within = between_task_variance(groups), within_task_variance(groups)
    if between is None or within is None:
        return variance(group_means(groups))
    return between + within / rollouts_per_task
