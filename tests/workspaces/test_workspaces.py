"""A folder of its own for every rollout, and what agents and templates do in it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from proctor.contracts import HttpEndpoint
from proctor.env.template_rollout import TemplateRollout
from proctor.env.templates import Environment
from proctor.errors import ConfigError, EnvError
from proctor.evaluation.evaluate import evaluate
from proctor.isolation import sandbox
from proctor.models.scripted import Scripted, Step
from proctor.rollout import Rollout
from proctor.store.rows import build_row
from proctor.trace import text_of
from proctor.workspaces.spec import WorkspaceSpec
from tests.env.playing import reward

pytestmark = pytest.mark.usefixtures("sandboxes")

Yields = AsyncGenerator[Any, str]
Work = Callable[..., list[Rollout]]

NAP = 1_000_000 + os.getpid()
"""Seconds that nobody else on this machine sleeps."""


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    """What every rollout gets a copy of."""
    folder = tmp_path / "starter"
    folder.mkdir()
    (folder / "add.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


def tool_results(rollout: Rollout) -> list[str]:
    return [text_of(message) for message in rollout.trace.completion if message["role"] == "tool"]


def shop_of(
    check: str, source: Path | None = None, **settings: Any
) -> tuple[Environment, WorkspaceSpec, list[Path]]:
    """An environment whose reward is that a command succeeds, and the folders it has had."""
    env = Environment("repairs")
    place = env.workspace(source, **{"seconds": 20, **settings})
    seen: list[Path] = []

    @env.template()
    async def fix(bug: str) -> Yields:
        seen.append(place.path)
        (place.path / "BUG.txt").write_text(f"{bug}\n")
        yield f"Fix: {bug}"
        yield await place.check(check)

    fix(bug="add subtracts")
    return env, place, seen


async def begun(env: Environment) -> TemplateRollout:
    (task,) = env.tasks()
    rollout = env.create_rollout(task)
    try:
        await rollout.begin()
    except BaseException:
        await rollout.close()
        raise
    return rollout


# A rollout


def test_an_agent_repairs_a_copy_of_the_starter_and_the_copy_is_gone_afterwards(
    starter: Path, tmp_path: Path
) -> None:
    env, _, seen = shop_of('python3 -c "from add import add; assert add(2, 2) == 4"', starter)
    edit = {"path": "add.py", "old": "a - b", "new": "a + b"}
    script: list[str | Step] = [
        Step(tool_calls=[{"name": "read_file", "arguments": {"path": "add.py"}}]),
        Step(tool_calls=[{"name": "edit_file", "arguments": edit}]),
        "Done.",
    ]

    result = asyncio.run(evaluate(env, Scripted(script), agent="tool_loop", output_dir=str(tmp_path / "out")))

    (rollout,) = result
    assert reward(rollout) == 1.0
    assert "     1\tdef add(a, b):" in tool_results(rollout)[0]
    assert [(change.path, change.change) for change in rollout.trace.files] == [("add.py", "changed")]
    assert "-    return a - b\n+    return a + b\n" in rollout.trace.files[0].diff
    assert "a - b" in (starter / "add.py").read_text()
    assert not seen[0].parent.exists()


def test_file_changes_stand_in_the_row(work: Work) -> None:
    env, *_ = shop_of("true")

    (rollout,) = work(env, "echo new > a.txt")

    row = json.loads(json.dumps(build_row(rollout)["file_changes"], default=lambda change: change.path))
    assert row == ["a.txt"]


def test_without_a_workspace_there_is_neither_a_folder_nor_a_field(work: Work) -> None:
    env = Environment("plain")

    @env.template()
    async def say() -> Yields:
        yield "Say it."
        yield 1.0

    say()
    (rollout,) = work(env)

    assert rollout.trace.files == []
    assert "file_changes" not in build_row(rollout)


def test_rollouts_at_once_do_not_see_each_other(work: Work) -> None:
    env, _, seen = shop_of("test $(ls | wc -l) = 2")

    rollouts = work(
        env, "ls > /tmp/list; cat /tmp/list; echo x > $$.txt; sleep 0.2; ls /tmp", rollouts_per_task=4
    )

    assert [reward(rollout) for rollout in rollouts] == [1.0] * 4
    assert len(set(seen)) == 4


def test_what_the_template_prepared_is_no_change_and_what_it_does_while_grading_is_none_either(
    work: Work,
) -> None:
    env = Environment("hidden-tests")
    place = env.workspace()

    @env.template()
    async def solve() -> Yields:
        (place.path / "given.txt").write_text("given")
        yield "Solve it."
        (place.path / "test.sh").write_text("grep -q right answer.txt")
        yield await place.check("sh test.sh")

    solve()
    (rollout,) = work(env, "ls; echo right > answer.txt")

    assert reward(rollout) == 1.0
    assert [change.path for change in rollout.trace.files] == ["answer.txt"]
    assert "test.sh" not in tool_results(rollout)[0]


def test_an_agent_that_is_cut_short_or_fails_still_shows_what_it_changed(work: Work) -> None:
    env, _, seen = shop_of("true")

    (rollout,) = work(env, "echo half > half.txt", "sleep 60", rollout_seconds=4.0)

    assert rollout.outcome == "timeout"
    assert [change.path for change in rollout.trace.files] == ["half.txt"]
    assert not seen[0].exists()


def test_every_turn_works_in_the_same_folder(work: Work) -> None:
    env = Environment("turns")
    place = env.workspace()

    @env.template()
    async def turns(count: int) -> Yields:
        for number in range(count):
            yield f"Turn {number}"
        yield float((await place.run("wc -l < log")).output.strip() == str(count))

    turns(count=3)
    (rollout,) = work(env, "echo turn >> log")

    assert reward(rollout) == 1.0
    assert "+turn\n+turn\n+turn\n" in rollout.trace.files[0].diff


def test_a_tool_of_the_author_may_use_the_workspace(work: Work) -> None:
    env, place, _ = shop_of("test -f made")

    @env.tool
    async def make() -> str:
        """Make it."""
        return (await place.run("touch made; pwd")).output

    (rollout,) = work(env, ("make", {}))

    assert reward(rollout) == 1.0
    assert tool_results(rollout) == ["/workspace\n"]


def test_two_workspaces_are_two_folders(work: Work) -> None:
    env = Environment("two")
    first, second = env.workspace(name="front"), env.workspace(name="back", tools=False)

    @env.template()
    async def both() -> Yields:
        (second.path / "b").write_text("b")
        yield "Go."
        yield float(first.path != second.path and (await first.run("ls")).output == "a\n")

    both()
    (rollout,) = work(env, "ls; touch a")

    assert reward(rollout) == 1.0
    assert [change.path for change in rollout.trace.files] == ["front/a"]


# Grading


def test_the_agents_background_processes_are_gone_when_grading_starts(work: Work) -> None:
    env, _, _ = shop_of("sleep 0.3; ! test -f late.txt")

    (rollout,) = work(env, "(sleep 0.2; touch late.txt) & echo started")

    assert tool_results(rollout) == ["started"]
    assert reward(rollout) == 1.0


def test_a_command_still_running_is_ended_before_grading_and_no_other_can_be_started() -> None:
    env, place, _ = shop_of("! test -f late.txt")

    async def run() -> None:
        rollout = await begun(env)
        folder = rollout.folders[place]
        running = asyncio.create_task(folder.run("sleep 30; touch late.txt", seconds=60))
        while not folder.is_busy:
            await asyncio.sleep(0.01)
        grade = await rollout.settle("")
        assert grade.score.reward == 1.0
        assert (await running).code not in (0, None)
        with pytest.raises(EnvError, match="is closed"):
            await folder.run("true", seconds=5)
        await rollout.close()

    asyncio.run(run())


def test_what_the_agent_planted_runs_only_inside_when_it_is_graded(work: Work, tmp_path: Path) -> None:
    mark = tmp_path / "escaped"
    env, _, _ = shop_of("python3 -c 'import helper'; ls /tmp; test ! -e /tmp/trap")
    planted = f"open('helped','w'); import os; os.makedirs({str(mark)!r})"

    (rollout,) = work(env, f'echo "{planted}" > helper.py; touch /tmp/trap')

    assert reward(rollout) == 1.0
    assert not mark.exists()


def test_a_check_says_what_it_printed_and_one_that_cannot_be_run_is_no_zero(work: Work) -> None:
    failing, _, _ = shop_of("echo no good; exit 3")
    impossible, _, _ = shop_of("no-such-program")
    endless, _, _ = shop_of("sleep 60", seconds=0.5)

    (failed,), (never,), (late,) = work(failing), work(impossible), work(endless)

    assert failed.score is not None
    assert failed.score.subscores[0].note == "exit code 3\nno good"
    assert never.outcome == "grader_error"
    assert late.score is not None
    assert late.score.subscores[0].note == "ended after 0.5 s"


def test_outside_of_a_template_there_is_no_folder() -> None:
    _, place, _ = shop_of("true")

    with pytest.raises(EnvError, match="'workspace' was used outside of a template"):
        _ = place.path


# Limits


def processes_with(word: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in words:
            found.append(folder.name)
    return found


def test_a_command_past_its_time_is_ended_with_all_it_started(work: Work) -> None:
    env, _, _ = shop_of("true")
    call = ("bash", {"command": f"setsid sleep {NAP} & sleep {NAP}", "timeout_seconds": 0.5})

    (rollout,) = work(env, call)

    assert tool_results(rollout) == ["[ended after 0.5 s]"]
    assert processes_with(f"sleep\0{NAP}") == []


def test_a_fork_bomb_stays_within_its_limit_and_leaves_nothing(work: Work) -> None:
    env, _, _ = shop_of("true", processes=40, seconds=20)

    (rollout,) = work(env, f"b{NAP}() {{ b{NAP} | b{NAP} & }}; b{NAP}; sleep 1; exit 9", "echo alive")

    assert "Resource temporarily unavailable" in tool_results(rollout)[0]
    assert tool_results(rollout)[1] == "alive"
    assert processes_with(f"b{NAP}") == []


def test_endless_output_is_cut_in_the_middle(work: Work) -> None:
    env, _, _ = shop_of("true", seconds=2)

    (rollout,) = work(env, "echo first; yes")

    (said,) = tool_results(rollout)
    assert said.startswith("first\ny\n")
    assert "characters left out" in said
    assert said.endswith("[ended after 2 s]")
    assert len(said) < 31_000


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ({"file_mb": 1}, "head -c 3000000 /dev/zero > big"),
        ({"memory_mb": 40}, "head -c 90000000 /dev/zero | sort"),
    ],
)
def test_a_file_or_a_process_too_large_fails(limit: dict[str, Any], command: str, work: Work) -> None:
    env, _, _ = shop_of("true", **limit)

    (rollout,) = work(env, f"{command}; echo code $?")

    assert "code 0" not in tool_results(rollout)[0]


def test_a_cancelled_command_leaves_nothing() -> None:
    env, place, _ = shop_of("true")

    async def run() -> None:
        rollout = await begun(env)
        folder = rollout.folders[place]
        for delay in (0.0, 0.002, 0.01, 0.2):
            running = asyncio.create_task(folder.run(f"sleep {NAP}", seconds=60))
            await asyncio.sleep(delay)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert not folder.is_busy
        await rollout.close()

    asyncio.run(run())
    assert processes_with(f"sleep\0{NAP}") == []


def test_what_is_hard_to_remove_is_removed(work: Work) -> None:
    env, _, seen = shop_of("true")
    deep = "d=$(printf 'dddddddd/%.0s' $(seq 200)); for i in 1 2 3 4 5 6; do mkdir -p $d && cd $d; done"

    (rollout,) = work(env, f"mkdir shut; touch shut/x; chmod 000 shut; {deep}; touch bottom")

    assert rollout.cleanup_failure is None
    assert not seen[0].parent.exists()


# A way to the model


def test_a_program_without_a_network_reaches_the_door_and_nothing_else() -> None:
    env, place, _ = shop_of("true")
    get = (
        "import sys, urllib.request as r;"
        "print(r.urlopen(sys.argv[1] + '/v1/models', timeout=5).read().decode(), len(r.urlopen("
        "r.Request(sys.argv[1] + '/v1/echo', data=b'x' * 3000000), timeout=20).read()))"
    )

    async def run() -> None:
        app = web.Application(client_max_size=10_000_000)
        app.router.add_get("/v1/models", models)
        app.router.add_post("/v1/echo", echoed)
        runner = web.AppRunner(app)
        await runner.setup()
        rollout = await begun(env)
        with tempfile.TemporaryDirectory() as private:
            path = f"{private}/door.sock"
            await web.UnixSite(runner, path).start()
            listener = socket.create_server(("127.0.0.1", 0))
            endpoint = HttpEndpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", "key", path)
            folder = rollout.folders[place]
            words = ["python3", "-c", get, endpoint.url]
            ran = await folder.run(words, seconds=30, endpoint=endpoint)
            again = await folder.run(words, seconds=30, endpoint=endpoint, stdin=b"unread")
            shut = await folder.run(words, seconds=30)
            listener.close()
        await rollout.close()
        await runner.cleanup()
        assert (ran.code, ran.output) == (0, "the models 3000000\n")
        assert again == ran
        assert shut.code == 1
        assert "refused" in shut.output.lower()

    asyncio.run(run())


async def models(_: web.Request) -> web.Response:
    return web.Response(body=b"the models")


async def echoed(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


# Asking for one


def test_a_source_is_looked_for_beside_the_file_that_names_it() -> None:
    place = Environment("beside").workspace("conftest.py")

    assert place.source == Path(__file__).parent / "conftest.py"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"source": "no-such-folder"}, "there is no folder"),
        ({"mounts": ["/no/such/tool"]}, "there is no '/no/such/tool' to mount"),
        ({"mounts": [os.path.dirname(__file__)]}, "holds the environment's own code"),  # noqa: PTH120
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_paid_for(
    settings: dict[str, Any], problem: str
) -> None:
    env = Environment("wrong")
    env.workspace(**settings)

    @env.template()
    async def fix() -> Yields:
        yield "Fix it."
        yield 1.0

    fix()
    with pytest.raises(ConfigError, match=problem):
        asyncio.run(env.check())


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    env, _, _ = shop_of("true")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ConfigError, match=r"`bwrap` is not installed; install it \(`apt-get install"):
        asyncio.run(env.check())


def test_a_machine_that_forbids_sandboxes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env, _, _ = shop_of("true")
    forbidden = tmp_path / "bwrap"
    forbidden.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    forbidden.chmod(0o755)
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: str(forbidden))

    with pytest.raises(
        ConfigError, match=r"cannot create a sandbox here \(No permissions to create new namesp"
    ):
        asyncio.run(env.check())


def test_names_that_collide_are_refused() -> None:
    env = Environment("names")
    env.workspace()

    with pytest.raises(ConfigError, match="already lends a tool called 'bash'"):

        @env.tool
        def bash() -> str:
            """Another one."""
            return ""

    with pytest.raises(ConfigError, match="Two workspaces of 'names' are called 'workspace'"):
        env.workspace(tools=False)
    with pytest.raises(ConfigError, match="lends a tool called 'bash'"):
        env.workspace(name="second")
    with pytest.raises(ConfigError, match="isolation is 'bwrap' or 'none'"):
        env.workspace(name="third", tools=False, isolation="docker")  # type: ignore[arg-type]


def test_without_walls_commands_run_in_the_folder_with_few_variables(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    env, _, seen = shop_of("test -f made", isolation="none", variables={"GREETING": "hello"})

    (rollout,) = work(env, "touch made; pwd; echo $GREETING $OPENAI_API_KEY", f"sleep {NAP} & echo on")

    assert tool_results(rollout)[0] == f"{seen[0]}\nhello"
    assert reward(rollout) == 1.0
    assert processes_with(f"sleep\0{NAP}") == []


def test_variables_and_mounts_are_there_and_the_mount_cannot_be_written(work: Work, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    (tool / "data").write_text("from the tool")
    env, _, _ = shop_of("true", mounts=[tool], variables={"GREETING": "hello"})

    (rollout,) = work(env, f"echo $GREETING; cat {tool}/data; touch {tool}/x")

    assert tool_results(rollout)[0].startswith("hello\nfrom the tooltouch: cannot touch")
    assert not (tool / "x").exists()


def test_environments_tell_whether_their_workspaces_have_a_network() -> None:
    env = Environment("nets")
    env.workspace(network=True)
    env.workspace(name="shut", tools=False)

    assert [place.network for place in env.workspaces] == [True, False]
