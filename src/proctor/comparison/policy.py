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
PASS_MEASURE = re.compile(r"pass[@^]\d+")
LIMITS = ("at_least", "at_most", "max_drop", "max_rise", "no_regression")
AGAINST_BASELINE = ("max_drop", "max_rise", "no_regression")


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
        return self.measure in RUN_MEASURES or bool(PASS_MEASURE.fullmatch(self.measure))


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
    for name in data:
        if name not in GatePolicy.__struct_fields__:
            problems.add((name,), f"there is no {name!r}{did_you_mean(name, GatePolicy.__struct_fields__)}")
    if not isinstance(rules, list) or not rules:
        problems.add(("rules",), "a policy needs at least one [[rules]] table.")
        rules = []
    parsed = [_parse_rule(rule, ("rules", number), problems) for number, rule in enumerate(rules)]
    _check_numbers(data, problems)
    problems.raise_any()
    try:
        return msgspec.convert({**data, "rules": [rule for rule in parsed if rule is not None]}, GatePolicy)
    except msgspec.ValidationError as error:
        problems.add((), f"{error}.")
        problems.raise_any()
        raise


def _check_numbers(data: dict[str, Any], problems: FileProblems) -> None:
    for name, low, high in (("min_coverage", 0, 1), ("level", 0.5, 0.9999)):
        value = data.get(name)
        if value is not None and not (isinstance(value, (int, float)) and low <= value <= high):
            problems.add((name,), f"{name} lies between {low} and {high}; got {describe_value(value)}.")


def _parse_rule(rule: Any, where: tuple[str | int, ...], problems: FileProblems) -> GateRule | None:
    if not isinstance(rule, dict):
        problems.add(where, f"a rule is a table such as [[rules]]; got {describe_value(rule)}.")
        return None
    for name in rule:
        if name not in GateRule.__struct_fields__:
            known = did_you_mean(name, GateRule.__struct_fields__)
            problems.add((*where, name), f"a rule has no {name!r}{known}")
            return None
    try:
        parsed = msgspec.convert(rule, GateRule)
    except msgspec.ValidationError as error:
        problems.add(where, f"{error}.")
        return None
    for problem in _find_rule_problems(parsed):
        problems.add(where, problem)
    return parsed


def _find_rule_problems(rule: GateRule) -> list[str]:
    found = []
    if len(rule.limits) != 1:
        given = " and ".join(rule.limits) or "none"
        found.append(f"a rule has exactly one of {', '.join(LIMITS)}; this one has {given}.")
    for name in ("max_drop", "max_rise"):
        size = getattr(rule, name)
        if size is not None and size <= 0:
            found.append(
                f"{name} is a positive difference, such as 0.02; to fail only on a shown loss, "
                f"use no_regression = true."
            )
    if rule.is_of_run and rule.needs_baseline:
        found.append(f"{rule.measure} is one number per run, so only at_least and at_most apply to it.")
    return found
