"""Workspaces of environments that live in a process of their own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from proctor import Command, Desk, DockerRuntime, LocalRuntime, Runtime, Scripted, Step, Taskset
from proctor.channel.listen import open_channel_server
from proctor.channel.server import ServedEnvironment
from proctor.env.templates import Environment
from proctor.errors import ConfigError
from proctor.rollout import Rollout

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap here")

ENVIRONMENT = """
from proctor import Environment

env = Environment("repairs")
work = env.workspace()


@env.template()
async def fix():
    await work.write("BUG.txt", "a bug")
    yield "Write 42 into answer.txt."
    yield await work.check('test "$(cat answer.txt)" = 42')


tasks = [fix()]
"""

WRITES = "echo 42 > answer.txt; rm BUG.txt"
BY_TOOL = Step(tool_calls=[{"name": "bash", "arguments": {"command": WRITES}}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "env.py").write_text(ENVIRONMENT)
    return tmp_path


def played(folder: Path, model: Scripted, agent: object = None, **settings: object) -> Rollout:
    async def run() -> Rollout:
        tasks = Taskset.from_file(folder / "env.py")
        runtime = LocalRuntime(folder / "env.py")
        (rollout,) = await tasks.run(agent, model=model, runtime=runtime, **settings)  # type: ignore[arg-type]
        return rollout

    return asyncio.run(run())


def changes(rollout: Rollout) -> dict[str, str]:
    return {change.path: change.change for change in rollout.trace.files}


def test_the_agent_works_there_and_what_it_changed_comes_back(folder: Path) -> None:
    rollout = played(folder, Scripted([BY_TOOL, "done"]))

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert changes(rollout) == {"BUG.txt": "deleted", "answer.txt": "created"}


def test_an_agent_that_fails_has_changed_files_all_the_same(folder: Path) -> None:
    async def stumbles(desk: Desk) -> str:
        assert desk.workspace is not None
        await desk.workspace.run(WRITES, seconds=20)
        raise RuntimeError("tripped")

    rollout = played(folder, Scripted(["never asked"]), stumbles)

    assert rollout.outcome == "agent_error"
    assert changes(rollout) == {"BUG.txt": "deleted", "answer.txt": "created"}


def test_a_model_that_falls_silent_is_not_graded_and_the_changes_so_far_are_kept(folder: Path) -> None:
    rollout = played(folder, Scripted([BY_TOOL, Step(text="late", delay_seconds=600)]), timeout=6)

    assert (rollout.outcome, rollout.score) == ("model_error", None)
    assert rollout.trace.stop_condition == "timeout"
    assert [message["role"] for message in rollout.trace.completion] == ["assistant", "tool"]
    assert changes(rollout) == {"BUG.txt": "deleted", "answer.txt": "created"}


def test_an_agent_whose_time_is_up_while_a_tool_runs_is_graded_on_what_it_did(folder: Path) -> None:
    slow = Step(tool_calls=[{"name": "bash", "arguments": {"command": f"{WRITES}; sleep 600"}}])
    rollout = played(folder, Scripted([slow]), timeout=6)

    assert rollout.outcome == "timeout"
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert changes(rollout) == {"BUG.txt": "deleted", "answer.txt": "created"}


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the program is written in Python")
def test_a_command_line_program_works_there_and_reaches_its_model_and_nothing_else(folder: Path) -> None:
    rollout = played(folder, Scripted([BY_TOOL, "done"]), Command(program="mini"))

    assert rollout.failure is None
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert len(rollout.trace.calls) == 2


def test_a_program_is_refused_where_it_could_not_reach_its_model_before_any_container_is_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(DockerRuntime, "check", lambda _: asyncio.sleep(0))
    monkeypatch.setattr(DockerRuntime, "_open_runtime", lambda _, task: asked.append(task))
    tasks = Taskset.from_file(folder / "env.py")

    with pytest.raises(ConfigError, match=r"'mini' is a separate program .* at DockerRuntime\('image'\)"):
        asyncio.run(tasks.run(Command(program="mini"), model=Scripted(), runtime=DockerRuntime("image")))
    assert asked == []


def test_a_program_is_refused_where_only_the_server_knows_of_the_workspace() -> None:
    env = Environment("repairs")
    env.workspace()

    @env.template()
    async def fix():  # type: ignore[no-untyped-def]
        yield "Fix it."
        yield 1.0

    tasks = Taskset("remote", [fix()])

    async def run() -> None:
        async with open_channel_server(ServedEnvironment(env)) as url:
            await tasks.run(Command(program="mini"), model=Scripted(), runtime=Runtime(url))

    with pytest.raises(ConfigError, match="'mini' is a separate program"):
        asyncio.run(run())


def test_an_agent_with_tools_works_at_a_served_environment_with_a_workspace(folder: Path) -> None:
    async def run() -> Rollout:
        tasks = Taskset.from_file(folder / "env.py")
        served = ServedEnvironment(tasks._batch.environments["repairs"])  # type: ignore[arg-type]
        async with open_channel_server(served) as url:
            (rollout,) = await tasks.run(model=Scripted([BY_TOOL, "done"]), runtime=Runtime(url))
        return rollout

    rollout = asyncio.run(run())

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
