"""`proctor task` and `proctor serve` on files: listed, started and graded by slug, and what is refused."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

ENV = '''from proctor import Environment

env = Environment("words")


@env.template()
async def repeat(word: str, times: int = 1):
    """Say a word again."""
    answer = yield " ".join([word] * times)
    yield float(answer == word)
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "tasks.py").write_text(
        "from env import repeat\n\n"
        'tasks = [repeat(word="pear").with_slug("easy"), repeat(word="fig", times=2)]\n'
    )
    rows = [{"env": "words", "template": "repeat", "args": {"word": "plum"}, "slug": "from-rows"}]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_the_list_shows_templates_and_under_each_its_tasks_by_slug(proctor: Run) -> None:
    template, easy, other = proctor("task", "list").stdout.splitlines()
    assert template == "repeat(word: string, times: integer = 1)  Say a word again."
    assert easy.split() == ["easy", "word='pear'"]
    assert other.strip().startswith("repeat-")
    (entry,) = json.loads(proctor("task", "list", "tasks.py", "--json").stdout)
    assert (entry["id"], entry["tasks"][0]["slug"]) == ("repeat", "easy")
    assert "from-rows" in proctor("task", "list", "-s", "more.jsonl").stdout
    assert proctor("task", "list", "-n", "1").stdout.splitlines()[-1] == "  … 1 more; -n -1 shows all."


def test_what_an_environment_prints_is_not_part_of_the_answer(proctor: Run, folder: Path) -> None:
    (folder / "env.py").write_text(
        "print('importing')\n" + ENV.replace("    answer =", "    print(word)\n    answer =")
    )

    (entry,) = json.loads(proctor("task", "list", "tasks.py", "--json").stdout)
    started = proctor("task", "start", "easy", "-s", "tasks.py", "--json")

    assert entry["id"] == "repeat"
    assert json.loads(started.stdout)["prompt"] == "pear"
    assert "importing" in started.stderr


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (("easy",), "pear"),
        (("easy", "-s", "tasks.py"), "pear"),
        (("easy", "-s", "."), "pear"),
        (("from-rows", "-s", "more.jsonl"), "plum"),
        (("repeat", "-a", '{"word": "kiwi", "times": 2}', "-s", "env.py"), "kiwi kiwi"),
        (("repeat", "-a", '{"word": "kiwi"}', "-s", "env.py:env"), "kiwi"),
    ],
)
def test_a_task_is_started_by_its_slug_or_from_a_template(
    proctor: Run, words: tuple[str, ...], prompt: str
) -> None:
    done = proctor("task", "start", *words)
    assert (done.code, done.stdout) == (0, f"{prompt}\n"), done.stderr


def test_a_task_is_graded_by_its_slug(proctor: Run) -> None:
    assert proctor("task", "grade", "from-rows", "-s", "more.jsonl", "--answer", "plum").stdout == "1\n"
    assert proctor("task", "grade", "easy", "--answer", "plum").stdout == "0\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("start", "eazy"), "has no template and no task 'eazy'; did you mean 'easy'?"),
        (("start", "easy", "-a", '{"word": "x"}'), "Task 'easy' has inputs of its own; leave out --args."),
        (("list", "tasks.py", "-s", "more.jsonl"), "both say where the tasks are"),
        (("start", "x", "-s", "nowhere.jsonl"), "There are no tasks at"),
        (("list", "ada/letters"), "log in with `proctor login URL`"),
    ],
)
def test_what_cannot_be_started_is_explained(proctor: Run, words: tuple[str, ...], why: str) -> None:
    done = proctor("task", *words)
    assert done.code == 2
    assert why in done.stderr


def test_a_port_that_is_taken_is_named_with_what_to_do(proctor: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = proctor("serve", "env.py", "-p", str(port))
    expected = (
        f"Error: Cannot listen on 127.0.0.1:{port} (Address already in use); choose another port with -p.\n"
    )
    assert (said.code, said.stderr) == (2, expected)
