"""run.log: everything that an environment logs and prints, and why rollouts failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Run = Callable[..., Ran]

TALKATIVE = """
import ctypes, logging, os, subprocess, sys, threading
from proctor import Rubric, SingleTurnEnv

logger = logging.getLogger(__name__)
print(__name__, "is imported")

def reward(completion, answer):
    name = __name__
    print(f"{name} prints {answer}")
    print(f"{name} complains", file=sys.stderr)
    logger.info("%s logs %s", name, answer)
    logger.debug("%s whispers", name)
    subprocess.run(["sh", "-c", f"echo {name} has a child; echo {name} has a loud child >&2"])
    os.write(1, f"{name} writes\\n".encode())
    print("x" * 30_000)
    thread = threading.Thread(target=print, args=(f"{name} has a thread",))
    thread.start()
    thread.join()
    return 1.0

def broken(completion, answer):
    raise KeyError("no such thing")

def crash(completion, answer):
    ctypes.string_at(0)

def load_environment(kind="talkative"):
    if kind == "exit":
        sys.exit(3)
    rows = [{"question": "say 0", "answer": "first"}]
    return SingleTurnEnv(rows, rubric=Rubric({"talkative": reward, "broken": broken, "crash": crash}[kind]))
"""
ONCE = ("-m", "scripted", "-r", "1")


@pytest.fixture(autouse=True)
def environments(tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        home = tmp_path / "environments" / name
        home.mkdir(parents=True)
        (home / f"{name}.py").write_text(TALKATIVE)


def logs_under(folder: Path) -> dict[str, str]:
    """The log of each environment's run."""
    return {file.parts[-3].partition("--")[0]: file.read_text() for file in folder.glob("**/run.log")}


def test_everything_an_environment_logs_and_prints_is_in_the_log(proctor: Run, tmp_path: Path) -> None:
    ran = proctor("eval", "alpha", *ONCE, "--json", "-s")

    text = (ran.folder / "run.log").read_text()
    for line in (
        "PRINT alpha is imported",
        "PRINT alpha prints first",
        "PRINT alpha complains",
        "INFO alpha: alpha logs first",
        "PRINT alpha has a child",
        "PRINT alpha has a loud child",
        "PRINT alpha writes",
        "PRINT alpha has a thread",
    ):
        assert line in text, line
    assert "(11,024 more bytes cut)" in text
    assert "whispers" not in text
    assert "alpha has a child" in ran.stderr, "and what it prints is still seen"


def test_with_v_debug_lines_of_any_logger_are_in_the_log(proctor: Run) -> None:
    ran = proctor("eval", "alpha", *ONCE, "--json", "-s", "-v")
    assert "DEBUG alpha: alpha whispers" in (ran.folder / "run.log").read_text()


def test_in_a_suite_each_line_is_in_the_log_of_its_environment(proctor: Run, tmp_path: Path) -> None:
    proctor("eval", "alpha,beta", *ONCE, "-s", "-A")

    logs = logs_under(tmp_path / "environments")
    assert sorted(logs) == ["alpha", "beta"]
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        for line in (f"{name} is imported", f"{name} prints first", f"{name}: {name} logs first"):
            assert line in logs[name]
        for line in (f"{other} is imported", f"{other} prints first", f"{other}: {other} logs first"):
            assert line not in logs[name]


def test_the_error_of_each_rollout_is_in_the_log_with_its_traceback(proctor: Run) -> None:
    ran = proctor("eval", "alpha", *ONCE, "--json", "-s", "-a", '{"kind": "broken"}')

    text = (ran.folder / "run.log").read_text()
    assert re.search(r"ERROR task 0, rollout 0: grader_error while in scoring: .*no such thing", text)
    assert "Traceback (most recent call last)" in text
    assert re.search(r'alpha\.py", line \d+, in broken', text)
    assert "Traceback" not in ran.stderr


def test_workers_log_to_the_same_file(proctor: Run) -> None:
    ran = proctor("eval", "alpha", *ONCE, "--json", "-s", "-v", "-w", "2")

    text = (ran.folder / "run.log").read_text()
    assert re.search(r"INFO alpha: worker \d: alpha logs first", text)
    assert re.search(r"DEBUG alpha: worker \d: alpha whispers", text)
    assert re.search(r"PRINT worker \d: alpha prints first", text)
    assert re.search(r"PRINT worker \d: alpha has a child", text)


def test_a_crash_leaves_its_stack_in_the_log(proctor: Run, tmp_path: Path) -> None:
    ran = proctor("eval", "alpha", *ONCE, "-s", "-a", '{"kind": "crash"}')

    assert ran.code < 0
    text = logs_under(tmp_path / "environments")["alpha"]
    assert "Fatal Python error: Segmentation fault" in text
    assert re.search(r'alpha\.py", line \d+ in crash', text)


def test_an_environment_that_exits_while_it_is_loaded_is_explained(proctor: Run, tmp_path: Path) -> None:
    ran = proctor("eval", "alpha", *ONCE, "-a", '{"kind": "exit"}')
    assert (ran.code, ran.stdout) == (2, "")
    assert "load_environment() of 'alpha' called sys.exit(3)" in ran.stderr

    (tmp_path / "leaver.py").write_text("raise SystemExit('no key')")
    ran = proctor("eval", "./leaver.py", *ONCE)
    assert ran.code == 2
    assert "called sys.exit('no key')" in ran.stderr
