"""Grading beyond the agent's reach: of all that it left in its folder, its home and its repository only the
work counts, and nothing that it does there makes its score go away."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.env.templates import Environment
from proctor.errors import SpoiledWorkspaceError
from proctor.rollout import Rollout
from proctor.workspaces.spec import WorkspaceSpec
from tests.env.playing import reward

pytestmark = pytest.mark.usefixtures("sandboxes")

Yields = AsyncGenerator[Any, str]
Work = Callable[..., list[Rollout]]
Grading = Callable[[WorkspaceSpec], Any]

FORGE = "import os; os._exit(0)"
"""What an agent would like a grader to run."""


def graded_by(grade: Grading, **settings: Any) -> Environment:
    """An environment whose reward is what a function says, once the agent has worked."""
    env = Environment("graded")
    place = env.workspace(**{"seconds": 20, **settings})

    @env.template()
    async def task() -> Yields:
        yield "Work."
        yield await grade(place)

    task()
    return env


def check(command: Any, **settings: Any) -> Grading:
    async def grade(place: WorkspaceSpec) -> Any:
        return await place.check(command, **settings)

    return grade


def note_of(rollout: Rollout) -> str:
    assert rollout.score is not None, rollout.failure
    return rollout.score.subscores[0].note


# What the agent could reach


@pytest.mark.parametrize("isolation", ["bwrap", "none"])
@pytest.mark.parametrize(
    ("planted", "command"),
    [
        (
            'd=$(python3 -m site --user-site); mkdir -p "$d"; echo "import os; os._exit(0)" > "$d/x.pth"',
            "python3 -c 'import sys; sys.exit(1)'",
        ),
        (
            'd=$(python3 -m site --user-site); mkdir -p "$d"; echo "exit(0)" > "$d/usercustomize.py"',
            "python3 -c 'import sys; sys.exit(1)'",
        ),
        ("git config --global alias.honest '!true'", "git honest"),
        ("echo 'exit 0' > ~/.bash_profile; echo 'exit 0' > ~/.profile", "bash -lc 'exit 1'"),
    ],
)
def test_what_an_agent_leaves_in_its_home_does_not_run_when_it_is_graded(
    isolation: str, planted: str, command: str, work: Work
) -> None:
    (rollout,) = work(graded_by(check(command), isolation=isolation), planted)

    assert reward(rollout) == 0.0


def test_a_repositorys_own_settings_run_nothing_when_git_is_asked(work: Work) -> None:
    planted = (
        "git init -q . && printf '#!/bin/sh\\ntouch /workspace/ran\\n' > hook && chmod +x hook && "
        "git config core.fsmonitor /workspace/hook && git config core.hooksPath /workspace"
    )

    (rollout,) = work(graded_by(check("git status --short >/dev/null; test ! -e ran")), planted)

    assert reward(rollout) == 1.0


@pytest.mark.parametrize("isolation", ["bwrap", "none"])
def test_variables_that_suit_the_agent_lead_no_grading_command_to_its_files(
    isolation: str, work: Work
) -> None:
    env = graded_by(
        check('env; test -z "$PYTHONPATH"'),
        isolation=isolation,
        variables={"PYTHONPATH": "lib", "GREETING": "hello"},
    )

    (rollout,) = work(env, "echo $PYTHONPATH")

    assert reward(rollout) == 1.0
    assert "GREETING=hello" in note_of(rollout)
    assert "PYTHONNOUSERSITE=1" in note_of(rollout)


def test_a_check_cannot_prepare_the_home_of_the_next_one(work: Work) -> None:
    async def grade(place: WorkspaceSpec) -> float:
        await place.run("echo trap > ~/left; echo $HOME")
        return float((await place.run("cat ~/left")).code != 0)

    (rollout,) = work(graded_by(grade), "true")

    assert reward(rollout) == 1.0


def test_before_the_agent_works_commands_prepare_the_home_that_it_will_have(work: Work) -> None:
    env = Environment("prepared")
    place = env.workspace(seconds=20)

    @env.template()
    async def task() -> Yields:
        await place.run("git config --global user.name Ada")
        yield "Work."
        yield await place.check('test "$(cat name)" = Ada')

    task()
    (rollout,) = work(env, "git config user.name > name")

    assert reward(rollout) == 1.0


# Tests that the agent never saw

TESTS = {"test_add.py": "import unittest, add\nclass T(unittest.TestCase):\n"
    "    def test_sum(self): self.assertEqual(add.add(2, 2), 4)\n"}  # fmt: skip


@pytest.mark.parametrize("isolation", ["bwrap", "none"])
@pytest.mark.parametrize(
    ("made", "worth"),
    [
        ("echo 'def add(a, b): return a + b' > add.py", 1.0),
        ("echo 'def add(a, b): return a - b' > add.py", 0.0),
        (f"echo '{FORGE}' > add.py", 0.0),
        ("echo 'def add(a, b): return 5' > add.py; echo 'import sys; sys.exit(0)' > unittest.py", 0.0),
        ("echo 'def add(a, b): return 5' > add.py; mkdir /tests; echo pass > /tests/test_add.py", 0.0),
    ],
)
def test_tests_come_from_where_the_agent_cannot_write(
    isolation: str, made: str, worth: float, work: Work
) -> None:
    grade = check("python3 -m unittest -v 2>&1", tests=TESTS, expected=re.compile(r"^OK$", re.MULTILINE))

    (rollout,) = work(graded_by(grade, isolation=isolation), made)

    assert reward(rollout) == worth


def test_a_folder_of_tests_lies_beside_the_file_that_makes_the_workspace(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hidden"
    folder.mkdir()
    (folder / "run.sh").write_text(
        'test "$(cat "$WORKSPACE/answer")" = 42 && ! touch "$TESTS/x" 2>/dev/null\n'
    )

    (rollout,) = work(graded_by(check("sh run.sh", tests=folder)), "echo 42 > answer")

    assert reward(rollout) == 1.0


@pytest.mark.parametrize(
    ("module", "worth"),
    [
        ("def add(a, b): return a + b", 1.0),
        (FORGE, 0.0),
        ("print(4); import os; os._exit(0)", 0.0),
    ],
)
def test_what_is_printed_decides_and_not_an_exit_code_that_anyone_can_give(
    module: str, worth: float, work: Work
) -> None:
    command = ["python3", "-c", "from add import add; print(add(2, 2), add(20, -3))"]

    (rollout,) = work(graded_by(check(command, expected="4 17")), f"echo '{module}' > add.py")

    assert reward(rollout) == worth
    assert worth or "not the expected output" in note_of(rollout)


def test_a_warning_on_standard_error_spoils_no_expected_output(work: Work) -> None:
    (rollout,) = work(graded_by(check("echo 4; echo careful >&2", expected="4")), "true")

    assert reward(rollout) == 1.0
    assert "careful" in note_of(rollout)


# An agent that would rather not be scored


@pytest.mark.parametrize(
    ("command", "deed"),
    [
        ("python3 answer.py", "echo 'import sys; sys.exit(127)' > answer.py"),
        ("python3 answer.py", "echo 'import sys; sys.exit(126)' > answer.py"),
        ("./check.sh", "rm -f check.sh"),
        ("test -f done && ./check.sh", "touch done"),
        ("sh check.sh", "chmod 000 ."),
        ("sh check.sh", "chmod 700 .; false"),
        ("cat secret/x", "mkdir secret; chmod 000 secret"),
    ],
)
def test_nothing_an_agent_does_to_its_folder_takes_its_score_away(
    command: str, deed: str, work: Work
) -> None:
    (rollout,) = work(graded_by(check(command)), deed, max_retries=2)

    assert (rollout.outcome, reward(rollout), rollout.earlier) == ("scored", 0.0, ())


def test_an_agent_that_closed_its_folder_can_still_work_there(work: Work) -> None:
    (rollout,) = work(graded_by(check("test -f made")), "chmod 000 .", "touch made")

    assert reward(rollout) == 1.0


@pytest.mark.parametrize(
    "deed",
    [
        "touch tests",
        "mkdir -p tests/test.py/x; chmod 000 tests/test.py tests",
        "ln -s /nowhere tests",
        "ln -s / tests",
    ],
)
def test_a_template_writes_its_tests_over_whatever_the_agent_put_there(deed: str, work: Work) -> None:
    async def grade(place: WorkspaceSpec) -> Any:
        await place.write("tests/test.py", "print('tested')")
        return await place.check("python3 tests/test.py", expected="tested")

    (rollout,) = work(graded_by(grade), deed)

    assert rollout.outcome == "scored"
    assert reward(rollout) == float(deed != "ln -s / tests")


@pytest.mark.parametrize("deed", ["rm -f given", "rm -f given; mkdir given"])
def test_a_template_that_misses_a_file_of_the_folder_scores_zero_with_the_reason(
    deed: str, work: Work
) -> None:
    async def grade(place: WorkspaceSpec) -> float:
        return float((place.path / "given").read_text() == "x")

    (rollout,) = work(graded_by(grade), deed)

    assert reward(rollout) == 0.0
    assert "what the agent left cannot be graded" in note_of(rollout)


def test_a_template_that_misses_a_file_of_its_own_is_still_a_grader_error(work: Work) -> None:
    async def grade(place: WorkspaceSpec) -> float:
        return float(Path("/nowhere/expected.txt").read_text() == "x")

    (rollout,) = work(graded_by(grade), "true")

    assert rollout.outcome == "grader_error"


# Reading


def test_a_file_of_several_megabytes_is_read_whole(work: Work) -> None:
    read: list[str | None] = []

    async def grade(place: WorkspaceSpec) -> float:
        read.append(await place.read("big"))
        return 1.0

    work(graded_by(grade), "yes needle | head -c 3000000 > big; echo end >> big")

    assert read[0] == "needle\n" * (3_000_000 // 7) + "needl"[: 3_000_000 % 7] + "end\n"


@pytest.mark.parametrize("made", ["head -c 2000 /dev/zero > big", "ln -s /dev/zero big"])
def test_a_file_beyond_the_limit_scores_zero_and_is_never_cut(made: str, work: Work) -> None:
    async def grade(place: WorkspaceSpec) -> float:
        return float(await place.read("big", max_bytes=1999) is not None)

    (rollout,) = work(graded_by(grade), made)

    assert reward(rollout) == 0.0
    assert "more than 1,999 bytes" in note_of(rollout)


def test_an_author_may_decide_what_a_file_beyond_the_limit_is_worth(work: Work) -> None:
    async def grade(place: WorkspaceSpec) -> float:
        try:
            await place.read("big", max_bytes=10)
        except SpoiledWorkspaceError:
            return 0.5
        return 1.0

    (rollout,) = work(graded_by(grade), "echo 0123456789 > big")

    assert reward(rollout) == 0.5
