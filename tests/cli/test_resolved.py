"""Reports and metadata name what was used, not what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.env.group import EnvGroup
from proctor.env.multi_turn import SingleTurnEnv
from proctor.evaluation.prepare import prepare
from proctor.evaluation.prepare_objects import prepare_instance
from proctor.evaluation.resolved import resolve_settings
from proctor.models.scripted import Scripted
from tests.conftest import Ran

Run = Callable[..., Ran]

SHORT_ANSWERS = """
from proctor import Rubric, SingleTurnEnv

def load_environment(count=12, lazy=False):
    rows = [{"question": f"say {n}", "answer": ""} for n in range(count)]
    source = (lambda: iter(rows)) if lazy else rows
    return SingleTurnEnv(source, rubric=Rubric(lambda completion: 1.0), sampling_args={"max_tokens": 16})
"""


@pytest.fixture
def short(tmp_path: Path) -> str:
    (tmp_path / "short.py").write_text(SHORT_ANSWERS)
    return "./short.py"


def test_the_report_names_the_sampling_and_the_limits_that_were_used(proctor: Run, short: str) -> None:
    words = ("-m", "scripted", "-r", "1", "-c", "4", "--max-concurrent-generation", "9", "-T", "0.5")

    report = proctor("eval", short, *words, "-n", "1000", "-A")

    assert "max_tokens 16 (environment), temperature 0.5" in report.stdout
    assert "9 rollouts played, 4 scored" in report.stdout
    assert "all 12 tasks in dataset order (-n 1000 asks for more than there are)" in report.stdout
    assert "tasks × rollouts 12 × 1" in report.stderr


def test_metadata_and_rows_hold_the_resolved_settings(proctor: Run, short: str) -> None:
    ran = proctor("eval", short, "-m", "scripted", "-r", "1", "-n", "1000", "-T", "0.5", "--json")

    resolved = ran.metadata["resolved"]
    assert resolved["sampling_args"] == {"max_tokens": 16, "temperature": 0.5}
    assert resolved["tasks"] == 12
    assert ran.metadata["num_examples"] == 1000, "a resumed run compares what was asked for"
    assert ran.metadata["origins"]["temperature"] == "flag"
    assert {json.dumps(row["model_calls"][0]["sampling"], sort_keys=True) for row in ran.rows} == {
        '{"max_tokens": 16, "temperature": 0.5}'
    }


def test_more_tasks_than_there_are_is_said_at_once_and_only_if_asked_for(proctor: Run, short: str) -> None:
    said = "has 12 tasks, and -n 1000 asks for more; all 12 are evaluated"
    assert said in proctor("eval", short, "-m", "scripted", "-r", "1", "-n", "1000").stderr
    few = proctor("eval", short, "-m", "scripted", "-r", "1", "-a", '{"count": 3}')
    assert "asks for more" not in few.stderr, "nobody asked for the default of 5"
    assert "all 3 tasks" in few.stdout


def test_tasks_that_are_read_lazily_are_counted_at_the_end(proctor: Run, short: str) -> None:
    words = ("-m", "scripted", "-r", "1", "-n", "1000", "-a", '{"lazy": true}')
    ran = proctor("eval", short, *words, "--json")
    assert ran.metadata["resolved"]["tasks"] == 12
    assert ran.metadata["selection"].startswith("all 12 tasks")
    assert "has 12 tasks, and -n 1000 asks for more" in ran.stderr


def test_the_token_limit_that_a_client_adds_is_named(tmp_path: Path, short: str) -> None:
    given = {
        "env_id": str(tmp_path / "short.py"),
        "model": "claude-sonnet-4-5",
        "api_client_type": "anthropic_messages",
        "api_base_url": "http://127.0.0.1:9",
    }
    free = {**given, "extra_env_kwargs": {"sampling_args": {}}}
    assert resolve_settings(prepare(given, {}), 5).sampling_args == {"max_tokens": 16}
    assert resolve_settings(prepare(free, {}), 5).sampling_args["max_tokens"] == 4096


def test_members_with_different_sampling_are_told_apart() -> None:
    rows = [{"question": "1", "answer": "1"}]
    members = [SingleTurnEnv(rows, sampling_args={"max_tokens": size}) for size in (16, 64)]
    group = EnvGroup(members, ["short", "long"])
    prepared = prepare_instance(group, {"temperature": 0.5}, Scripted(["1"]))
    assert resolve_settings(prepared, 2).member_sampling_args == {
        "short": {"max_tokens": 16, "temperature": 0.5},
        "long": {"max_tokens": 64, "temperature": 0.5},
    }
