"""One side of a comparison in short: its runs, its mean, and how much its runs differ among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

import msgspec

from proctor.comparison.pairing import PooledTask
from proctor.comparison.scores import RunScores
from proctor.stats.mean import MeanEstimate, headline_estimate
from proctor.stats.samples import group_means, mean_of, variance
from proctor.stats.variance import within_task_variance


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a side."""

    run: str
    environment: str
    model: str
    label: str
    tasks: int
    scored: int
    planned: int | None
    coverage: float | None
    mean: float | None


class RunVariation(msgspec.Struct, frozen=True, kw_only=True):
    """How much the means of several runs of one recipe differ.

    The runs share their tasks, so the choice of tasks plays no part: `expected_sd` is what the luck of
    rollouts alone would give. Well above it, something else differs between the runs.
    """

    runs: int
    sd: float
    """Of the runs' means."""
    expected_sd: float | None
    """None if no task has two rollouts in one run."""


class SideSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One side: its runs, pooled."""

    runs: tuple[ComparedRun, ...]
    reward: MeanEstimate
    """Over all its tasks, whether or not the other side has them: what the run's report says."""
    variation: RunVariation | None


def summarize_side(runs: Sequence[RunScores], tasks: Sequence[PooledTask]) -> SideSummary:
    return SideSummary(
        runs=tuple(map(summarize_run, runs)),
        reward=headline_estimate([task.rewards for task in tasks], runs[0].seed if runs else 0),
        variation=measure_variation(runs),
    )


def summarize_run(run: RunScores) -> ComparedRun:
    means = group_means([task.rewards for task in run.tasks if task.rewards])
    return ComparedRun(
        run=run.run,
        environment=run.environment,
        model=run.model,
        label=run.label,
        tasks=len(run.tasks),
        scored=run.scored,
        planned=run.planned,
        coverage=run.coverage,
        mean=mean_of(means) if means else None,
    )


def measure_variation(runs: Sequence[RunScores]) -> RunVariation | None:
    """Over the tasks that every run scored; None for fewer than two runs, or without a common task."""
    scored = [{(task.member, task.id): task.rewards for task in run.tasks if task.rewards} for run in runs]
    common = set.intersection(*map(set, scored)) if len(runs) > 1 else set()
    if not common:
        return None
    keys = sorted(common, key=str)
    means = [mean_of(group_means([tasks[key] for key in keys])) for tasks in scored]
    return RunVariation(runs=len(runs), sd=sqrt(variance(means)), expected_sd=expect_sd(scored, keys))


def expect_sd(
    scored: Sequence[dict[tuple[str, int | str], tuple[float, ...]]], keys: Sequence[object]
) -> float | None:
    """The spread of run means that rollouts of equal runs would have."""
    groups = [tasks[key] for tasks in scored for key in keys]  # type: ignore[index]
    within = within_task_variance(groups)
    if within is None:
        return None
    return sqrt(within * fsum(1 / len(group) for group in groups) / len(scored)) / len(keys)
