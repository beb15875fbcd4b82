"""The `proctor env` commands as a user types them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.packages.scaffold import STYLES
from tests.conftest import Ran

Proctor = Callable[..., Ran]

BROKEN = (
    '"""Breaks."""\nprint("noise")\ndef load_environment(size: int = 3):\n    raise RuntimeError("no data")\n'
)


def environment(folder: Path, name: str, source: str) -> None:
    path = folder / "environments" / name / f"{name}.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)


def test_a_new_user_follows_what_init_prints(proctor: Proctor) -> None:
    made = proctor("env", "init", "my-env")
    commands = [line.split() for line in made.stdout.partition("Next:\n")[2].splitlines()]

    assert made.code == 0
    assert [command[0] for command in commands] == ["proctor", "proctor", "pytest"]
    assert commands[0][1:] == ["eval", "run", "my-env", "-m", "local"]
    assert proctor(*commands[0][1:-1], "scripted", "--json").summary["coverage"] == 1.0
    assert proctor(*commands[1][1:], "--strict").stdout.startswith("my-env: clean.")
    assert subprocess.run([sys.executable, "-m", *commands[2]], cwd=made.cwd, check=False).returncode == 0


@pytest.mark.parametrize("style", [style for style in STYLES if style not in ("judge", "templates")])
def test_every_style_passes_its_own_check(proctor: Proctor, style: str) -> None:
    proctor("env", "init", "my-env", "--style", style)

    done = proctor("env", "check", "my-env", "--strict", "--json")

    told = json.loads(done.stdout)
    assert (done.code, told["findings"]) == (0, [])
    assert told["rewards"] == {"oracle": 1.0, "empty": 0.0, "random": 0.0, "exchanged": 0.0}


def test_the_templates_style_passes_its_check_is_listed_and_plays_every_task(proctor: Proctor) -> None:
    made = proctor("env", "init", "my-env", "--style", "templates")
    folder = made.cwd / "environments/my_env"
    assert {file.name for file in folder.iterdir()} >= {"env.py", "tasks.py", "pyproject.toml", "tests"}

    told = json.loads(proctor("env", "check", "my-env", "--strict", "--json").stdout)
    assert (told["errors"], told["warnings"]) == (0, 0)
    assert (told["rewards"]["empty"], told["rewards"]["random"]) == (0.0, 0.0)

    (entry,) = [
        each for each in json.loads(proctor("env", "list", "--json").stdout) if each["kind"] == "local"
    ]
    assert (entry["name"], entry["problem"]) == ("my-env", "")

    played = json.loads(proctor("eval", "run", "my-env", "-m", "scripted", "--all", "--json").stdout)
    assert played["summary"]["scored"] == 5


def test_the_judge_style_is_judged_by_the_embedded_model(proctor: Proctor) -> None:
    proctor("env", "init", "my-env", "--style", "judge")

    told = json.loads(proctor("env", "check", "my-env", "-n", "2", "--json", timeout=300).stdout)

    assert told["errors"] == 0
    assert (told["rewards"]["oracle"], told["rewards"]["empty"]) == (1.0, 0.0)


def test_at_a_terminal_init_asks_which_style(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    os.write(controller, b"2\n")

    done = subprocess.run(
        [sys.executable, "-m", "proctor", "env", "init", "my-env"],
        stdin=terminal,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    os.close(controller)
    os.close(terminal)
    assert "1  single    one question, one answer" in done.stdout
    assert "class GuessNumber" in (tmp_path / "environments/my_env/my_env.py").read_text()


def test_a_name_that_cannot_be_is_refused_with_exit_2(proctor: Proctor, tmp_path: Path) -> None:
    done = proctor("env", "init", "My Env")

    assert done.code == 2
    assert "try 'my-env'" in done.stderr
    assert not (tmp_path / "environments").exists()


def test_list_shows_one_line_for_each(proctor: Proctor, tmp_path: Path) -> None:
    environment(tmp_path, "broken", BROKEN)
    environment(tmp_path, "syntax", "def load_environment(:\n")

    lines = proctor("env", "list").stdout.splitlines()
    told = {entry["name"]: entry for entry in json.loads(proctor("env", "list", "--json").stdout)}

    assert lines[1].split() == ["broken", "-", "local", "environments/broken", "Breaks."]
    assert "cannot be run: syntax.py:1: SyntaxError" in lines[2]
    assert told["echo"]["kind"] == "registered"


def test_info_shows_what_a_user_needs_to_run_it(proctor: Proctor) -> None:
    proctor("env", "init", "my-env", "--style", "tools")

    shown = proctor("env", "info", "my-env")
    told = json.loads(proctor("env", "info", "my-env", "--json").stdout)

    for words in (
        "my-env 0.1.0",
        "tasks      10",
        "max_turns  int = 6",
        "correct  weight 1",
        "count  Count how",
    ):
        assert words in shown.stdout
    assert told["loaded"]["example"]["answer"] == "19"
    assert told["defaults"] == {"num_examples": 5, "rollouts_per_example": 2}
    assert len(told["content_hash"]) == 16


def test_info_on_what_cannot_be_loaded_says_so_and_shows_the_rest(proctor: Proctor, tmp_path: Path) -> None:
    environment(tmp_path, "broken", BROKEN)

    done = proctor("env", "info", "broken")
    told = json.loads(proctor("env", "info", "broken", "--json").stdout)

    assert done.code == 1
    assert "Breaks." in done.stdout
    assert "size  int = 3" in done.stdout
    assert "noise" not in done.stdout
    assert "It cannot be loaded: load_environment() of 'broken' raised RuntimeError: no data" in done.stderr
    assert told["loaded"] is None


def test_check_prints_findings_and_a_summary_and_exits_with_1(proctor: Proctor, tmp_path: Path) -> None:
    environment(tmp_path, "broken", BROKEN)

    done = proctor("env", "check", "broken")

    *findings, summary = done.stdout.splitlines()
    assert done.code == 1
    assert [line.split(" ")[1] for line in findings] == ["E105", "W113", "W311"]
    assert findings[1].startswith("environments/broken: W113 ")
    assert summary == "broken: 1 error, 2 warnings"


@pytest.mark.parametrize(
    "words",
    [
        ("env", "check", "nowhere"),
        ("env", "check", "echo", "-a", "[1]"),
        ("env", "check", "echo", "-n", "0"),
        ("env", "check", "echo", "-m", "openai/gpt-4.1-mini"),
        ("env", "info", "nowhere"),
        ("env", "install"),
        ("env", "install", "owner/name"),
        ("env", "init", "my-env", "--style", "nothing"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_ends_with_2_and_a_sentence(proctor: Proctor, words: tuple[str, ...]) -> None:
    done = proctor(*words)

    assert done.code == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_warnings_fail_only_when_asked_to(proctor: Proctor) -> None:
    assert proctor("env", "check", "echo", "-n", "2").code == 0
    assert proctor("env", "check", "echo", "-n", "2", "--strict").code == 1
