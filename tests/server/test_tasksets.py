"""Tasksets on a server, as people use them: pushed without a package, listed, fetched, run here and there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.workplace import Person, Workplace, workplace

pytestmark = pytest.mark.usefixtures("sandboxes")

ENV = '''"""Say a word again."""

from proctor import Environment

env = Environment("words")


@env.template()
async def repeat(word: str):
    """The word is asked for, and nothing else."""
    answer = yield word
    yield float(answer == word)
'''
TASKS = """from env import repeat

tasks = [repeat(word="pear").with_slug("easy"), repeat(word="plum"), repeat(word="fig").with_slug("last")]
"""
SCRIPT = """
import asyncio
from proctor import Scripted, Taskset

taskset = Taskset.from_api("ada/words")
assert [task.slug for task in taskset][::2] == ["easy", "last"], list(taskset)
assert taskset["easy"].args == {"word": "pear"}

async def main():
    job = await Taskset.from_api("words").run(model=Scripted())
    print(len(job), job.reward)

asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path / "w") as made:
        yield made


def write_tasks(ada: Person, tasks: str = TASKS) -> None:
    folder = ada.home / "words"
    folder.mkdir(exist_ok=True)
    (folder / "env.py").write_text(ENV)
    (folder / "tasks.py").write_text(tasks)


def test_a_pushed_tasks_file_is_listed_fetched_and_run_here_and_on_the_server(place: Workplace) -> None:
    ada = place.person("ada")
    write_tasks(ada)
    pushed = ada.ok("env", "push", "words/tasks.py", "--wait", "--json").json
    assert pushed["environment"]["name"] == "words"
    assert (pushed["version"]["version"], pushed["version"]["check"]["tasks"]) == ("0.1.0", 3)
    assert not (ada.home / "words/pyproject.toml").exists()

    listed = ada.ok("task", "list", "ada/words").stdout.splitlines()
    assert listed[0] == "ada/words 0.1.0: 3 tasks"
    assert listed[1].split() == ["easy", "repeat(word='pear')"]
    rows = ada.ok("task", "list", "ada/words@0.1.0", "--json").json["tasks"]
    assert rows[2] == {"slug": "last", "env": "words", "template": "repeat", "args": {"word": "fig"}}
    assert ada.ok("task", "start", "last", "-s", "ada/words").stdout == "fig\n"

    here = ada.ok("eval", "ada/words", "-m", "scripted", "--all", "--json")
    assert here.json["summary"]["scored"] == 3
    assert here.json["run"]["env_id"] == "ada/words@0.1.0"
    assert "from the hub" in here.stderr
    there = ada.ok("eval", "ada/words", "-m", "parrot", "--all", "--hosted", "--follow", "--json").json
    (run,) = there["runs"]
    assert (run["status"], run["progress"]["settled"], run["progress"]["mean_reward"]) == ("finished", 3, 1.0)
    one = ada.ok("eval", "ada/words", "-m", "parrot", "--hosted", "--follow", "--json").json["runs"][0]
    assert one["progress"]["planned"] == 1

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ada.home,
        env=ada.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3 1.0\n"), done.stderr
