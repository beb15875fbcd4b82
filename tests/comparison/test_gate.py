"""What a gate decides, rule by rule, and what it says of a policy that makes no sense."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from proctor.comparison.gate import GateInput, GateResult, decide_gate
from proctor.comparison.gate_policy import GatePolicy, GateRule, parse_policy
from proctor.config.toml_file import read_toml
from proctor.errors import FileError
from proctor.store.scores import read_scores, read_summary
from tests.comparison.stored_runs import Rewards, write_run

STEADY = {task: [1.0] if task % 5 else [0.0] for task in range(400)}
DROPPED = {task: [1.0] if task % 2 else [0.0] for task in range(400)}


def decide(
    tmp_path: Path, rule: GateRule, rewards: Rewards, baseline: Rewards | None = None, **policy: Any
) -> GateResult:
    new = write_run(tmp_path / "new", rewards)
    theirs = [] if baseline is None else [read_scores(write_run(tmp_path / "old", baseline), "old")]
    given = GateInput(candidate=[read_scores(new, "new")], summaries=[read_summary(new)], baseline=theirs)
    return decide_gate(GatePolicy(rules=(rule,), **policy), given)


@pytest.mark.parametrize(("threshold", "outcome"), [(0.7, "PASS"), (0.79, "INCONCLUSIVE"), (0.9, "FAIL")])
def test_a_threshold_must_hold_for_the_whole_interval(tmp_path: Path, threshold: float, outcome: str) -> None:
    assert decide(tmp_path, GateRule(measure="reward", at_least=threshold), STEADY).outcome == outcome


def test_a_rule_may_ask_for_the_mean_alone(tmp_path: Path) -> None:
    rule = GateRule(measure="reward", at_least=0.79, decide_by="mean")

    assert decide(tmp_path, rule, STEADY).outcome == "PASS"


def test_a_drop_that_is_shown_fails_and_its_absence_must_be_shown_too(tmp_path: Path) -> None:
    rule = GateRule(measure="reward", max_drop=0.05)
    few = {task: STEADY[task] for task in range(20)}

    assert decide(tmp_path / "1", rule, DROPPED, STEADY).outcome == "FAIL"
    assert decide(tmp_path / "2", rule, STEADY, STEADY).outcome == "PASS"
    assert decide(tmp_path / "3", rule, few, few).outcome == "INCONCLUSIVE"


def test_no_regression_passes_what_is_not_shown_to_be_worse(tmp_path: Path) -> None:
    rule = GateRule(measure="reward", no_regression=True)
    few = {task: STEADY[task] for task in range(20)}

    assert decide(tmp_path / "1", rule, few, few).outcome == "PASS"
    assert decide(tmp_path / "2", rule, DROPPED, STEADY).outcome == "FAIL"
    assert decide(tmp_path / "3", rule, {1: [0.0]}, {1: [1.0]}).outcome == "INCONCLUSIVE"


def test_a_measure_that_should_stay_low_may_not_rise(tmp_path: Path) -> None:
    random = Random(1)
    low = {task: [random.gauss(1, 0.1)] for task in range(50)}
    high = {task: [value + 1 for value in rewards] for task, rewards in low.items()}
    rule = GateRule(measure="reward", max_rise=0.5)

    risen = decide(tmp_path / "1", rule, {k: [v[0] + random.gauss(0, 0.1)] for k, v in high.items()}, low)
    assert risen.outcome == "FAIL"
    assert risen.rules[0].text.startswith(("+0.9", "+1.0"))
    fallen = {k: [v[0] + random.gauss(0, 0.1)] for k, v in low.items()}
    assert decide(tmp_path / "2", rule, fallen, high).outcome == "PASS"


def test_below_the_minimum_coverage_only_numbers_of_the_run_are_decided(tmp_path: Path) -> None:
    half = {task: [1.0] if task % 2 else [None] for task in range(40)}

    assert decide(tmp_path / "1", GateRule(measure="reward", at_least=0.1), half).outcome == "INCONCLUSIVE"
    assert decide(tmp_path / "2", GateRule(measure="errors", at_most=5), half).outcome == "FAIL"
    lenient = decide(tmp_path / "3", GateRule(measure="reward", at_least=0.1), half, min_coverage=0.5)
    assert lenient.outcome == "PASS"


def test_without_a_baseline_a_drop_is_open_and_says_so(tmp_path: Path) -> None:
    result = decide(tmp_path, GateRule(measure="reward", max_drop=0.05), STEADY)

    assert result.outcome == "INCONCLUSIVE"
    assert result.rules[0].text == "there is no baseline; name one with --baseline"


def test_other_tasks_than_the_baselines_decide_nothing_if_the_policy_says_so(tmp_path: Path) -> None:
    fewer = {task: STEADY[task] for task in range(300)}
    rule = GateRule(measure="reward", no_regression=True)

    assert decide(tmp_path / "1", rule, fewer, STEADY).outcome == "PASS"
    assert decide(tmp_path / "2", rule, fewer, STEADY, same_tasks=True).outcome == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("measure", "limit", "outcome"),
    [
        ("cost_usd", 1.0, "INCONCLUSIVE"),
        ("seconds_p90", 2.0, "PASS"),
        ("seconds_median", 1.0, "FAIL"),
        ("output_tokens_per_rollout", 10.0, "PASS"),
    ],
)
def test_numbers_of_the_run_are_compared_as_they_are(
    tmp_path: Path, measure: str, limit: float, outcome: str
) -> None:
    assert decide(tmp_path, GateRule(measure=measure, at_most=limit), STEADY).outcome == outcome


def test_the_cost_is_what_the_run_booked(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", {0: [1.0]}, cost={"total_usd": 2.5})

    assert read_summary(folder).cost_usd == 2.5


@pytest.mark.parametrize(
    ("measure", "threshold", "outcome"),
    [
        ("pass@2", 0.8, "PASS"),
        ("pass@2", 0.9, "INCONCLUSIVE"),
        ("pass^2", 0.2, "FAIL"),
        ("pass@1", 0.5, "PASS"),
        ("pass@3", 0.5, "INCONCLUSIVE"),
    ],
)
def test_pass_at_k_must_hold_for_the_whole_interval_too(
    tmp_path: Path, measure: str, threshold: float, outcome: str
) -> None:
    rewards = {task: [1.0, 0.0] for task in range(20)}  # pass@2 is 1, with an interval from 0.83 up
    rule = GateRule(measure=measure, at_least=threshold)
    if measure == "pass@1":  # every task agrees on 0.5, so there is no interval
        rule = replace(rule, decide_by="mean")

    assert decide(tmp_path, rule, rewards).outcome == outcome


def test_pass_at_k_decides_nothing_below_the_minimum_coverage(tmp_path: Path) -> None:
    half = {task: [1.0, 1.0] if task % 2 else [None, None] for task in range(40)}

    assert decide(tmp_path, GateRule(measure="pass@2", at_least=0.1), half).outcome == "INCONCLUSIVE"


def test_a_threshold_is_checked_at_the_level_of_the_policy(tmp_path: Path) -> None:
    """0.8 over 400 tasks: the lower end is 0.758 at 95%, and 0.729 at 99.9%."""
    rule = GateRule(measure="reward", at_least=0.75)

    assert decide(tmp_path / "1", rule, STEADY).outcome == "PASS"
    strict = decide(tmp_path / "2", rule, STEADY, level=0.999)
    assert strict.outcome == "INCONCLUSIVE"
    assert "99.9% interval" in strict.rules[0].text


def test_a_policy_without_a_rule_for_the_environment_passes_nothing(tmp_path: Path) -> None:
    rule = GateRule(measure="reward", at_least=0.1, environment="another")

    assert decide(tmp_path, rule, STEADY).outcome == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("at_least = nan", "at_least is a finite number, such as 0.5; got nan."),
        ("at_most = inf", "at_most is a finite number, such as 0.5; got inf."),
        ("max_drop = nan", "max_drop is a finite number, such as 0.5; got nan."),
        ("max_rise = -inf", "max_rise is a finite number, such as 0.5; got -inf."),
        ('at_least = "0.5"', "at_least is a finite number, such as 0.5; got '0.5'."),
        ("at_least = true", "at_least is a finite number, such as 0.5; got true."),
        ("no_regression = 1", "no_regression is true or false; got 1."),
        ('environment = ""', "environment is a name; got ''."),
        ('decide_by = "median"', "decide_by is 'interval' or 'mean'; got 'median'."),
    ],
)
def test_a_rule_that_could_never_decide_is_refused(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(f'[[rules]]\nmeasure = "reward"\n{line}\n')

    with pytest.raises(FileError) as refused:
        parse_policy(read_toml(path))

    assert f"gate.toml:3: {problem}" in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "min_coverage = nan",
        "min_coverage = true",
        "level = inf",
        "level = 0.2",
        "min_tasks = 0",
        "min_tasks = 1.5",
        'same_tasks = "yes"',
    ],
)
def test_a_policy_with_a_setting_out_of_range_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(f'{line}\n[[rules]]\nmeasure = "reward"\nat_least = 0.5\n')

    with pytest.raises(FileError, match=rf"gate.toml:1: {line.split()[0]} "):
        parse_policy(read_toml(path))


def test_every_problem_of_a_policy_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(
        'min_coverge = 0.9\n\n[[rules]]\nmeasure = "reward"\n\n[[rules]]\nmeasure = "cost_usd"\n'
        'max_drop = 1.0\n\n[[rules]]\nmeasure = "reward"\nmax_drop = -1.0\n\n[[rules]]\nmesure = "reward"\n'
    )

    with pytest.raises(FileError) as refused:
        parse_policy(read_toml(path))

    lines = [problem.removeprefix(f"{tmp_path}/") for problem in refused.value.problems]
    assert lines[0] == "gate.toml:1: there is no 'min_coverge'; did you mean 'min_coverage'?"
    assert lines[1].startswith("gate.toml:3: a rule has exactly one of at_least, at_most, max_drop")
    assert lines[2].startswith("gate.toml:6: cost_usd is one number per run")
    assert lines[3].startswith("gate.toml:12: max_drop is a positive difference")
    assert lines[4] == "gate.toml:15: a rule has no 'mesure'; did you mean 'measure'?"


def test_the_example_policy_is_valid() -> None:
    example = Path(__file__).parents[2] / "examples" / "ci" / "gate.toml"

    assert len(parse_policy(read_toml(example)).rules) == 5
