"""`proctor eval label` and `proctor eval agreement`: people score rollouts; judges are measured by them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proctor.comparison.agreement import examine_judge
from proctor.store.labels import LABELS, Label, append_labels, read_labels
from tests.cli.in_process import run_command
from tests.comparison.stored_runs import write_run

MODEL, SECRET_METRIC = "the-secret-model", "judge_says"


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """A run of 6 tasks, 2 rollouts each, with their conversations; one rollout failed."""
    rewards = {task: [1.0, None if task == 5 else 0.0] for task in range(6)}
    made = write_run(tmp_path / "outputs/evals/quiz--m/1a2b", rewards, {SECRET_METRIC: 0.25}, model=MODEL)
    rows = [json.loads(line) for line in (made / "results.jsonl").read_text().splitlines()]
    for row in rows:
        row["prompt"] = [{"role": "user", "content": f"question {row['example_id']}"}]
        said = f"answer {row['example_id']}-{row['rollout']}"
        row["completion"] = [{"role": "assistant", "content": f"{said}\x1b[31m\n" + "more\n" * 40}]
        row["answer"] = f"gold {row['example_id']}"
    (made / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def label(folder: Path, stdin: str, *words: str) -> Any:
    return run_command("eval", "label", str(folder), "--as", "ann", *words, stdin=stdin)


def questions(out: str) -> list[str]:
    return [line.strip() for line in out.splitlines() if line.strip().startswith("answer ") and "-" in line]


def test_a_person_sees_the_conversation_and_nothing_that_would_sway_them(folder: Path) -> None:
    shown = label(folder, "1\n")

    assert "question" in shown.out
    assert "gold" in shown.out
    assert shown.out.count("more") >= 40, "people score what they have read in full"
    assert MODEL not in shown.out + shown.err
    assert SECRET_METRIC not in shown.out
    assert "\x1b" not in shown.out
    assert "gold" not in label(folder, "1\n", "--hide-answer").out


def test_the_order_is_random_the_same_for_everybody_and_changes_with_the_seed(folder: Path) -> None:
    keys = "1\n" * 11

    ann = questions(label(folder, keys).out)
    bob = questions(run_command("eval", "label", str(folder), "--as", "bob", stdin=keys).out)
    eve = questions(run_command("eval", "label", str(folder), "--as", "eve", "--seed", "7", stdin=keys).out)

    assert ann == bob != eve
    assert len(set(ann)) == 11, "each scored rollout once, and the failed one not at all"
    assert ann != sorted(ann)
    assert sorted(read_labels(folder).by_person) == ["ann", "bob", "eve"]


def test_labelling_continues_where_it_stopped(folder: Path) -> None:
    first = label(folder, "1\n0 too short\nq\n")
    second = label(folder, "s\n", "-n", "20")

    assert "2 labels of run 1a2b saved; 9 left" in first.err
    assert not set(questions(first.out)[:2]) & set(questions(second.out))
    assert "2 of 11 labelled" in second.err
    given = list(read_labels(folder).of("ann").values())
    assert [(each.score, each.note) for each in given] == [(1.0, ""), (0.0, "too short"), (None, "")]


def test_a_label_can_be_corrected_and_only_offered_scores_are_taken(folder: Path) -> None:
    shown = label(folder, "7\nmaybe\n0\nb\n1\n", "-n", "2")

    assert shown.err.count("Scores are 0, 1.") == 2
    (only,) = read_labels(folder).of("ann").values()
    assert only.score == 1.0, "the last one counts"
    assert label(folder, "0.3\n", "--scores", "0..1", "-n", "1").code == 0
    assert [each.score for each in read_labels(folder).of("ann").values()] == [1.0, 0.3]


def test_going_back_says_where_one_is_and_an_end_within_a_line_ends_it(folder: Path) -> None:
    shown = label(folder, "1\nb\n0\n0\n")

    places = [line.partition("  ")[0] for line in shown.err.splitlines() if "score (" in line]
    assert places == ["1/11", "2/11", "1/11", "2/11", "3/11"]
    assert shown.err.splitlines()[-1] == "3 labels of run 1a2b saved; 9 left."


def test_a_file_that_was_cut_off_loses_only_its_last_line(folder: Path) -> None:
    append_labels(folder, [Label(example_id=0, rollout=0, person="ann", score=1.0)])
    with (folder / LABELS).open("ab") as file:
        file.write(b'{"example_id": 1, "rol')
    append_labels(folder, [Label(example_id=2, rollout=0, person="ann", score=0.0)])

    labels = read_labels(folder)

    assert list(labels.of("ann")) == [(0, 0), (2, 0)]
    assert labels.faults == 1


def test_labels_come_from_a_spreadsheet_all_or_none(folder: Path, home: Path) -> None:
    (home / "good.csv").write_text("example_id,rollout,score,person\n0,0,1,bob\n1,1,,\n2,0,no,\n")
    (home / "bad.csv").write_text("example_id,rollout,score\n0,0,1\n99,0,1\n")
    (home / "odd.csv").write_text("task,score\n0,1\n")

    assert label(folder, "", "--from", "good.csv").code == 0
    assert read_labels(folder).of("bob")[0, 0].score == 1.0
    assert read_labels(folder).of("ann")[2, 0].score == 0.0
    for name, said in [
        ("bad.csv", "bad.csv, line 3: the run has no rollout 0 of task 99"),
        ("odd.csv", "no column"),
    ]:
        failed = label(folder, "", "--from", name)
        assert failed.code == 2
        assert said in failed.err
    assert read_labels(folder).scored == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scores", "1"), "at least two"),
        (("--scores", "a,b"), "takes numbers"),
        (("--scores", "nan,1"), "at least two"),
        (("--as", " "), "printable"),
    ],
)
def test_words_that_make_no_sense_are_refused(folder: Path, words: tuple[str, ...], said: str) -> None:
    failed = label(folder, "1\n", *words)

    assert failed.code == 2
    assert said in failed.err


# The judge against people


def judged_run(tmp_path: Path) -> tuple[Path, dict[tuple[int, int], float]]:
    """A judge that passes three of ten answers which people fail, and what people would say."""
    random = Random(4)
    people = {(task, number): float(random.random() < 0.5) for task in range(60) for number in range(2)}
    judge = {key: score if score or random.random() < 0.7 else 1.0 for key, score in people.items()}
    rewards = {task: [judge[task, 0], judge[task, 1]] for task in range(60)}
    return write_run(tmp_path / "outputs/evals/quiz--m/5e6f", rewards, {"flat": 1.0}), people


def give_labels(folder: Path, people: dict[tuple[int, int], float], person: str, count: int) -> None:
    chosen = Random(1).sample(sorted(people), count)
    append_labels(
        folder, [Label(example_id=t, rollout=n, person=person, score=people[t, n]) for t, n in chosen]
    )


def test_agreement_shows_a_lenient_judge_and_corrects_its_mean(tmp_path: Path, home: Path) -> None:
    folder, people = judged_run(tmp_path)
    give_labels(folder, people, "ann", 50)

    report = json.loads(run_command("eval", "agreement", str(folder), "--json").out)
    table = run_command("eval", "agreement", str(folder)).out

    (ann,) = report["people"]
    assert ann["only_judge_passes"] > 3
    assert ann["only_person_passes"] == 0
    assert 0.5 < ann["kappa"]["value"] < 0.95
    truth = sum(people.values()) / len(people)
    corrected = report["corrected"]
    assert corrected["judge_mean"] > truth + 0.08
    assert corrected["interval"]["low"] < truth < corrected["interval"]["high"]
    assert abs(corrected["mean"] - truth) < corrected["judge_mean"] - truth
    assert f"Corrected score {corrected['mean']:.3f}" in table
    assert "random sample" in table


def test_two_people_are_also_held_against_each_other(tmp_path: Path, home: Path) -> None:
    folder, people = judged_run(tmp_path)
    give_labels(folder, people, "ann", 40)
    give_labels(folder, {key: 1 - score if key[0] < 6 else score for key, score in people.items()}, "bob", 40)

    report = json.loads(run_command("eval", "agreement", str(folder), "--json").out)

    assert [each["person"] for each in report["people"]] == ["ann", "bob"]
    assert report["everybody"]["labels"] == 40
    assert report["between_people"]["n"] == 40
    assert 0.5 < report["between_people"]["value"] < 1


def test_labels_serve_the_same_answers_under_another_judge_and_no_others(tmp_path: Path, home: Path) -> None:
    folder, people = judged_run(tmp_path)
    give_labels(folder, people, "ann", 40)
    better = {task: [people[task, 0], people[task, 1]] for task in range(60)}
    origin = {"kind": "rescore", "run_id": "5e6f", "folder": str(folder)}
    again = write_run(tmp_path / "outputs/evals/quiz--m/7a8b", better, origin=origin)
    other = write_run(tmp_path / "outputs/evals/quiz--m/9c0d", better)

    known = json.loads(run_command("eval", "agreement", str(again), "--labels", "5e6f", "--json").out)
    refused = run_command("eval", "agreement", str(other), "--labels", "5e6f")

    assert known["people"][0]["kappa"]["value"] == 1
    assert known["people"][0]["kappa"]["interval"]["low"] < 0.95, "40 labels prove no perfection"
    assert refused.code == 2
    assert "not a re-score of 5e6f" in refused.err


def test_a_run_without_labels_or_without_the_metric_says_what_to_do(tmp_path: Path, home: Path) -> None:
    folder, people = judged_run(tmp_path)

    assert "proctor eval label 5e6f" in run_command("eval", "agreement", str(folder)).err
    give_labels(folder, people, "ann", 12)
    assert "did you mean 'flat'" in run_command("eval", "agreement", str(folder), "--metric", "flt").err
    flat = run_command("eval", "agreement", str(folder), "--metric", "flat")
    assert flat.code == 0, "a judge that says the same of everything agrees by chance only"


def test_labels_of_rollouts_that_the_judge_did_not_score_are_left_out() -> None:
    report = examine_judge({(0, 0): 1.0}, {"ann": {(0, 0): 1.0, (9, 9): 0.0}})

    assert report.people[0].labels == 1
    assert report.corrected.labelled == 1
