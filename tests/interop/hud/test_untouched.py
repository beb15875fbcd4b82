"""An environment that imports hud, played as it is: found by its import, in its own Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.interop.hud.conftest import hud_serving, quiet

if TYPE_CHECKING:
    import subprocess

    from tests.conftest import Provider, Ran

pytestmark = pytest.mark.interop

TASKS = Path(__file__).with_name("environment") / "tasks.py"
ANSWERS = {"strawberry": "3", "'pear'": "none", "Say pear": "pear", "Anything": "hm"}
SECONDS = 900
"""The first test installs hud."""


def test_each_task_earns_what_hud_gives(
    proctor: Callable[..., Ran],
    provider: Callable[..., Provider],
    run_hud: Callable[..., subprocess.CompletedProcess[str]],
    hud: Path,
    tmp_path: Path,
) -> None:
    words = ["eval", "run", str(TASKS), "openai_compatible", "--all", "--group", "2", "-m", "m", "--json"]
    ran = proctor(*words, "-b", provider(ANSWERS).url, timeout=SECONDS)

    scored = {row["example_id"]: row["reward"] for row in ran.rows if row["outcome"] == "scored"}
    assert sorted(scored.values()) == [0.0, 0.75, 1.0]
    with hud_serving(hud, TASKS.with_name("env.py"), quiet(tmp_path), tmp_path) as port:
        for row in ran.rows:
            if row["outcome"] == "scored":
                info, answer = row["info"], row["completion"][-1]["content"]
                words = [
                    "task",
                    "grade",
                    info["template"],
                    "-a",
                    json.dumps(info["args"]),
                    "--answer",
                    answer,
                ]
                graded = run_hud(*words, "-u", f"tcp://127.0.0.1:{port}")
                assert float(graded.stdout) == row["reward"], graded.stderr
    assert {row["outcome"] for row in ran.rows if row["example_id"] == "broken"} == {"grader_error"}
    assert {row["outcome"] for row in ran.rows if row["example_id"] == "dying"} == {"environment_error"}
    prompts = [row["prompt"][0]["content"] for row in ran.rows if "how many" in str(row["prompt"])]
    assert all(prompt.startswith("Visit 1:") for prompt in prompts), "rollouts share no process"


def test_workers_and_resume_play_it_too(
    proctor: Callable[..., Ran], provider: Callable[..., Provider], tmp_path: Path
) -> None:
    url = provider(ANSWERS).url
    words = ["eval", "run", str(TASKS), "openai_compatible", "--all", "-m", "m", "-b", url, "-s", "--json"]
    first = proctor(*words, "-w", "2", "--min-coverage", "0.1", timeout=SECONDS)
    assert first.code == 0, first.stderr
    again = proctor(*words, "--resume", str(first.folder), "--min-coverage", "0.1", timeout=SECONDS)

    assert again.code == 0, again.stderr
    assert [row["outcome"] for row in first.rows].count("scored") == 3
    assert [row["outcome"] for row in again.rows].count("scored") == 3
