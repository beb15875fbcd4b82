"""`proctor env check --with`: what past runs tell of the tasks, and how little a few of them can tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proctor.checkup.finding import Finding
from proctor.checkup.near_duplicates import find_near_duplicates
from proctor.checkup.past_runs import find_played_problems, read_played
from proctor.stats.discrimination import measure_discrimination
from tests.cli.in_process import run_command
from tests.comparison.stored_runs import write_run

LONG = "the mitochondria is the powerhouse of the cell and of much else besides"


def play(
    folder: Path,
    rewards: Mapping[int, list[float]],
    answers: Callable[[int, int], str] = lambda task, number: f"{task} {number}",
    model: str = "",
) -> Path:
    """A run with these rewards, and what was said in it."""
    made = write_run(folder, rewards, model=model or folder.name)
    rows = [json.loads(line) for line in (made / "results.jsonl").read_text().splitlines()]
    for row in rows:
        task, number = row["example_id"], row["rollout"]
        row["prompt"] = [{"role": "user", "content": f"task number {task} is {f'word{task} ' * 5}"}]
        row["completion"] = [{"role": "assistant", "content": answers(task, number)}]
    (made / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def examine(*folders: Path) -> dict[str, Finding]:
    return {finding.code: finding for finding in find_played_problems(read_played(folders), None)}


def test_tasks_that_nobody_solves_and_that_everybody_solves_are_named_with_what_that_is_worth(
    tmp_path: Path,
) -> None:
    rewards = {0: [0.0, 0.0], 1: [1.0, 1.0], 2: [0.0, 1.0], 3: [0.25, 0.25]}

    found = examine(*(play(tmp_path / name, rewards) for name in ("a", "b")))

    assert found["W511"].tasks == (0, 3)
    assert "2 tasks are never solved: task 0, 3" in found["W511"].message
    assert "played 4 times or more, a task may still pass up to 53% of the time" in found["W511"].message
    assert "neither passing nor 0" in found["N521"].message
    both = [each for each in find_played_problems(read_played([tmp_path / "a"]), None) if each.code == "N521"]
    assert [each.tasks for each in both] == [(1,), (3,)]
    assert "played 2 times or more, a task may still fail up to 78%" in both[0].message


def test_answers_that_all_models_share_are_suspicious_if_long_or_wrong(tmp_path: Path) -> None:
    rewards = {0: [1.0, 1.0], 1: [0.0, 0.0], 2: [1.0, 1.0], 3: [1.0, 1.0]}

    def answers(task: int, number: int) -> str:
        return {0: f"{LONG}  ", 1: "42", 2: "42"}.get(task, f"{LONG} {number}")

    two = examine(play(tmp_path / "a", rewards, answers), play(tmp_path / "b", rewards, answers))
    one = examine(tmp_path / "a")

    assert two["W512"].tasks == (0,)
    assert two["W515"].tasks == (1,), "one wrong answer from all of them: the key may be wrong"
    assert "W512" not in one, "one model agreeing with itself says nothing"


def test_two_tasks_that_ask_nearly_the_same_are_named_together(tmp_path: Path) -> None:
    run = play(tmp_path / "a", {task: [0.0, 1.0] for task in range(4)})
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    for row in rows:
        if row["example_id"] in (1, 3):
            asked = f"Say why {LONG}, in your own words. Variant {row['example_id']}"
            row["prompt"] = [{"role": "user", "content": asked}]
    (run / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert set(examine(run)["W513"].tasks) == {1, 3}


def test_a_task_that_better_runs_fail_is_named_once_there_are_enough_runs(tmp_path: Path) -> None:
    random = Random(0)
    folders = []
    for strength in range(14):
        rate = strength / 13
        rewards = {task: [float(random.random() < rate) for _ in range(8)] for task in range(8)}
        rewards[99] = [float(random.random() > rate) for _ in range(8)]
        folders.append(play(tmp_path / f"run{strength}", rewards))

    enough, few = examine(*folders), examine(*folders[:4])

    assert enough["W514"].tasks == (99,)
    assert "of 14 runs" in enough["W514"].message
    assert "W514" not in few
    assert "needs 5 runs" in few["N522"].message


def test_pure_chance_is_not_taken_for_negative_discrimination(tmp_path: Path) -> None:
    random = Random(1)
    flagged = 0
    for _ in range(100):
        table = [[float(random.random() < 0.5) for _ in range(20)] for _ in range(8)]
        flagged += any(
            each.p_negative is not None and each.p_negative < 0.05 / 20
            for each in measure_discrimination(table)
        )

    assert flagged <= 12


def test_discrimination_is_the_item_rest_correlation() -> None:
    table = [[1.0, 0.0, 0.2], [2.0, 1.0, 0.2], [3.0, 1.0, 0.2], [4.0, 0.0, 0.2]]

    first, _, third = measure_discrimination(table)

    assert first.correlation == pytest.approx(0.0)
    assert third.correlation is None
    assert measure_discrimination([[1.0, 2.0]])[0].correlation is None
    reverse = measure_discrimination([[float(n), float(-2 * n)] for n in range(5)])[0]
    assert reverse.correlation == pytest.approx(-1)
    assert reverse.p_negative == pytest.approx(1 / 120), "five runs can show no more"


def test_near_duplicates_are_found_beside_shared_instructions() -> None:
    shared = "Answer with one number and nothing else, please. "
    story = "a farmer has seventeen sheep and buys five more at the market on Tuesday before noon"
    texts = [
        f"{shared}{story}",
        f"{shared}a train leaves at nine and arrives at noon",
        f"{shared}{story} sharp",
        f"{shared}how many legs do three spiders have",
        f"{shared}{story}",
    ]

    found = find_near_duplicates(texts)

    assert [(one, other) for one, other, _ in found] == [(0, 2), (2, 4)], "equal ones are another finding"
    assert find_near_duplicates(["", "", "one", "two words"]) == []


def test_many_texts_are_compared_in_little_time() -> None:
    random = Random(2)
    words = [f"w{number}" for number in range(500)]
    texts = [" ".join(random.choices(words, k=60)) for _ in range(1500)]
    texts.append(texts[7] + " more")

    assert [pair[:2] for pair in find_near_duplicates(texts)] == [(7, 1500)]


@pytest.fixture
def environment(home: Path) -> Path:
    path = home / "sums.py"
    path.write_text(
        '"""Sums."""\n\nfrom proctor import Rubric, SingleTurnEnv\n\n'
        'rows = [{"question": f"add {n} and {n * n}", "answer": str(n + n * n)} for n in range(3, 7)]\n\n\n'
        "def right(completion, answer):\n"
        '    return float(answer == completion[-1]["content"])\n\n\n'
        "def load_environment():\n    return SingleTurnEnv(rows, rubric=Rubric(right))\n"
    )
    return path


def test_the_command_names_them_beside_its_other_findings(environment: Path, home: Path) -> None:
    played = run_command(
        "eval", "run", str(environment), "-m", "scripted", "-n", "4", "-r", "3", "-o", "out", "--json"
    )
    stranger = play(home / "other", {0: [1.0]})

    checked = run_command(
        "env", "check", str(environment), "--with", "out", "--with", str(stranger), "--json"
    )
    report: dict[str, Any] = json.loads(checked.out)

    assert played.code == 0, played.err
    found = {each["code"]: each for each in report["findings"]}
    assert found["W511"]["tasks"] == [0, 1, 2, 3], "the scripted model repeats the question"
    assert found["W511"]["severity"] == "warning"
    assert found["N523"]["tasks"] == [0]
    assert checked.code == 0
    assert run_command("env", "check", str(environment), "--with", "out", "--strict").code == 1


def test_a_run_that_is_not_there_fails_before_anything_is_played(environment: Path, home: Path) -> None:
    failed = run_command("env", "check", str(environment), "--with", "nowhere")

    assert failed.code == 2
    assert "No run" in failed.err
