"""Tasksets of verifiers' v1 engine, written as its scaffold does: played by verifiers, and by Proctor as they
are. Every rollout gets the same reward and the same metrics; what cannot be played here says why."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.dialects.isolated import find_python
from proctor.dialects.verifiers.dialect import V1_FRAMEWORK
from proctor.errors import ConfigError
from proctor.packages.loading import EnvironmentLocation
from tests.dialects.killing import kill_run
from tests.interop.verifiers.answering import Message, answering, tool_call
from tests.interop.verifiers.test_same_rewards import as_original, comparable

if TYPE_CHECKING:
    from tests.conftest import Ran

pytestmark = pytest.mark.interop

TASKSETS = Path(__file__).with_name("tasksets")
ORIGINAL = Path(__file__).with_name("original_taskset.py")
DUEL = "class Duel(vf.Env[vf.EnvConfig]):\n    async def run(self, task, agents): ...\n"
ROLLOUTS = 2
SECONDS = 600


def sums(messages: list[Message]) -> Sequence[str]:
    number = int(re.findall(r"\d+", messages[-1]["content"])[0])
    return (str(2 * number), f"It is {2 * number}", "7")


def lookup(messages: list[Message]) -> Sequence[str | Message]:
    if messages[-1]["role"] == "tool":
        return (f"It costs {messages[-1]['content']}.", "I forgot.")
    item = messages[-1]["content"].removeprefix("Price of ").removesuffix("?")
    return (tool_call("shop_price", {"item": item}), "A fortune.")


SCRIPTS = {"sums": sums, "lookup": lookup}


@pytest.fixture(scope="session")
def v1_python() -> Path:
    """The interpreter that has the current release; installed once, and kept in the user's cache."""
    found = EnvironmentLocation(env_id="sums", module="sums", path=TASKSETS / "sums.py", isolated=True)
    try:
        return find_python(found, V1_FRAMEWORK)
    except ConfigError as error:
        pytest.skip(str(error))


def play_original(python: Path, name: str, url: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(python), str(ORIGINAL), str(TASKSETS), name, url, str(ROLLOUTS)],
        env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["rows"]
    return rows


def flags(file: Path, url: str) -> list[str]:
    how_many = ["-n", "-1", "-r", str(ROLLOUTS), "-c", "1"]
    return ["eval", "run", str(file), "--isolated", *how_many, "-m", "m", "-b", url, "--json", "-s"]


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_untouched_taskset_earns_what_verifiers_gives(
    name: str, v1_python: Path, proctor: Callable[..., Ran]
) -> None:
    with answering(SCRIPTS[name]) as url:
        original = play_original(v1_python, name, url)
    with answering(SCRIPTS[name]) as url:
        ran = proctor(*flags(TASKSETS / f"{name}.py", url), timeout=SECONDS)

    assert ran.code == 0, ran.stderr
    assert comparable([as_original(row) for row in ran.rows]) == comparable(original)
    rewards = {row["reward"] for row in ran.rows}
    assert len(rewards) > 1, "answers that all earn the same would prove nothing"


@pytest.mark.usefixtures("v1_python")
def test_a_run_with_workers_that_is_killed_resumes_and_leaves_no_process(
    proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    go_on = threading.Event()

    def answers(messages: list[Message]) -> Sequence[str]:
        if "1 + 1" in messages[-1]["content"]:
            go_on.wait(SECONDS)
        return sums(messages)[:1]

    with answering(answers) as url:
        arguments = [
            "-a",
            json.dumps({"taskset": {"count": 3}}),
            "-r",
            "1",
            "-c",
            "4",
            "-w",
            "2",
            "-o",
            "out",
        ]
        words = [*flags(TASKSETS / "sums.py", url), *arguments]
        try:
            folder = kill_run(words, tmp_path, {}, tmp_path / "out", rows=2)
        finally:
            go_on.set()
        again = proctor(*words, "--resume", str(folder), timeout=SECONDS)

    assert again.code == 0, again.stderr
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert sorted((row["example_id"], row["reward"]) for row in rows) == [(0, 1.25), (1, 1.25), (2, 1.25)]


def test_a_reward_function_that_raises_is_the_graders_error(
    v1_python: Path,
    proctor: Callable[..., Ran],
    tmp_path: Path,
) -> None:
    source = (TASKSETS / "sums.py").read_text()
    file = tmp_path / "broken.py"
    file.write_text(source.replace("return float(len(trace.last_reply) < 5)", "raise KeyError('moon')"))
    with answering(sums) as url:
        ran = proctor(*flags(file, url)[:-1], "-n", "1", "-r", "1", "-s", timeout=SECONDS)

    assert [row["outcome"] for row in ran.rows] == ["grader_error"], ran.stderr
    assert "moon" in json.dumps(ran.rows[0]["error"])


@pytest.mark.parametrize(
    ("old", "new", "arguments", "sentence"),
    [
        ("", "", {"agent": {"runtime": {"type": "prime"}}}, "only through a tunnel of Prime Intellect"),
        ("", "", {"agent": {"harness": {"id": "bash"}}}, "may run what the model says"),
        ("answer=2 * number,", "answer=0, image='debian',", {}, "name container images"),
        ("    def load(self):", "    INFINITE = True\n\n    def load(self):", {}, "its tasks never end"),
        (
            '__all__ = ["SumsTaskset"]',
            f'{DUEL}\n\n__all__ = ["SumsTaskset", "Duel"]',
            {},
            "Duel plays several agents",
        ),
    ],
    ids=["hosted sandbox", "commands without a container", "images", "endless", "several agents"],
)
def test_what_cannot_be_played_here_is_refused_in_one_sentence(
    v1_python: Path,
    proctor: Callable[..., Ran],
    tmp_path: Path,
    old: str,
    new: str,
    arguments: dict[str, Any],
    sentence: str,
) -> None:
    file = tmp_path / "changed.py"
    file.write_text((TASKSETS / "sums.py").read_text().replace(old, new))
    with answering(sums) as url:
        ran = proctor(*flags(file, url), "-a", json.dumps(arguments), timeout=SECONDS)

    assert ran.code == 2, ran.stderr
    assert "changed cannot be played here: " in ran.stderr
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr
