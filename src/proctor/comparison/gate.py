"""Decide whether a run may pass: a policy's rules → PASS, FAIL or INCONCLUSIVE.

FAIL means that a violation was shown; INCONCLUSIVE, that the data cannot tell. Pure: takes scores and
summaries, knows nothing of files or CI systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from proctor.comparison.compare import (
    REWARD,
    Comparison,
    compare_chosen,
    compare_runs,
    find_run_problem,
)
from proctor.comparison.design import DesignGoal
from proctor.comparison.gate_policy import AGAINST_BASELINE, GatePolicy, GateRule
from proctor.comparison.measure import ComparisonOptions, MeasureComparison
from proctor.comparison.pairing import pool_tasks
from proctor.comparison.scores import RunScores
from proctor.comparison.wording import count_tasks, describe_difference, describe_p
from proctor.report.summary import Summary
from proctor.stats.mean import MeanEstimate, headline_estimate
from proctor.stats.pass_k import pass_at_k, pass_hat_k

GateOutcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Finding = tuple[GateOutcome, str]
LIMIT_WORDS = {
    "at_least": "at least",
    "at_most": "at most",
    "max_drop": "drop at most",
    "max_rise": "rise at most",
    "no_regression": "no regression",
}


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule found."""

    rule: str
    """In words, such as `reward: drop at most 0.02`."""
    outcome: GateOutcome
    text: str
    """What was measured, and why that decides."""
    goal: DesignGoal | None = None
    """Of an open question about the reward: what a plan for more tasks should aim at."""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate decided about one environment's runs."""

    environment: str
    runs: tuple[str, ...]
    baseline: tuple[str, ...]
    outcome: GateOutcome
    rules: tuple[RuleResult, ...]
    comparison: Comparison | None


class GateInput(msgspec.Struct, frozen=True, kw_only=True):
    """One environment's runs: the candidate's, their summaries, and the baseline's if there is one."""

    candidate: Sequence[RunScores]
    summaries: Sequence[Summary]
    baseline: Sequence[RunScores] = ()


def decide_gate(policy: GatePolicy, given: GateInput) -> GateResult:
    """Check every rule that applies to this environment."""
    environment = given.candidate[0].environment
    rules = [rule for rule in policy.rules if rule.environment in (None, environment)]
    options = ComparisonOptions(level=policy.level, min_coverage=policy.min_coverage)
    against = [rule for rule in rules if rule.needs_baseline]
    compared = compare_rules(against, given, options) if given.baseline else []
    measured = dict(zip(map(id, against), compared, strict=False))
    blocked = find_gate_problem(policy, given, options)
    results = []
    for rule in rules:
        outcome, text = check_rule(rule, given, measured.get(id(rule)), blocked, policy.level)
        goal = find_goal(rule, given, policy.level) if outcome == "INCONCLUSIVE" else None
        results.append(RuleResult(rule=describe_rule(rule), outcome=outcome, text=text, goal=goal))
    return GateResult(
        environment=environment,
        runs=tuple(run.run for run in given.candidate),
        baseline=tuple(run.run for run in given.baseline),
        outcome=combine_outcomes([result.outcome for result in results]),
        rules=tuple(results),
        comparison=compare_runs(given.baseline, given.candidate, options) if given.baseline else None,
    )


def combine_outcomes(outcomes: Sequence[GateOutcome]) -> GateOutcome:
    """FAIL if anything failed; else INCONCLUSIVE if anything is open, or nothing was checked."""
    for worst in ("FAIL", "INCONCLUSIVE"):
        if worst in outcomes:
            return worst
    return "PASS" if outcomes else "INCONCLUSIVE"


def compare_rules(
    rules: Sequence[GateRule], given: GateInput, options: ComparisonOptions
) -> list[MeasureComparison]:
    """The measure of each rule against the baseline, p-values adjusted for the number of rules."""
    asked = [(rule.measure, rule.max_drop or rule.max_rise, rule.max_rise is not None) for rule in rules]
    return compare_chosen(given.baseline, given.candidate, asked, options)


def find_gate_problem(policy: GatePolicy, given: GateInput, options: ComparisonOptions) -> str:
    """Why the scores decide nothing, if they do not."""
    problem = find_run_problem(given.baseline, given.candidate, options)
    tasks = sum(bool(task.rewards) for task in pool_tasks(given.candidate))
    if not problem and tasks < policy.min_tasks:
        problem = f"{count_tasks(tasks)} scored, and the policy asks for {policy.min_tasks:,}"
    if not problem and policy.same_tasks and given.baseline:
        pairing = compare_runs(given.baseline, given.candidate, options).pairing
        if pairing.paired_by_id or pairing.only_baseline.count or pairing.only_candidate.count:
            problem = "the tasks are not those of the baseline, and the policy asks for the same"
    return problem


def check_rule(
    rule: GateRule, given: GateInput, measured: MeasureComparison | None, blocked: str, level: float
) -> Finding:
    if rule.is_of_run:
        return check_number(rule, given.summaries)
    if blocked:
        return "INCONCLUSIVE", blocked
    if not rule.needs_baseline:
        return check_estimate(rule, estimate_measure(rule, given.candidate, level))
    if measured is None:
        return "INCONCLUSIVE", "there is no baseline; name one with --baseline"
    return check_no_regression(measured) if rule.no_regression else check_drop(rule, measured)


def check_number(rule: GateRule, summaries: Sequence[Summary]) -> Finding:
    """A number of the run as a whole, or of the worst of several runs."""
    numbers = [read_number(rule.measure, summary) for summary in summaries]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or not known:
        return "INCONCLUSIVE", f"{rule.measure} is not known for this run"
    if rule.at_least is not None:
        return "PASS" if min(known) >= rule.at_least else "FAIL", f"{min(known):.6g}"
    assert rule.at_most is not None
    return "PASS" if max(known) <= rule.at_most else "FAIL", f"{max(known):.6g}"


def read_number(measure: str, summary: Summary) -> float | None:
    finished = summary.finished
    seconds = summary.seconds
    match measure:
        case "cost_usd":
            return summary.cost_usd
        case "cost_usd_per_rollout":
            return None if summary.cost_usd is None or not finished else summary.cost_usd / finished
        case "seconds_median":
            return None if seconds is None else seconds.median
        case "seconds_p90":
            return None if seconds is None else seconds.p90
        case "seconds_max":
            return None if seconds is None else seconds.longest
        case "output_tokens_per_rollout":
            return summary.usage.output_tokens / finished if finished else None
        case "errors":
            return finished - summary.scored - summary.outcomes.get("excluded", 0)
    raise AssertionError(f"{measure} is not a measure of a run")


def check_estimate(rule: GateRule, estimate: MeanEstimate) -> Finding:
    """A mean against a threshold: shown by its interval, or by the mean alone if the rule says so."""
    if estimate.mean is None:
        what = "no task has enough scored rollouts" if rule.pass_measure else "no rollout has a value"
        return "INCONCLUSIVE", f"{what} for {rule.measure!r}"
    interval = estimate.interval
    shown = f"{estimate.mean:.4g} over {count_tasks(estimate.n)}"
    if rule.decide_by == "mean":
        low = high = estimate.mean
    elif interval is None:
        return "INCONCLUSIVE", f'{shown}, too few or too alike for an interval; decide_by = "mean" ignores it'
    else:
        low, high = interval.low, interval.high
        shown = f"{shown}, {interval.level * 100:g}% interval {low:.4g} to {high:.4g}"
    if rule.at_least is not None:
        return ("PASS" if low >= rule.at_least else "FAIL" if high < rule.at_least else "INCONCLUSIVE"), shown
    assert rule.at_most is not None
    return ("PASS" if high <= rule.at_most else "FAIL" if low > rule.at_most else "INCONCLUSIVE"), shown


def find_goal(rule: GateRule, given: GateInput, level: float) -> DesignGoal | None:
    """What would decide a rule that is open: an interval that does not reach the threshold, or a comparison
    that finds the drop that is allowed. Only rewards can be planned for."""
    if rule.measure != REWARD:
        return None
    if rule.needs_baseline:
        allowed = rule.max_drop or rule.max_rise
        return DesignGoal(kind="difference", amount=allowed, level=level) if allowed else None
    limit = rule.at_least if rule.at_least is not None else rule.at_most
    mean = estimate_measure(rule, given.candidate, level).mean
    if mean is None or limit is None or mean == limit:
        return None
    return DesignGoal(kind="halfwidth", amount=abs(mean - limit), level=level)


def estimate_measure(rule: GateRule, runs: Sequence[RunScores], level: float) -> MeanEstimate:
    tasks = pool_tasks(runs)
    if rule.measure == REWARD:
        return headline_estimate([task.rewards for task in tasks], level)
    if rule.pass_measure is None:
        return headline_estimate([task.values(rule.measure) for task in tasks], level)
    sign, k = rule.pass_measure
    compute = pass_at_k if sign == "@" else pass_hat_k
    threshold = runs[0].pass_threshold
    tries = [(len(task.rewards), sum(reward >= threshold for reward in task.rewards)) for task in tasks]
    return headline_estimate(
        [(value,) for tried, passed in tries if (value := compute(tried, passed, k)) is not None], level
    )


def check_no_regression(measured: MeasureComparison) -> Finding:
    if measured.verdict == "too_little_data":
        return "INCONCLUSIVE", measured.text
    return "FAIL" if measured.verdict in ("worse", "lower") else "PASS", measured.text


def check_drop(rule: GateRule, measured: MeasureComparison) -> Finding:
    """PASS if the change is shown to be smaller than allowed; FAIL if a loss is shown and measures more."""
    equivalence, difference = measured.equivalence, measured.difference
    if measured.verdict == "too_little_data" or equivalence is None or difference is None:
        return "INCONCLUSIVE", measured.text
    seen = turn_sign(measured) if rule.max_rise is not None else measured
    text = f"{describe_difference(seen)} over {count_tasks(measured.n)}"
    p = describe_p(equivalence.p_no_worse)
    if equivalence.verdict in ("equivalent", "no_worse"):
        return "PASS", f"{text}; within what is allowed, {p}"
    is_shown = measured.verdict in ("worse", "lower") and -difference > equivalence.margin
    if equivalence.verdict == "worse" or is_shown:
        return "FAIL", f"{text}; {describe_p(measured.p_adjusted)} for no change"
    return "INCONCLUSIVE", f"{text}; not shown to be within what is allowed, {p}"


def turn_sign(measured: MeasureComparison) -> MeasureComparison:
    """A measure that was compared with its sign turned, as readers know it."""
    interval = measured.interval
    return msgspec.structs.replace(
        measured,
        difference=None if measured.difference is None else -measured.difference,
        interval=None if interval is None else replace(interval, low=-interval.high, high=-interval.low),
    )


def describe_rule(rule: GateRule) -> str:
    (name,) = rule.limits
    against = " against the baseline" if name in AGAINST_BASELINE else ""
    limit = "" if name == "no_regression" else f" {getattr(rule, name):g}"
    return f"{rule.measure}: {LIMIT_WORDS[name]}{limit}{against}"
