"""What somebody who begins an environment gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.packages.loading import find_environment, package_defaults, version_of
from proctor.packages.scaffold import STYLES, plan, write

RULES = "A,ARG,B,C4,E,F,FA,FURB,I,ISC,N,PERF,PIE,PT,PTH,RET,RUF,SIM,UP,W"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("style", STYLES)
def test_the_tests_of_a_new_environment_pass_unchanged(style: str) -> None:
    made = plan("my-env", style)
    write(made)

    assert " passed" in ran("pytest", "-q", "-p", "no:cacheprovider", cwd=made.folder)


@pytest.mark.parametrize("style", STYLES)
def test_a_new_environment_is_clean_code(style: str) -> None:
    made = plan("my-env", style)
    write(made)

    ran("ruff", "check", "--isolated", "--line-length", "110", "--select", RULES, ".", cwd=made.folder)
    ran("ruff", "format", "--isolated", "--line-length", "110", "--check", ".", cwd=made.folder)


def test_a_new_environment_has_a_version_and_defaults() -> None:
    write(plan("my-env"))

    found = find_environment("my-env")

    assert version_of(found) == "0.1.0"
    assert package_defaults(found)[0] == {"num_examples": 5, "rollouts_per_example": 2}


def test_nothing_is_overwritten(here: Path) -> None:
    write(plan("my-env"))
    (here / "environments/my_env/my_env.py").write_text("mine")

    with pytest.raises(ConfigError, match=r"environments/my_env already exists"):
        plan("my_env", "multi")
    assert (here / "environments/my_env/my_env.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My Env", "try 'my-env'"),
        ("myEnv", "try 'my-env'"),
        ("../escape", "try 'escape'"),
        ("9", "try 'my-env'"),
        ("", "try 'my-env'"),
        ("lambda", "a Python keyword; try 'lambda-env'"),
        ("json", "a module of the standard library; try 'json-env'"),
        ("msgspec", "'msgspec' is already installed; try 'my-msgspec'"),
        ("echo", "'echo' is already registered; try 'my-echo'"),
    ],
)
def test_a_name_that_cannot_be_is_answered_with_one_that_can(name: str, words: str, here: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        plan(name)
    assert list(here.iterdir()) == []


def test_an_unknown_style_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tools'"):
        plan("my-env", "tool")
