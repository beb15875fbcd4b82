"""An environment that imports hud, played as it is: found by its import, in its own Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dialects.killing import kill_run
from tests.interop.hud.conftest import hud_serving, quiet
from tests.interop.verifiers.answering import Message, answering

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


SHAPES = Path(__file__).with_name("shapes") / "tasks.py"
SAID = {
    "fruit and a color": "a damn green Pear",
    "Who?": "the quick  fox",
    "3 + 2": "about 5",
    "point as JSON": '{"x": 3, "y": 4}',
    "magic word": "please",
    "One.Two.": "one and two",
    "Two.": "two",
    "Answer nothing": "",
    "with spaces": "  ab \n",
}


def answer_shapes(messages: list[Message]) -> Sequence[str]:
    """Depends on the whole conversation, so that a turn that differs shows in a reward."""
    last, turns = str(messages[-1]["content"]), "".join(each["role"][0] for each in messages)
    text = next((text for piece, text in SAID.items() if piece in last), "ok")
    return (f"{text} {turns}" if len(messages) > 1 else text,)


def test_every_shape_of_prompt_and_grade_earns_what_hud_eval_gives(
    proctor: Callable[..., Ran], run_hud: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    words = ["openai_compatible", "--all", "--group", "1", "-m", "m", "--json"]
    with answering(answer_shapes) as url:
        done = run_hud("eval", str(SHAPES), *words, "-y", "-c", f"base_url={url}", "-c", "api_key=x")
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout[done.stdout.index("{") :])["runs"]
    theirs = {run["slug"]: None if run["is_error"] else run["reward"] for run in runs}
    with answering(answer_shapes) as url:
        ran = proctor("eval", "run", str(SHAPES), *words, "-b", url, timeout=SECONDS)

    ours = {row["example_id"]: row["reward"] for row in ran.rows}
    assert ours == theirs
    assert len([reward for reward in ours.values() if reward is None]) == 7, (
        "grades and prompts that are none"
    )
    assert len(set(ours.values())) > 10, "answers that all earn the same would prove nothing"


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


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_is_killed_resumes_and_leaves_no_process(
    proctor: Callable[..., Ran], provider: Callable[..., Provider], tmp_path: Path, workers: str
) -> None:
    stuck = {**ANSWERS, "Say pear": [{"hangs": True}, "pear"]}
    words = ["eval", "run", str(TASKS), "openai_compatible", "--all", "-m", "m", "-b", provider(stuck).url]
    words += ["-s", "--json", "-o", "out", "-w", workers]
    folder = kill_run(words, tmp_path, {}, tmp_path / "out", rows=4)
    again = proctor(*words, "--resume", str(folder), "--min-coverage", "0.1", timeout=SECONDS)

    assert again.code == 0, again.stderr
    rows = {row["example_id"]: row["reward"] for row in again.rows if row["outcome"] == "scored"}
    assert sorted(rows.values()) == [0.0, 0.75, 1.0]
    assert len(again.rows) == 5
