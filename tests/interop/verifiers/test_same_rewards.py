"""Environments as verifiers' documentation teaches them: played by verifiers, by Proctor as they are, and by
Proctor with nothing but the import changed. Every rollout gets the same reward and the same metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.verifiers.answering import answering
from tests.interop.verifiers.conftest import ENVIRONMENTS
from tests.interop.verifiers.scripts import SCRIPTS

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.interop

ROLLOUTS = 4
SECONDS = 600
TOOL_METRICS = ("num_turns", "tool_errors", "math_timeouts")
"""Counted by only one of the two, in some environments."""
ORIGINAL = Path(__file__).with_name("original.py")
WITH_THEIR_PACKAGES = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module("proctor", run_name="__main__", alter_sys=True)
"""
"""Ours, with `datasets` and the like from the other virtual environment behind our own packages."""


@lru_cache
def play_original(python: Path, name: str) -> dict[str, Any]:
    """What verifiers itself makes of it; once for all tests of an environment."""
    with answering(SCRIPTS[name]) as url:
        done = subprocess.run(
            [str(python), str(ORIGINAL), str(ENVIRONMENTS / f"{name}.py"), url, str(ROLLOUTS), "{}"],
            env={**os.environ, "JUDGE_URL": url},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def flags(file: Path, url: str) -> list[str]:
    how_many = ["-n", "-1", "-r", str(ROLLOUTS), "-c", "1"]
    return ["eval", "run", str(file), *how_many, "-m", "m", "-b", url, "--json", "-s"]


def comparable(rows: list[dict[str, Any]]) -> list[Any]:
    """The rollouts in an order that both tools share, without what only one of them measures."""
    return sorted(
        json.dumps(
            [
                row["example_id"],
                [[each[0], each[1]] for each in row["completion"]],
                round(row["reward"], 9),
                {name: round(value, 9) for name, value in sorted(row["metrics"].items())},
                row["stop_condition"],
            ]
        )
        for row in rows
    )


def scores(rows: list[dict[str, Any]]) -> list[Any]:
    """Rewards and the author's own metrics, without those that each tool adds by itself."""
    return sorted(
        json.dumps(
            [
                row["example_id"],
                round(row["reward"], 9),
                {
                    name: round(value, 9)
                    for name, value in sorted(row["metrics"].items())
                    if name not in TOOL_METRICS
                },
            ]
        )
        for row in rows
    )


def turns(rows: list[dict[str, Any]]) -> list[Any]:
    """Who spoke when, and why it ended."""
    return sorted(
        [row["example_id"], [role for role, _ in row["completion"]], row["stop_condition"]] for row in rows
    )


def as_original(row: dict[str, Any]) -> dict[str, Any]:
    completion = [[each["role"], each.get("content") or ""] for each in row["completion"]]
    return {**row, "completion": completion}


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_untouched_environment_earns_what_verifiers_gives(
    name: str, verifiers_python: Path, proctor: Callable[..., Ran]
) -> None:
    original = play_original(verifiers_python, name)
    with answering(SCRIPTS[name]) as url:
        ran = proctor(*flags(ENVIRONMENTS / f"{name}.py", url), environ={"JUDGE_URL": url}, timeout=SECONDS)

    assert ran.code == 0, ran.stderr
    assert comparable([as_original(row) for row in ran.rows]) == comparable(original["rows"])
    rewards = {row["reward"] for row in ran.rows}
    assert len(rewards) > 1, "answers that all earn the same would prove nothing"


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_with_only_the_import_changed_it_earns_the_same(
    name: str, verifiers_python: Path, tmp_path: Path
) -> None:
    if verifiers_python.resolve().name != Path(sys.executable).resolve().name:
        pytest.skip("its packages are for another Python")
    file = tmp_path / f"{name}.py"
    source = (ENVIRONMENTS / f"{name}.py").read_text()
    file.write_text(source.replace("import verifiers as vf", "import proctor as vf"))
    packages = next((verifiers_python.parents[1] / "lib").glob("python3*/site-packages"))
    original = play_original(verifiers_python, name)
    with answering(SCRIPTS[name]) as url:
        done = subprocess.run(
            [sys.executable, "-c", WITH_THEIR_PACKAGES, str(packages), *flags(file, url)],
            cwd=tmp_path,
            env={**os.environ, "JUDGE_URL": url},
            timeout=SECONDS,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stderr[-3000:]
    lines = (tmp_path / json.loads(done.stdout)["folder"] / "results.jsonl").read_text().splitlines()
    rows = [as_original(json.loads(line)) for line in lines]
    assert scores(rows) == scores(original["rows"])
    assert turns(rows) == turns(original["rows"])
