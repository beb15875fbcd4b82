"""Tasks as Inspect's documentation teaches them, played by Inspect and by Proctor: every rollout has the same
messages and the same scores."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.inspect.conftest import TASKS
from tests.interop.inspect.scripts import SCRIPTS
from tests.interop.verifiers.answering import answering

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.interop

ROLLOUTS = 4
SECONDS = 600
ORIGINAL = Path(__file__).with_name("original.py")


def play_original(python: Path, name: str) -> list[dict[str, Any]]:
    with answering(SCRIPTS[name]) as url:
        words = [str(python), str(ORIGINAL), name, url, str(ROLLOUTS)]
        done = subprocess.run(words, cwd=TASKS, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """The rollouts in an order that both tools share."""
    return sorted(
        json.dumps(
            [
                str(row["example_id"]),
                row["messages"],
                {name: round(value, 9) for name, value in sorted(row["metrics"].items())},
                row["limit"],
            ]
        )
        for row in rows
    )


def as_original(row: dict[str, Any]) -> dict[str, Any]:
    said = [[each["role"], each.get("content") or ""] for each in (*row["prompt"], *row["completion"])]
    stop = row["stop_condition"] or ""
    limit = stop.removesuffix("_limit") if stop.endswith("_limit") else None
    return {**row, "messages": said, "limit": limit}


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_untouched_task_scores_what_inspect_gives(
    name: str, inspect_python: Path, proctor: Callable[..., Ran]
) -> None:
    original = play_original(inspect_python, name)
    words = ["-n", "-1", "-r", str(ROLLOUTS), "-c", "1", "-m", "m", "--json", "-s"]
    with answering(SCRIPTS[name]) as url:
        ran = proctor("eval", "run", str(TASKS / name), *words, "-b", url, timeout=SECONDS)

    assert ran.code == 0, ran.stderr
    assert comparable([as_original(row) for row in ran.rows]) == comparable(original)
    assert all(row["reward"] == next(iter(row["metrics"].values())) for row in ran.rows)
    assert len({row["reward"] for row in ran.rows}) > 1, "answers that all earn the same would prove nothing"
