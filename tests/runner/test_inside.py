"""The process of a hosted run, as its server sees it: what it logs, and what it says it played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.runner.inside.attempt_input import (
    EXIT_REPORTED,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    AttemptInput,
    encode_attempt_input,
)
from tests.runner.server import Answer, Hearing, hearing

SUMS = """
from proctor import Rubric, SingleTurnEnv

def load_environment():
    rows = [{"question": f"say {n}", "answer": ""} for n in range(3)]
    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0), sampling_args={"max_tokens": 16})
"""
DEFAULTS = """
[project]
name = "sums"
version = "1.0"
[tool.proctor.eval]
rollouts_per_example = 2
"""
REPLY = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def answer(path: str, body: bytes) -> Answer:
    if path.endswith("/chat/completions"):
        return Answer(200, json.dumps(REPLY).encode())
    return Answer(200, b"" if path.endswith(".jsonl") else b"{}")


def play(server: Hearing, folder: Path, code: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Play an attempt at ada/sums@1.0, which is this code."""
    home = folder / "environments" / "sums"
    home.mkdir(parents=True, exist_ok=True)
    (home / "sums.py").write_text(code)
    (home / "pyproject.toml").write_text(DEFAULTS)
    attempt = AttemptInput(
        run_id="run-1",
        attempt=1,
        env_id="sums",
        environment="ada/sums@1.0",
        content_hash="f00d",
        model="tiny",
        settings=settings,
    )
    return subprocess.run(
        [sys.executable, "-m", "proctor.runner.inside"],
        input=encode_attempt_input(attempt).decode(),
        cwd=folder,
        env={**os.environ, URL_VARIABLE: server.url, TOKEN_VARIABLE: "t"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_the_metadata_of_a_hosted_run_names_the_version_the_hub_has(folder: Path) -> None:
    with hearing(answer) as server:
        done = play(server, folder, SUMS, num_examples=1)
        assert done.returncode == EXIT_REPORTED, done.stderr
        told = server.ending.metadata

    assert told["env_id"] == "ada/sums@1.0"
    assert (told["environment"]["version"], told["environment"]["content_hash"]) == ("1.0", "f00d")
    assert told["resolved"]["sampling_args"] == {"max_tokens": 16}
    assert told["resolved"]["package_defaults"] == {"rollouts_per_example": 2}
    assert told["origins"]["rollouts_per_example"] == "[tool.proctor.eval] of sums/pyproject.toml"
    assert (told["origins"]["num_examples"], told["origins"]["model"]) == ("the request", "the server")
    assert told["summary"]["planned"] == 2


TALKATIVE = """
import logging, subprocess
from proctor import Rubric, SingleTurnEnv

def reward(completion, answer):
    logging.getLogger("sums.scoring").info("looks at %s", answer)
    print("prints")
    subprocess.run(["sh", "-c", "echo has a child"])
    print("x" * 30_000)
    raise KeyError("no such thing")

def load_environment():
    return SingleTurnEnv([{"question": "say 0", "answer": "first"}], rubric=Rubric(reward))
"""


def test_a_hosted_run_reports_what_its_environment_logs_prints_and_raises(folder: Path) -> None:
    with hearing(answer) as server:
        done = play(server, folder, TALKATIVE, rollouts_per_example=1)
        assert done.returncode == EXIT_REPORTED, done.stderr
        lines = server.log

    assert ("INFO", "sums.scoring: looks at first") in lines
    assert ("PRINT", "prints") in lines
    assert ("PRINT", "has a child") in lines
    assert any(level == "PRINT" and text.endswith("more bytes cut)") for level, text in lines)
    errors = [text for level, text in lines if level == "ERROR"]
    assert any("task 0, rollout 0: grader_error" in text for text in errors)
    assert any(text.endswith("in reward") for text in errors), "a traceback is several lines"


def test_a_hosted_run_that_exits_while_it_is_loaded_is_explained(folder: Path) -> None:
    with hearing(answer) as server:
        code = "import sys\ndef load_environment():\n    sys.exit(3)\n"
        assert play(server, folder, code).returncode == EXIT_REPORTED
        ending = server.ending
    assert ending.status == "failed"
    assert ending.cause is not None
    assert "called sys.exit(3)" in ending.cause.message


def test_a_hosted_run_that_crashes_leaves_its_stack_as_its_last_output(folder: Path) -> None:
    code = SUMS.replace("lambda completion: 1.0", "lambda completion: __import__('ctypes').string_at(0)")
    with hearing(answer) as server:
        done = play(server, folder, code)
    assert done.returncode < 0
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_a_hosted_run_says_that_it_waits_for_its_provider(folder: Path) -> None:
    asked: list[str] = []

    def busy_at_first(path: str, body: bytes) -> Answer:
        if path.endswith("/chat/completions"):
            asked.append(path)
            if len(asked) == 1:
                return Answer(429, b'{"error": {"message": "slow down"}}')
        return answer(path, body)

    with hearing(busy_at_first) as server:
        assert play(server, folder, SUMS, num_examples=1).returncode == EXIT_REPORTED
        lines = server.log
    assert any(level == "WARNING" and "Waiting for tiny until" in text for level, text in lines)


MANY = """
from proctor import Rubric, SingleTurnEnv

def load_environment():
    rows = [{"question": f"say {n}", "answer": ""} for n in range(400)]
    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0))
"""


def test_a_hosted_run_stops_once_its_mean_is_known(folder: Path) -> None:
    with hearing(answer) as server:
        few = {"num_examples": -1, "rollouts_per_example": 1, "max_concurrent": 2}
        done = play(server, folder, MANY, **few, until_halfwidth=0.1)
        assert done.returncode == EXIT_REPORTED, done.stderr
        ending, planned = server.ending, [each.planned for each in server.reports if each.planned]

    stop = ending.metadata["early_stop"]
    assert (ending.status, stop["reached"], stop["available"]) == ("finished", True, 400)
    assert stop["tasks"] < 400
    assert planned[-1] == ending.metadata["planned"] < 400, "the server counts what is played as the whole"
    assert ending.metadata["summary"]["coverage"] == 1.0


def test_a_hosted_run_stops_once_it_is_better_than_a_run_on_the_server(folder: Path) -> None:
    lost = b"".join(
        b'{"example_id":%d,"rollout":0,"outcome":"scored","reward":0.0}\n' % task for task in range(400)
    )

    def with_baseline(path: str, body: bytes) -> Answer:
        return Answer(200, lost) if path == "/runner/baseline.jsonl" else answer(path, body)

    with hearing(with_baseline) as server:
        done = play(
            server, folder, MANY, num_examples=-1, rollouts_per_example=1, until_decided="run-0f3a9c2b1d"
        )
        assert done.returncode == EXIT_REPORTED, done.stderr
        stop = server.ending.metadata["early_stop"]

    assert (stop["verdict"], stop["baseline"], stop["reached"]) == ("better", "run-0f3a9c2b1d", True)
    assert stop["tasks"] < 400


def test_a_baseline_that_is_gone_fails_the_run_with_a_sentence(folder: Path) -> None:
    def without_baseline(path: str, body: bytes) -> Answer:
        if path == "/runner/baseline.jsonl":
            return Answer(
                404, json.dumps({"code": "not_found", "message": "There is no run 'run-1'."}).encode()
            )
        return answer(path, body)

    with hearing(without_baseline) as server:
        done = play(server, folder, MANY, num_examples=2, rollouts_per_example=1, until_decided="run-1")
        assert done.returncode == EXIT_REPORTED, done.stderr
        ending = server.ending

    assert ending.status == "failed"
    assert ending.cause is not None
    assert "There is no run 'run-1'" in ending.cause.message
