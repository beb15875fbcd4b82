"""`proctor eval compare`, as its users see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from proctor.cli.commands.compare import compare_command
from tests.comparison.stored_runs import write_run

if TYPE_CHECKING:
    from tests.conftest import Ran

WIDE = {"COLUMNS": "120"}


def compare(*words: str, columns: int = 120) -> Result:
    return CliRunner().invoke(compare_command, words, env={"COLUMNS": str(columns)}, catch_exceptions=True)


@pytest.fixture
def runs(home: Path) -> Path:
    """A baseline, a candidate that lost half of its tasks, and one of the same model."""
    random = Random(7)
    good = {task: [1.0, 1.0] for task in range(12)}
    write_run(home / "good", good, model="old", sampling_args={"temperature": 0.5})
    bad = {task: [1.0, 1.0] if task < 4 else [0.0, 0.0] for task in range(12)}
    write_run(home / "bad", bad, model="new", sampling_args={"temperature": 1.0})
    noisy = {task: [float(random.random() < 0.9) for _ in range(2)] for task in range(12)}
    write_run(home / "same", noisy, model="old", sampling_args={"temperature": 0.5})
    return home


def test_a_regression_is_called_worse_and_its_flipped_tasks_can_be_looked_at(runs: Path) -> None:
    shown = compare("good", "bad")

    assert shown.exit_code == 0
    assert "worse: -0.667" in shown.stdout
    assert "8 tasks differ: 8 passed only on the baseline, 0 only on the candidate" in shown.stdout
    assert "lost  4   1.000 → 0.000  proctor trace diff good/4/0 bad/4/0" in shown.stdout
    assert "settings that differ: model old → new; sampling_args.temperature 0.5 → 1.0" in shown.stdout


def test_the_trace_diff_that_it_names_can_be_typed(runs: Path, proctor: Callable[..., Ran]) -> None:
    (line,) = (line for line in compare("good", "bad").stdout.splitlines() if line.startswith("  lost  4"))
    words = line.partition("proctor ")[2].split()

    assert proctor(*words, cwd=runs).code == 0


def test_intervals_are_drawn_where_there_is_room_and_left_out_where_not(runs: Path) -> None:
    wide, narrow = compare("good", "bad", columns=120).stdout, compare("good", "bad", columns=48).stdout

    assert "├" in wide
    assert "●" in wide
    assert "├" not in narrow
    assert max(map(len, compare("good", "bad", columns=80).stdout.splitlines())) <= 80


def test_a_program_reads_the_same_numbers_that_are_printed(runs: Path) -> None:
    (comparison,) = json.loads(compare("good", "bad", "--json").stdout)["comparisons"]
    shown = compare("good", "bad").stdout

    assert comparison["text"] in " ".join(shown.split())
    assert comparison["reward"]["difference"] == pytest.approx(-8 / 12)
    assert len(comparison["tasks"]) == 8


def test_markdown_has_the_verdict_a_table_and_the_flips(runs: Path) -> None:
    page = compare("good", "bad", "--markdown").stdout

    assert "**worse: -0.667" in page
    assert "| reward | 1.000 | 0.333 | -0.667 |" in page
    assert "<details><summary>8 tasks lost, 0 won</summary>" in page


def test_several_candidates_begin_with_a_table_of_verdicts(runs: Path) -> None:
    lines = compare("good", "bad", "same").stdout.splitlines()

    assert lines[0].split()[:3] == ["environment", "baseline", "candidate"]
    assert lines[1].split()[-1] == "worse"
    assert lines[2].endswith("no difference shown")


def test_a_run_below_its_minimum_coverage_gets_no_verdict(runs: Path) -> None:
    write_run(runs / "failing", {task: [1.0, None] for task in range(12)})

    shown = compare("good", "failing").stdout

    assert "too little data: failing scored 50.0% of its rollouts, and a verdict takes 100.0%" in shown


def test_runs_with_commas_between_them_are_pooled(runs: Path) -> None:
    (comparison,) = json.loads(compare("good,same", "bad", "--json").stdout)["comparisons"]

    assert [run["run"] for run in comparison["baseline"]["runs"]] == ["good", "same"]
    assert comparison["baseline"]["variation"]["runs"] == 2


def test_a_suite_is_compared_environment_by_environment(home: Path) -> None:
    for side, reward in (("main", 1.0), ("branch", 0.0)):
        for name in ("sums", "letters"):
            write_run(
                home / side / "evals" / f"{name}--m" / "r1", {n: [reward] for n in range(8)}, env_id=name
            )
    write_run(home / "branch" / "evals" / "extra--m" / "r1", {n: [1.0] for n in range(8)}, env_id="extra")

    document = json.loads(compare("main", "branch", "--json").stdout)

    environments = [each["candidate"]["runs"][0]["environment"] for each in document["comparisons"]]
    assert sorted(environments) == ["letters", "sums"]
    assert {each["verdict"] for each in document["comparisons"]} == {"worse"}
    assert document["only_candidate"] == ["extra"]


def test_equivalence_has_a_line_of_its_own(runs: Path) -> None:
    shown = compare("good", "good", "--margin", "0.05").stdout

    assert "no difference shown" in shown
    assert "margin 0.05: not shown to be within 0.05" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("good", "bad", "--margin", "-1"),
            "--margin is a positive difference in reward, such as 0.02; got -1.",
        ),
        (("good", "bad", "--metric", "speed"), "No metric 'speed' in these runs."),
        (
            ("good", "bad", "--json", "--markdown"),
            "--json and --markdown cannot be combined; give one of them.",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    runs: Path, words: tuple[str, ...], said: str
) -> None:
    assert str(compare(*words).exception) == said


@pytest.mark.parametrize("level", ["0.4", "1.5", "0.9999999999999999", "nan"])
def test_a_level_that_no_interval_has_is_refused(runs: Path, level: str) -> None:
    refused = compare("good", "bad", "--level", level)

    assert refused.exit_code == 2
    assert "Invalid value for '--level'" in refused.output


def test_a_run_that_is_not_there_is_a_usage_error(runs: Path, proctor: Callable[..., Ran]) -> None:
    refused = proctor("eval", "compare", "good", "nowhere", cwd=runs)

    assert refused.code == 2
    assert refused.stderr.startswith("Error: No run")
