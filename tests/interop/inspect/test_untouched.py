"""A task of Inspect is an environment like any other: workers, resume, failures, a check."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.inspect.conftest import TASKS

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.interop

SECONDS = 600
RUN = ("eval", "run")
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, includes, scorer
from inspect_ai.solver import generate, solver
import anyio

@solver
def wait(seconds):
    async def solve(state, generate):
        await anyio.sleep(seconds)
        return state
    return solve

@scorer(metrics=[accuracy()])
def broken():
    async def score(state, target):
        raise KeyError("no such thing")
    return score

SAMPLES = [Sample(input=f"say {n}", target=str(n)) for n in range(8)]

@task
def slow(seconds: float = 0.0):
    return Task(dataset=SAMPLES, solver=[wait(seconds), generate()], scorer=includes())

@task
def boxed():
    return Task(dataset=SAMPLES, scorer=includes(), sandbox="docker")

@task
def failing():
    return Task(dataset=SAMPLES, scorer=broken())
"""


@pytest.fixture
def file(tmp_path: Path, inspect_python: Path) -> Path:
    path = tmp_path / "evals.py"
    path.write_text(TASK)
    return path


def count_rows(folder: Path) -> int:
    return sum(len(each.read_bytes().splitlines()) for each in folder.rglob("results.jsonl"))


def test_a_run_that_was_killed_goes_on_where_it_was(
    file: Path, proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    words = [*RUN, f"{file}@slow", "-m", "scripted", "-n", "-1", "-r", "2", "-c", "2"]
    arguments = ["-a", '{"seconds": 0.5}']
    out = tmp_path / "out"
    run: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, "-m", "proctor", *words, *arguments, "-o", str(out)], cwd=tmp_path
    )
    deadline = time.monotonic() + SECONDS
    while count_rows(out) < 3 and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    before = count_rows(out)
    assert 3 <= before < 16

    folder = next(out.rglob("results.jsonl")).parent
    again = proctor(*words, *arguments, "--json", "--resume", str(folder), "-w", "2", timeout=SECONDS)

    assert again.code == 0, again.stderr
    assert count_rows(out) == 16


def test_a_scorer_that_raises_is_an_error_and_not_a_zero(file: Path, proctor: Callable[..., Ran]) -> None:
    ran = proctor(*RUN, f"{file}@failing", "-m", "scripted", "-n", "1", "-r", "1", "--json", timeout=SECONDS)
    assert "grader_error" in ran.stdout
    assert "no such thing" in ran.stdout + ran.stderr


def test_a_rollout_that_takes_too_long_is_ended(file: Path, proctor: Callable[..., Ran]) -> None:
    words = ["-m", "scripted", "-n", "1", "-r", "1", "-a", '{"seconds": 300}', "--timeout", "2", "--json"]
    ran = proctor(*RUN, f"{file}@slow", *words, timeout=250)
    assert '"timeout"' in ran.stdout


def test_a_misspelled_argument_is_named(file: Path, proctor: Callable[..., Ran]) -> None:
    ran = proctor(*RUN, f"{file}@slow", "-m", "scripted", "-a", '{"secs": 1}', timeout=SECONDS)
    assert ran.code != 0
    assert "has no argument 'secs'; it takes seconds" in ran.stderr


def test_without_docker_a_task_that_needs_it_is_refused_before_the_first_model_call(
    file: Path, proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    docker = tmp_path / "programs" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho 'the moon is down' >&2\nexit 1\n")
    docker.chmod(0o755)
    path = {"PATH": f"{docker.parent}{os.pathsep}{os.environ['PATH']}"}
    words = [*RUN, f"{file}@boxed", "-m", "scripted", "-n", "1", "-r", "1", "--json"]
    ran = proctor(*words, environ=path, timeout=SECONDS)
    elsewhere = proctor(*words, "-x", '{"sandbox": "local"}', environ=path, timeout=SECONDS)

    assert ran.code == 2, ran.stderr
    assert "cannot be played here: its samples are played in containers" in ran.stderr
    assert "`docker version` fails here: the moon is down" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert elsewhere.code == 0, elsewhere.stderr


def test_a_check_plays_it(inspect_python: Path, proctor: Callable[..., Ran]) -> None:
    ran = proctor("env", "check", str(TASKS / "arithmetic.py"), timeout=SECONDS)
    assert ran.code == 0, ran.stderr
    assert "written for Inspect" in ran.stdout
    assert "oracle 1.000" in ran.stdout
