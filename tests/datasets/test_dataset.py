from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.datasets.dataset import MOST_PROBLEMS, SelectedTasks, locate_dataset, validate
from proctor.datasets.selection import select_rows
from proctor.errors import ConfigError

HASH = "a" * 64
MEGABYTES = 150
DIFFERENT_LABELS = "'ground_truth' and 'label' mean the same, but have different values; keep one of them."


def write_rows(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_valid_file_is_described(tmp_path: Path) -> None:
    row = {"user_prompt": "2+2?", "ground_truth": "4", "system_prompt": "Count.", "source": "book"}

    report = validate(write_rows(tmp_path / "sums.jsonl", row, row))

    assert report.is_valid
    assert (report.rows, report.mode, report.format) == (2, "prompt", "jsonl")
    assert report.ignored_columns == ("source",)
    assert len(report.sha256) == 64


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "sums.jsonl",
        {"user_promt": "2+2?", "ground_truth": "4"},
        {"user_prompt": "", "label": "4"},
        {"user_prompt": 4, "label": "4"},
        {"user_prompt": "2+2?", "label": "4", "ground_truth": "5"},
        {"user_prompt": "2+2?"},
        {"user_prompt": "2+2?", "label": 4, "metadata": {"a": 1}},
    )

    problems = validate(path).problems

    assert [problem.removeprefix(str(tmp_path)) for problem in problems] == [
        "/sums.jsonl:1: this row has no 'user_prompt'; did you mean 'user_promt'?",
        "/sums.jsonl:2: 'user_prompt' is empty.",
        "/sums.jsonl:3: 'user_prompt' must be a text, not int.",
        f"/sums.jsonl:4: {DIFFERENT_LABELS}",
        "/sums.jsonl:5: this row has no 'ground_truth' (or 'label').",
        "/sums.jsonl:6: this row has 'metadata' and the first row has not; give it to every row or to none.",
    ]


def test_problems_are_kept_within_bounds_and_counted(tmp_path: Path) -> None:
    report = validate(write_rows(tmp_path / "bad.jsonl", *[{"x": 1}] * MOST_PROBLEMS))

    assert report.problem_count == 2 * MOST_PROBLEMS
    assert len(report.problems) == MOST_PROBLEMS
    assert report.describe_problems()[-1] == f"… and {MOST_PROBLEMS} more problems."


def test_an_empty_file_is_a_problem(tmp_path: Path) -> None:
    assert validate(write_rows(tmp_path / "none.jsonl")).problems[0].endswith(":1: the dataset has no rows.")


def test_a_metadata_column_makes_prompts_optional(tmp_path: Path) -> None:
    path = tmp_path / "games.csv"
    path.write_text('metadata,label\n"{""board"": 3}",win\n{},\n[1],x\n')

    report = validate(path)

    assert report.mode == "metadata"
    assert [problem.partition(": ")[2] for problem in report.problems] == [
        "'metadata' is empty; every row needs an object with at least one key.",
        "'metadata' is not an object; every row needs an object with at least one key.",
    ]
    task = SelectedTasks(path, select_rows(3, 1, content_hash=HASH), report.mode)[0]
    assert (task.id, task.prompt, task.info, task.answer) == (0, (), {"board": 3}, "win")


def test_selected_tasks_are_read_in_order_and_know_their_number(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "sums.jsonl", *[{"user_prompt": f"q{n}", "label": n} for n in range(20)])
    selection = select_rows(20, None, content_hash=HASH)

    tasks = SelectedTasks(path, selection, "prompt")

    assert len(tasks) == 2
    assert [task.id for task in tasks] == list(selection.indices)
    assert [task.answer for task in tasks] == list(selection.indices)
    assert tasks[1].prompt == ({"role": "user", "content": f"q{selection.indices[1]}"},)


def test_a_file_that_lost_a_selected_row_is_reported(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "sums.jsonl", {"user_prompt": "q", "label": 1})

    with pytest.raises(ConfigError, match="has changed since its rows were selected"):
        list(SelectedTasks(path, select_rows(9, "all", content_hash=HASH), "prompt"))


def test_a_dataset_is_found_by_its_name(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "sums.jsonl", {})

    assert locate_dataset("sums", tmp_path) == path
    with pytest.raises(ConfigError, match="did you mean 'sums'"):
        locate_dataset("sum", tmp_path)
    write_rows(tmp_path / "sums.csv")
    with pytest.raises(ConfigError, match="ambiguous"):
        locate_dataset("sums", tmp_path)


MEASURED = """
import resource, sys
from pathlib import Path
from proctor.datasets.dataset import SelectedTasks, validate
from proctor.datasets.selection import select_rows
path = Path(sys.argv[1])
report = validate(path)
selection = select_rows(report.rows, None, content_hash=report.sha256)
played = sum(1 for _ in SelectedTasks(path, selection, report.mode))
print(report.is_valid, report.rows, played, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_a_million_rows_are_validated_and_a_tenth_selected_in_150_mb(tmp_path: Path) -> None:
    path, padding = tmp_path / "million.jsonl", "x" * 200
    with path.open("w") as file:
        for number in range(1_000_000):
            file.write(f'{{"user_prompt": "What is {number} + 1? {padding}", "label": "{number + 1}"}}\n')

    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True, timeout=300
    )

    valid, rows, played, megabytes = done.stdout.split()
    assert (valid, rows, played) == ("True", "1000000", "100000")
    assert int(megabytes) < MEGABYTES
