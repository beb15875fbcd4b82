"""Runs → Comparison: the tasks of two sides paired, each measure tested, and a verdict.

    comparison = compare_runs([baseline], [candidate], ComparisonOptions(margin=0.02))
    print(comparison.text)

A side is one run or several runs of one recipe. There is no verdict below the minimum coverage. Every reader
of a comparison (the command line, JSON, the API, the dashboard) shows the value made here. Knows nothing of
files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.comparison.measure import (
    ComparisonOptions,
    Equivalence,
    MeasureComparison,
    Verdict,
    compare_measure,
)
from proctor.comparison.pairing import (
    PairingSummary,
    PooledTask,
    TaskPair,
    find_content_problem,
    find_metrics,
    group_by_member,
    pair_tasks,
    pool_tasks,
)
from proctor.comparison.runs import SideSummary, summarize_side
from proctor.comparison.scores import RunScores
from proctor.comparison.tasks import DifferingTasks, TaskDifference, list_task_differences
from proctor.comparison.wording import count_tasks, describe_equivalence, describe_verdict
from proctor.stats.paired import holm

REWARD = "reward"


class SettingDifference(msgspec.Struct, frozen=True):
    """A setting that is not the same on both sides; a side whose runs disagree has several values."""

    name: str
    baseline: tuple[Any, ...]
    candidate: tuple[Any, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a candidate compares with a baseline. `--json` prints it unchanged."""

    baseline: SideSummary
    candidate: SideSummary
    verdict: Verdict
    text: str
    """The verdict in one line."""
    reward: MeasureComparison
    members: tuple[MeasureComparison, ...]
    """The reward on each of several environments that ran as one."""
    metrics: tuple[MeasureComparison, ...]
    equivalence: Equivalence | None
    pairing: PairingSummary
    settings: tuple[SettingDifference, ...]
    tasks: tuple[TaskDifference, ...]
    """Flipped tasks first, then by the size of the difference; ties are counted, not listed."""
    differing_tasks: DifferingTasks
    level: float
    power: float


def compare_runs(
    baseline: Sequence[RunScores],
    candidate: Sequence[RunScores],
    options: ComparisonOptions = ComparisonOptions(),  # noqa: B008
) -> Comparison:
    """Compare two sides, each one run or several of one recipe."""
    return compare_all([(baseline, candidate)], options)[0]


def compare_all(
    pairs: Sequence[tuple[Sequence[RunScores], Sequence[RunScores]]],
    options: ComparisonOptions = ComparisonOptions(),  # noqa: B008
) -> list[Comparison]:
    """Compare several pairs of sides; their p-values are adjusted for each other."""
    measured = [_measure(baseline, candidate, options) for baseline, candidate in pairs]
    problems = [find_run_problem(*pair, options) for pair in pairs]
    kinds: list[Callable[[Comparison], Sequence[MeasureComparison]]] = [
        lambda each: [each.reward],
        lambda each: each.members,
        lambda each: each.metrics,
    ]
    rewards, members, metrics = (
        _decide([kind(each) for each in measured], problems, options) for kind in kinds
    )
    return [
        replace(
            each,
            reward=reward[0],
            members=tuple(member),
            metrics=tuple(metric),
            verdict=reward[0].verdict,
            text=reward[0].text,
            equivalence=reward[0].equivalence,
        )
        for each, reward, member, metric in zip(measured, rewards, members, metrics, strict=True)
    ]


def compare_chosen(
    baseline: Sequence[RunScores],
    candidate: Sequence[RunScores],
    asked: Sequence[tuple[str, float | None, bool]],
    options: ComparisonOptions,
) -> list[MeasureComparison]:
    """Compare the asked measures, each with a margin of its own; p-values are adjusted for each other.

    True marks a measure that should stay low: its sign is flipped, so that a loss is a fall.
    """
    pairs, _ = pair_tasks(pool_tasks(baseline), pool_tasks(candidate))
    measures = []
    for name, margin, turned in asked:
        theirs, ours = _collect_groups(name, pairs)
        if turned:
            theirs, ours = ([[-value for value in group] for group in side] for side in (theirs, ours))
        measures.append(compare_measure(name, theirs, ours, replace(options, margin=margin)))
    return _decide([measures], [find_run_problem(baseline, candidate, options)], options)[0]


def _measure(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores], options: ComparisonOptions
) -> Comparison:
    """Everything but the verdicts."""
    ours, theirs = pool_tasks(candidate), pool_tasks(baseline)
    pairs, pairing = pair_tasks(theirs, ours)
    names = find_metrics(pairs) if options.metrics is None else list(options.metrics)
    reward = _compare_pairs(REWARD, pairs, options)
    threshold = baseline[0].pass_threshold if baseline else 0.5
    tasks, differing = list_task_differences(pairs, threshold, options.most_tasks)
    return Comparison(
        baseline=summarize_side(baseline, theirs),
        candidate=summarize_side(candidate, ours),
        verdict=reward.verdict,
        text="",
        reward=reward,
        members=tuple(
            _compare_pairs(REWARD, group, options, member) for member, group in group_by_member(pairs).items()
        ),
        metrics=tuple(_compare_pairs(name, pairs, options) for name in names),
        equivalence=None,
        pairing=pairing,
        settings=find_differing_settings(baseline, candidate),
        tasks=tasks,
        differing_tasks=differing,
        level=options.level,
        power=options.power,
    )


def _compare_pairs(
    name: str, pairs: Sequence[TaskPair], options: ComparisonOptions, member: str = ""
) -> MeasureComparison:
    theirs, ours = _collect_groups(name, pairs)
    asked = options if name == REWARD else replace(options, margin=None)
    return compare_measure(name, theirs, ours, asked, member)


def _collect_groups(
    name: str, pairs: Sequence[TaskPair]
) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
    """The values of one measure by task, on both sides, where both have any."""

    def values(task: PooledTask) -> tuple[float, ...]:
        return task.rewards if name == REWARD else task.values(name)

    both = [(values(pair.baseline), values(pair.candidate)) for pair in pairs]
    both = [(theirs, ours) for theirs, ours in both if theirs and ours]
    return [each[0] for each in both], [each[1] for each in both]


def _decide(
    groups: Sequence[Sequence[MeasureComparison]], problems: Sequence[str], options: ComparisonOptions
) -> list[list[MeasureComparison]]:
    """Adjust the p-values of all of these for each other, and give each its verdict."""
    tested = [measure.p for group in groups for measure in group if measure.p is not None]
    adjusted = iter(holm(tested))
    return [
        [
            _give_verdict(
                replace(measure, p_adjusted=None if measure.p is None else next(adjusted), tests=len(tested)),
                problem,
                options,
            )
            for measure in group
        ]
        for group, problem in zip(groups, problems, strict=True)
    ]


def _give_verdict(measure: MeasureComparison, problem: str, options: ComparisonOptions) -> MeasureComparison:
    problem = problem or _find_size_problem(measure, options)
    p, difference = measure.p_adjusted, measure.difference
    verdict: Verdict = "no_difference_shown"
    if problem or p is None or difference is None:
        verdict = "too_little_data"
    elif p <= options.alpha:
        good, bad = ("better", "worse") if measure.name == REWARD else ("higher", "lower")
        verdict = good if difference > 0 else bad  # type: ignore[assignment]
    measure = replace(measure, verdict=verdict)
    equivalence = measure.equivalence
    if equivalence is not None:
        if problem:
            equivalence = replace(equivalence, verdict="too_little_data")
        equivalence = replace(equivalence, text=describe_equivalence(equivalence, problem))
    return replace(measure, text=describe_verdict(measure, problem), equivalence=equivalence)


def fewest_tasks(alpha: float) -> int:
    """With fewer tasks, even a win on every one could be luck: half to the power of n, twice."""
    n = 1
    while 2 * 0.5**n > alpha:
        n += 1
    return n


def _find_size_problem(measure: MeasureComparison, options: ComparisonOptions) -> str:
    fewest = fewest_tasks(options.alpha / max(1, measure.tests))
    if measure.n >= fewest:
        return ""
    return f"{count_tasks(measure.n)} scored by both sides; a verdict takes at least {fewest}"


def find_run_problem(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores], options: ComparisonOptions
) -> str:
    """Why no verdict can be given: a run was scored too little, or has other tasks; empty if one can."""
    for run in (*baseline, *candidate):
        least = run.min_coverage if options.min_coverage is None else options.min_coverage
        coverage = run.coverage
        if coverage is None:
            return f"it is not known how many rollouts {run.run} was planned to have, nor its coverage"
        if coverage < least:
            return f"{run.run} scored {coverage:.1%} of its rollouts, and a verdict takes {least:.1%}"
    return find_content_problem(baseline, candidate)


def find_differing_settings(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores]
) -> tuple[SettingDifference, ...]:
    """Settings whose values differ between the sides, or within one."""
    names = {name: None for run in (*baseline, *candidate) for name in run.settings}
    found = []
    for name in names:
        theirs, ours = _collect_values(baseline, name), _collect_values(candidate, name)
        if theirs != ours or len(theirs) > 1:
            found.append(SettingDifference(name, theirs, ours))
    return tuple(found)


def _collect_values(runs: Sequence[RunScores], name: str) -> tuple[Any, ...]:
    """Each value once, in the order of the runs."""
    values: list[Any] = []
    for run in runs:
        value: Any = run.settings.get(name) if isinstance(run.settings, Mapping) else None
        if value not in values:
            values.append(value)
    return tuple(values)
