"""`proctor eval plan` and `proctor eval estimate`, as their users see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from proctor.cli.commands.plan import plan_command
from tests.comparison.stored_runs import write_run

if TYPE_CHECKING:
    from tests.conftest import Ran


def plan(*words: str, columns: int = 120) -> Result:
    return CliRunner().invoke(plan_command, words, env={"COLUMNS": str(columns)}, catch_exceptions=True)


AIRLINE = (
    "0 1 1 0 0 1 1 1 0 0 0 1 4 2 0 2 1 1 4 0 4 3 0 0 4 0 2 2 0 1 2 2 0 0 3 4 4 3 4 1 3 2 4 1 2 2 2 1 4 4"
)
"""Successes of four rollouts: the reference of the notes on statistics, whose variances are known."""


@pytest.fixture
def runs(home: Path) -> Path:
    counts = [int(word) for word in AIRLINE.split()]
    solved = {task: [1.0] * count + [0.0] * (4 - count) for task, count in enumerate(counts)}
    write_run(home / "pilot", solved, model="gpt-4o")
    random = Random(3)
    other = {
        task: [float(random.random() < (count + 0.5) / 5) for _ in range(4)]
        for task, count in enumerate(counts)
    }
    write_run(home / "other", other, model="other")
    write_run(home / "single", {task: rewards[:1] for task, rewards in solved.items()})
    write_run(home / "tiny", {0: [1.0, 0.0]})
    return home


def test_a_half_width_is_planned_from_the_variance_of_the_pilot(runs: Path) -> None:
    design = json.loads(plan("pilot", "--halfwidth", "0.05", "--json").stdout)

    assert design["pilot"]["within"] == pytest.approx(0.146667, abs=1e-6)
    assert design["pilot"]["between"] == pytest.approx(0.099660, abs=1e-6)
    by_rollouts = {row["rollouts_per_task"]: row for row in design["rows"]}
    assert list(by_rollouts) == [1, 2, 4, 8]
    assert by_rollouts[4]["tasks"] == 212  # (t / 0.05)² · (0.09966 + 0.146667 / 4)
    assert by_rollouts[4]["fewest_tasks"] < 212 < by_rollouts[4]["most_tasks"]
    assert design["rows"][design["cheapest"]]["rollouts_per_task"] == 1


def test_the_table_says_what_buys_more(runs: Path) -> None:
    shown = " ".join(plan("pilot", "--halfwidth", "0.05").stdout.split())

    assert "To know the mean reward to within ±0.05" in shown
    assert "fewest rollouts" in shown
    assert "twice the tasks narrow the interval by 29%, and twice the rollouts per task by 7%" in shown
    assert "80% range" in shown


def test_it_fits_a_narrow_terminal(runs: Path) -> None:
    lines = plan("pilot", "--difference", "0.05", columns=80).stdout.splitlines()

    assert max(map(len, lines)) <= 80


def test_a_second_run_measures_how_the_models_differ(runs: Path) -> None:
    assumed = json.loads(plan("pilot", "--difference", "0.05", "--json").stdout)
    measured = json.loads(plan("pilot", "--against", "other", "--difference", "0.05", "--json").stdout)

    assert measured["pilot"]["against"] == ["other"]
    assert measured["pilot"]["difference_between"] < assumed["pilot"]["difference_between"]
    assert measured["rows"][0]["tasks"] < assumed["rows"][0]["tasks"]
    assert all(row["smallest_difference"] <= 0.05 for row in measured["rows"])


def test_with_too_few_tasks_more_rollouts_are_the_way(runs: Path) -> None:
    design = json.loads(plan("pilot", "--halfwidth", "0.05", "--most-tasks", "180", "--json").stdout)
    best = design["rows"][design["cheapest"]]

    assert best["tasks"] <= 180
    assert best["rollouts_per_task"] > 1
    assert not design["rows"][0]["enough_tasks"]
    assert "there are 180 tasks" in plan("pilot", "--halfwidth", "0.05", "--most-tasks", "180").stdout


def test_a_number_of_rollouts_is_turned_into_what_it_can_show(runs: Path) -> None:
    by_default = json.loads(plan("pilot", "--json").stdout)
    asked = json.loads(plan("pilot", "--rollouts", "200", "--json").stdout)

    assert by_default["rows"] == asked["rows"]
    assert [row["rollouts"] for row in asked["rows"]] == [200, 200, 200, 200]
    assert asked["cheapest"] == 0
    own = asked["rows"][2]
    assert own["halfwidth"] == pytest.approx(0.52493 - 0.42, abs=1e-4)  # the t interval of the pilot itself


def test_a_budget_buys_what_the_pilot_paid_for(runs: Path) -> None:
    cost = {"total_usd": 2.0}
    metadata = json.loads((runs / "pilot" / "metadata.json").read_text())
    (runs / "pilot" / "metadata.json").write_text(json.dumps({**metadata, "cost": cost}))

    design = json.loads(plan("pilot", "--budget", "10", "--json").stdout)

    assert design["pilot"]["cost"]["usd"] == pytest.approx(0.01)
    assert design["rows"][0]["rollouts"] == 1000
    assert design["rows"][0]["cost_usd"] == pytest.approx(10)


def test_a_pilot_of_single_rollouts_cannot_say_what_more_would_bring(runs: Path) -> None:
    shown = " ".join(plan("single", "--halfwidth", "0.05").stdout.split())

    assert "run one with -r 2 or more" in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("tiny", "--halfwidth", "0.05"), "at least two scored tasks"),
        (("pilot", "--halfwidth", "0.05", "--budget", "1"), "two goals"),
        (("single", "--budget", "1"), "what a rollout costs is not known"),
        (("nosuch",), "No runs in outputs"),
    ],
)
def test_what_cannot_be_planned_is_refused(runs: Path, words: tuple[str, ...], problem: str) -> None:
    assert problem in str(plan(*words).exception)


def test_an_estimate_plays_a_pilot_that_the_run_takes_over(home: Path, proctor: Callable[..., Ran]) -> None:
    shown = proctor(
        "eval", "estimate", "echo", "-m", "scripted", "-r", "2", "--pilot", "2", "--json", cwd=home
    )
    forecast = json.loads(shown.stdout)

    assert shown.code == 0
    assert (forecast["pilot_tasks"], forecast["pilot_rollouts"]) == (2, 2)
    assert forecast["rollouts_per_task"] == 2
    total = forecast["tasks"] * 2
    assert forecast["output_tokens"]["likely"] >= total
    assert forecast["output_tokens"]["low"] <= forecast["output_tokens"]["likely"]
    words = ("echo", "-m", "scripted", "-r", "2", "--reuse", forecast["pilot"])
    assert "reuse 2, re-score 0, re-run 8" in proctor("eval", "run", *words, cwd=home).stderr
    text = proctor("eval", "estimate", "echo", "-m", "scripted", "--from", forecast["pilot"], cwd=home)
    assert "ranges hold in 95% of cases" in text.stdout
