"""Members of a group can be told apart in rows, columns and the report."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.env.group import EnvGroup, restore_task
from proctor.env.multi_turn import SingleTurnEnv
from tests.conftest import Ran

Run = Callable[..., Ran]

GROUP = """
from proctor import EnvGroup, Rubric, SingleTurnEnv

def member(reward):
    rows = [{"question": f"say {n}", "answer": ""} for n in range(2)]

    def length(completion):
        return len(completion)

    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: reward, length, weights=[1, 0]))

def load_environment():
    return EnvGroup([member(1.0), member(0.0)], ["easy", "hard"])
"""
TASKS = """
from proctor import Environment

def make(name):
    env = Environment(name)

    @env.template()
    async def question(number: int):
        answer = yield f"say {number}"
        yield 1.0

    return env, question

easy, ask_easy = make("easy")
hard, ask_hard = make("hard")
tasks = [ask_easy(number=1), ask_hard(number=2)]
for index, task in enumerate(tasks):
    tasks[index] = task.with_slug(f"task-{index}")
"""


@pytest.fixture
def group(tmp_path: Path) -> str:
    (tmp_path / "pair.py").write_text(GROUP)
    return "./pair.py"


def test_the_report_has_a_block_for_each_member(proctor: Run, group: str) -> None:
    report = proctor("eval", group, "-m", "scripted", "-n", "-1", "-r", "2", "-A").stdout

    easy, hard = report.index("Member easy"), report.index("Member hard")
    assert re.search(r"reward +1\.000", report[easy:hard])
    assert "4 of 4 rollouts scored" in report[easy:hard]
    assert "length" in report[easy:hard]
    assert re.search(r"reward +0\.000", report[hard:])


def test_every_row_names_its_member_and_so_can_a_column(proctor: Run, group: str) -> None:
    ran = proctor("eval", group, "-m", "scripted", "-n", "-1", "-r", "1", "-C", "env,turn", "--json")

    assert [row["env"] for row in ran.rows] == ["easy", "easy", "hard", "hard"]
    assert "state_env" not in ran.rows[0]
    assert "no 'env'" not in ran.stderr
    assert sorted(ran.summary["members"]) == ["easy", "hard"]


def test_tasks_of_several_environments_are_told_apart_as_well(proctor: Run, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    ran = proctor("eval", "./tasks.py", "-m", "scripted", "--all", "--json")
    assert {row["example_id"]: row["env"] for row in ran.rows} == {"task-0": "easy", "task-1": "hard"}


def test_a_group_of_groups_names_the_whole_way() -> None:
    rows = [{"question": "1", "answer": "1"}]
    inner = EnvGroup([SingleTurnEnv(rows), SingleTurnEnv(rows)], ["a", "b"])
    outer = EnvGroup([inner, SingleTurnEnv(rows)], ["in", "out"])
    tasks = list(outer.tasks())
    assert [task.member for task in tasks] == ["in/a", "in/b", "out"]
    assert [restore_task(task).member for task in tasks] == ["a", "b", ""]


def test_a_misspelt_state_column_is_said_after_the_first_rollout(proctor: Run, group: str) -> None:
    ran = proctor("eval", group, "-m", "scripted", "-n", "2", "-r", "2", "-C", "trajctory,turn")
    assert ran.stderr.count("has no 'trajctory', which -C asks to save; did you mean 'trajectory'") == 1
