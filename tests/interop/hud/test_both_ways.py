"""Ours drives an unmodified `hud serve`, and an unmodified `hud` drives ours."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor import Taskset
from proctor.models.scripted import Scripted
from proctor.runtimes.runtime import Runtime
from proctor.task import mint_task
from tests.interop.hud.conftest import hud_serving, quiet

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

pytestmark = pytest.mark.interop
ROOM = Path(__file__).parents[2] / "channel" / "room.py"
WORDS = {"pear": "1", "strawberry": "3", "apple": "0"}
ANSWERS = {f"in {word}?": count for word, count in WORDS.items()}
BAD = ("failing", "stumbling", "endless")
Hud = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def theirs(hud: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "env.py").write_bytes(ROOM.read_bytes())
    with hud_serving(hud, folder / "env.py", quiet(folder), folder) as port:
        yield f"tcp://127.0.0.1:{port}"


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[str]:
    """The address of a `proctor serve`."""
    words = [sys.executable, "-m", "proctor", "serve", str(ROOM), "-p", "0", "--json"]
    child = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    yield json.loads(child.stdout.readline())["url"]
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0
    child.stdout.close()


def tasks_of(tmp_path: Path, *words: str) -> Path:
    file = tmp_path / "tasks.jsonl"
    rows = [{"env": "room", "id": "count", "args": {"word": word}, "slug": word} for word in words]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


# Ours → hud serve


def test_evaluate_plays_in_a_hud_serve(theirs: str, tmp_path: Path) -> None:
    tasks = [mint_task("room", "count", {"word": word}, word) for word in WORDS]
    tasks += [
        mint_task("room", name, {}, name) for name in ("talk", "graded", "failing", "stumbling", "endless")
    ]
    running = Taskset("room", tasks).run(
        model=Scripted(ANSWERS), runtime=Runtime(theirs), group=2, output_dir=str(tmp_path)
    )
    job = asyncio.run(running)

    rewards = {
        slug: [each.score and each.score.reward for each in them] for slug, them in job.results.items()
    }
    assert rewards == {
        **{word: [1.0, 1.0] for word in WORDS},
        "talk": [0.5, 0.5],
        "graded": [0.25, 0.25],
        **{name: [None, None] for name in BAD},
    }
    outcomes = {slug: them[0].outcome for slug, them in job.results.items()}
    assert (outcomes["failing"], outcomes["stumbling"]) == ("grader_error", "environment_error")
    assert "no grade today" in str(job.results["failing"][0].failure)


def test_the_command_line_plays_in_a_hud_serve(
    theirs: str, tmp_path: Path, proctor: Callable[..., Ran], provider: Callable[..., Provider]
) -> None:
    words = ["eval", "run", str(tasks_of(tmp_path, *WORDS)), "openai_compatible", "--all", "--group", "2"]
    ran = proctor(*words, "--json", "--runtime", theirs, "-m", "m", "-b", provider(ANSWERS).url)

    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in ran.rows] == [1.0] * 6


def test_tasks_are_played_by_hand_in_a_hud_serve(theirs: str, proctor: Callable[..., Ran]) -> None:
    listed = proctor("task", "list", "-u", theirs)
    started = proctor("task", "start", "count", "-a", '{"word": "pear"}', "-u", theirs)
    graded = proctor("task", "grade", "--answer", "1", "-u", theirs)
    fresh = proctor("task", "grade", "count", "-a", '{"word": "pear"}', "--answer", "2", "-u", theirs)
    nothing = proctor("task", "grade", "--answer", "1", "-u", theirs)

    assert "count(word: string, letter: string = 'r')  Counts letters." in listed.stdout
    assert started.stdout == "How many r in pear?\n"
    assert (graded.stdout, fresh.stdout) == ("1\n", "0\n")
    assert (nothing.code, nothing.stdout) == (1, "")
    assert "no task in progress" in nothing.stderr


def test_what_hangs_in_a_hud_serve_is_cancelled_there(theirs: str, tmp_path: Path) -> None:
    async def play() -> None:
        tasks = [mint_task("room", "pondering", {"seconds": 60.0}), mint_task("room", "talk", {})]
        job = await Taskset("room", tasks).run(
            model=Scripted(),
            runtime=Runtime(theirs),
            scoring_timeout=1,
            max_concurrent=1,
            output_dir=str(tmp_path),
        )
        assert [rollout.outcome for rollout in job] == ["timeout", "scored"]

    asyncio.run(play())


# hud → ours


def test_an_unmodified_hud_eval_plays_in_ours(
    ours: str, tmp_path: Path, run_hud: Hud, provider: Callable[..., Provider]
) -> None:
    file = tasks_of(tmp_path, "pear", "bear", "fear")
    words = ["eval", str(file), "openai_compatible", "--all", "--group", "2", "-y", "--json"]
    settings = ["-c", f"base_url={provider('1').url}", "-c", "api_key=x", "-m", "m"]
    ran = run_hud(*words, *settings, "--runtime", ours)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    job = json.loads(ran.stdout[ran.stdout.index("{") :])
    assert [run["reward"] for run in job["runs"]] == [1.0] * 6


def test_hud_plays_single_tasks_in_ours(ours: str, run_hud: Hud) -> None:
    started = run_hud("task", "start", "count", "-a", '{"word": "pear"}', "-u", ours)
    graded = run_hud("task", "grade", "count", "--answer", "1", "-a", '{"word": "pear"}', "-u", ours)
    fresh = run_hud("task", "grade", "count", "--answer", "2", "-a", '{"word": "pear"}', "-u", ours)

    assert "How many r in pear?" in started.stdout, started.stderr
    assert re.search(r"\b1\.0\b", graded.stdout), graded.stdout + graded.stderr
    assert re.search(r"\b0\.0\b", fresh.stdout), fresh.stdout + fresh.stderr
