"""A gate's policy: what a run must show before it may pass. Read from a TOML file; knows nothing of runs.

min_coverage = 0.95

[[rules]]
measure = "reward"
max_drop = 0.02

[[rules]]
measure = "cost_usd"
at_most = 5.0
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from proctor.config.toml_file import FileProblems, TomlFile, describe_value
from proctor.errors import did_you_mean
from proctor.rollout import is_score

RUN_MEASURES = {
    "cost_usd": "what the run cost in dollars",
    "cost_usd_per_rollout": "what one finished rollout cost in dollars, on average",
    "seconds_median": "the median duration of a rollout",
    "seconds_p90": "the duration that 90% of rollouts stay within",
    "seconds_max": "the longest rollout",
    "output_tokens_per_rollout": "tokens that the model wrote per rollout, on average",
    "errors": "rollouts that ended without a score",
}
"""Measures of a run as a whole: numbers without an interval."""
PASS_MEASURE = re.compile(r"pass([@^])([1-9]\d*)")
LIMITS = ("at_least", "at_most", "max_drop", "max_rise", "no_regression")
AGAINST_BASELINE = ("max_drop", "max_rise", "no_regression")
AMOUNTS = ("at_least", "at_most", "max_drop", "max_rise")
DECIDED_BY = ("interval", "mean")
RANGES = {"min_coverage": (0, 1), "level": (0.5, 0.9999)}


class GateRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition on one measure; a measure with several conditions has several rules."""

    measure: str
    """`reward`, the name of a metric, `pass@4`, `pass^4`, or a measure of the run such as `cost_usd`."""
    at_least: float | None = None
    at_most: float | None = None
    max_drop: float | None = None
    """The largest drop against the baseline that is allowed; that it is smaller must be shown."""
    max_rise: float | None = None
    """The same for a measure that should stay low."""
    no_regression: bool = False
    """Fail only if the candidate is shown to be worse."""
    decide_by: Literal["interval", "mean"] = "interval"
    """Whether `at_least` and `at_most` must hold for the whole interval, or for the mean alone."""
    environment: str | None = None
    """Only for this environment of a suite."""

    @property
    def limits(self) -> list[str]:
        """The conditions it names; exactly one in a valid rule."""
        given = {name: getattr(self, name) for name in LIMITS}
        return [name for name, limit in given.items() if limit is not None and limit is not False]

    @property
    def needs_baseline(self) -> bool:
        return self.no_regression or self.max_drop is not None or self.max_rise is not None

    @property
    def is_of_run(self) -> bool:
        return self.measure in RUN_MEASURES

    @property
    def pass_measure(self) -> tuple[str, int] | None:
        """Of `pass@4`, the sign and the number of tries."""
        found = PASS_MEASURE.fullmatch(self.measure)
        return None if found is None else (found[1], int(found[2]))


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a run must show."""

    rules: tuple[GateRule, ...]
    min_coverage: float | None = None
    """Share of the rollouts that must be scored; default: what the run was started with."""
    min_tasks: int = 1
    """Fewer scored tasks than this decide nothing."""
    level: float = 0.95
    same_tasks: bool = False
    """Decide nothing if the baseline's tasks differ in content, or some are missing."""


def parse_policy(file: TomlFile) -> GatePolicy:
    """The policy in a file; report every problem with its line."""
    problems = FileProblems(file)
    data = dict(file.data)
    rules = data.pop("rules", [])
    for name, value in data.items():
        if problem := _describe_setting_problem(name, value):
            problems.add((name,), problem)
    if not isinstance(rules, list) or not rules:
        problems.add(("rules",), "a policy needs at least one [[rules]] table.")
        rules = []
    parsed = [_parse_rule(rule, ("rules", number), problems) for number, rule in enumerate(rules)]
    problems.raise_any()
    return msgspec.convert({**data, "rules": parsed}, GatePolicy)


def _describe_setting_problem(name: str, value: Any) -> str:
    """What is wrong with one setting of the whole policy."""
    got = f"got {describe_value(value)}."
    if name not in GatePolicy.__struct_fields__:
        return f"there is no {name!r}{did_you_mean(name, GatePolicy.__struct_fields__)}"
    if name in RANGES:
        low, high = RANGES[name]
        return (
            ""
            if _is_number(value) and low <= value <= high
            else f"{name} lies between {low} and {high}; {got}"
        )
    if name == "min_tasks":
        return "" if type(value) is int and value >= 1 else f"{name} is a whole number from 1 up; {got}"
    return "" if isinstance(value, bool) else f"{name} is true or false; {got}"


def _parse_rule(rule: Any, where: tuple[str | int, ...], problems: FileProblems) -> GateRule | None:
    if not isinstance(rule, dict):
        problems.add(where, f"a rule is a table such as [[rules]]; got {describe_value(rule)}.")
        return None
    before = problems.count
    for name, value in rule.items():
        if problem := _describe_field_problem(name, value):
            problems.add((*where, name), problem)
    if problems.count == before and "measure" not in rule:
        problems.add(where, 'a rule needs a measure, such as measure = "reward".')
    if problems.count > before:
        return None
    parsed = msgspec.convert(rule, GateRule)
    for problem in _find_rule_problems(parsed):
        problems.add(where, problem)
    return parsed


def _describe_field_problem(name: str, value: Any) -> str:
    """What is wrong with one field of a rule, whatever the others are."""
    got = f"got {describe_value(value)}."
    if name not in GateRule.__struct_fields__:
        return f"a rule has no {name!r}{did_you_mean(name, GateRule.__struct_fields__)}"
    if name in AMOUNTS and not _is_number(value):
        return f"{name} is a finite number, such as 0.5; {got}"
    if name in ("max_drop", "max_rise") and value <= 0:
        return (
            f"{name} is a positive difference, such as 0.02; to fail only on a shown loss, use "
            f"no_regression = true."
        )
    if name in ("measure", "environment") and not (isinstance(value, str) and value.strip()):
        return f"{name} is a name; {got}"
    if name == "no_regression" and not isinstance(value, bool):
        return f"{name} is true or false; {got}"
    if name == "decide_by" and value not in DECIDED_BY:
        return f"{name} is {' or '.join(map(repr, DECIDED_BY))}; {got}"
    return ""


def _find_rule_problems(rule: GateRule) -> list[str]:
    found = []
    if len(rule.limits) != 1:
        given = " and ".join(rule.limits) or "none"
        found.append(f"a rule has exactly one of {', '.join(LIMITS)}; this one has {given}.")
    if rule.is_of_run and rule.needs_baseline:
        found.append(f"{rule.measure} is one number per run, so only at_least and at_most apply to it.")
    if rule.pass_measure and rule.needs_baseline:
        found.append(f"{rule.measure} is not compared task by task; only at_least and at_most apply to it.")
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and is_score(value)
