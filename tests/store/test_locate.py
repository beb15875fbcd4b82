"""Where runs are put, and which are forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor.store.locate import folder_of_runs, list_newest_first, prune_journals, saved_base


@pytest.mark.parametrize(
    ("env_id", "model", "name"),
    [
        ("gsm8k", "openai/gpt-4.1-mini", "gsm8k--openai--gpt-4.1-mini"),
        ("owner/my-env", "local", "owner--my-env--local"),
        ("env", "host:8000/a\\b", "env--host-8000--a--b"),
        ("..", "", "unnamed--unnamed"),
        ("a\nb\x1b[31m", "m", "a_b_[31m--m"),
    ],
)
def test_a_run_lies_in_a_folder_named_after_environment_and_model(env_id: str, model: str, name: str) -> None:
    assert folder_of_runs(Path("outputs"), env_id, model) == Path("outputs/evals") / name


def test_a_name_too_long_for_a_folder_is_cut_and_still_its_own() -> None:
    one, other = (folder_of_runs(Path(), "é" * 300 + last, "m", "t=1").name for last in "ab")

    assert one != other
    assert len(one.encode()) <= 240


def test_results_are_saved_with_the_environment_where_it_is_a_folder_here(tmp_path: Path) -> None:
    (tmp_path / "my_env").mkdir()

    assert saved_base(None, str(tmp_path), "my_env") == tmp_path / "my_env" / "outputs"
    assert saved_base(None, str(tmp_path), "other") == Path("outputs")
    assert saved_base("elsewhere", str(tmp_path), "my_env") == Path("elsewhere")


def test_the_newest_runs_come_first_and_the_oldest_journals_are_forgotten(tmp_path: Path) -> None:
    runs = [tmp_path / "evals" / group / name for group, name in ("ax", "bx", "ay", "by")]
    for age, run in enumerate(runs):
        run.mkdir(parents=True)
        (run / "results.jsonl").touch()
        os.utime(run, (1000 - age, 1000 - age))

    folders = [tmp_path / "evals" / group for group in "ab"]
    assert list_newest_first(*folders, tmp_path / "nowhere") == runs

    prune_journals(tmp_path, kept=3)
    assert list_newest_first(*folders) == runs[:3]
