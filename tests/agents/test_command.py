"""Command-line agents at work: real processes, the shipped tiny agent, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from proctor import Command, Environment, Rollout, Score, Scripted, Step, Task, evaluate
from proctor.agents.command import prompt_of
from proctor.agents.program import (
    SHIPPED,
    build_invocation,
    list_shipped_programs,
    read_program_file,
    resolve_program,
)
from proctor.contracts import CommandResult, HttpEndpoint, Seat, Traits
from proctor.errors import AgentError, ConfigError, UnknownNameError
from proctor.models.scripted import Script
from proctor.trace import ToolSpec

ROOT = Path(__file__).parent.parent.parent


def exam(prompt: str = "Say done.") -> Environment:
    """One task, passed by saying 'done'."""
    env = Environment("exam")

    @env.template()
    async def work():  # type: ignore[no-untyped-def]
        answer = yield prompt
        yield float("done" in answer)

    work()
    return env


def play(script: Script, agent: Command, env: Environment | None = None, **settings: Any) -> Rollout:
    (rollout,) = asyncio.run(evaluate(env or exam(), Scripted(script), agent=agent, **settings))
    return rollout


def bash(command: str, call: str = "c1") -> Step:
    return Step(tool_calls=[{"id": call, "name": "bash", "arguments": {"command": command}}])


def results(rollout: Rollout) -> list[str]:
    return [each["content"] for each in rollout.trace.completion if each["role"] == "tool"]


def nap(seconds: int) -> str:
    """A command that takes long, and that no other test process runs."""
    return f"sleep {seconds}.{os.getpid()}"


def is_running(command: str) -> bool:
    wanted = command.encode().replace(b" ", b"\0") + b"\0"
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if line.read_bytes() == wanted:
                return True
    return False


# The tiny agent


def test_the_tiny_agent_works_with_its_shell_and_everything_is_in_the_trace() -> None:
    rollout = play(
        [bash("echo hello > f; cat f"), bash("cat f; exit 3", "c2"), "done"], Command(program="mini")
    )

    assert rollout.score is not None
    assert (rollout.outcome, rollout.score.reward) == ("scored", 1.0)
    assert results(rollout) == ["hello\n", "hello\n\n(exit code 3)"]
    assert rollout.trace.prompt == [{"role": "user", "content": "Say done."}]
    assert rollout.trace.completion[-1] == {"role": "assistant", "content": "done"}
    assert rollout.usage.output_tokens == 1


def test_the_tiny_agent_is_a_script_that_needs_nothing_but_python(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_bytes((SHIPPED.parent / "mini.py").read_bytes())

    for words in ([str(script)], ["-m", "proctor.agents.mini"]):
        flags = ["-S"] if len(words) == 1 else []
        done = subprocess.run(
            [sys.executable, *flags, *words],
            input="hi",
            env={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("mini: URLError")


def test_on_the_command_line_a_program_is_named(proctor: Any, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(
        "from proctor import Environment\n"
        "env = Environment('t')\n"
        "@env.template()\n"
        "async def work():\n"
        "    answer = yield 'Say done.'\n"
        "    yield float('done' in answer)\n"
        "tasks = [work()]\n"
    )
    (tmp_path / "script.jsonl").write_text('"done"\n')

    eval_run = ("eval", "run", "tasks.py", "command", *ASKED, "--agent-args")
    done = proctor(*eval_run, '{"program": "mini"}')
    missing = proctor(*eval_run, '{"command": "no-such-agent"}')

    assert done.code == 0, done.stderr
    assert missing.code == 2
    assert "'no-such-agent', which agent 'command' runs, is not on this machine" in missing.stderr


# How it ends


def test_a_program_that_is_killed_by_the_time_limit_leaves_its_whole_trace_and_no_process(
    tmp_path: Path,
) -> None:
    stays = [bash(f"{nap(98761)} & setsid {nap(98762)} & echo started"), Step(text="late", delay_seconds=60)]

    rollout = play(stays, Command(program="mini"), timeout=8)

    assert rollout.outcome == "model_error"
    assert [each["role"] for each in rollout.trace.completion] == ["assistant", "tool"]
    assert results(rollout) == ["started\n"]
    assert rollout.trace.calls[-1].failure is not None
    assert not is_running(nap(98761))
    assert not is_running(nap(98762))


def test_a_program_that_will_not_end_is_ended() -> None:
    stubborn = f"trap '' TERM; {nap(97531)}; {nap(97531)}; {nap(97531)}"

    rollout = play([], Command(command=["sh", "-c", stubborn]), timeout=0.5)

    assert rollout.outcome == "timeout"
    assert not is_running(nap(97531))


def test_what_a_program_leaves_running_ends_with_it() -> None:
    rollout = play([], Command(command=f"({nap(96421)} &) ; (setsid {nap(96422)} &) ; echo done"))

    assert rollout.outcome == "scored"
    assert not is_running(nap(96421))
    assert not is_running(nap(96422))


def test_a_program_that_exits_with_another_code_has_failed_and_says_why() -> None:
    rollout = play([], Command(command="echo all lost >&2; exit 3"))

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert rollout.failure.message == "command ended with exit code 3: all lost"


def test_other_codes_may_be_a_success_too() -> None:
    assert play([], Command(command="echo done; exit 3", success_codes=[0, 3])).outcome == "scored"


@pytest.mark.parametrize("ending", ["exit 1", "exit 0"])
def test_a_program_that_fails_because_the_model_did_is_not_to_blame(ending: str) -> None:
    asks = f"{ask('x')}; echo done; {ending}"

    rollout = play([Step(error="timeout", text="503")], Command(command=asks))

    assert rollout.outcome == "model_error"
    assert rollout.failure is not None
    assert rollout.failure.kind == "ModelTimeoutError"


def test_a_full_context_leaves_what_was_done_to_be_scored() -> None:
    full = Step(error="context_too_long")

    given_up = play([bash("true"), full], Command(program="mini"))
    answered = play([full], Command(command=f"{ask('x')}; echo done"))

    for rollout in (given_up, answered):
        assert (rollout.outcome, rollout.trace.stop_condition) == ("truncated", "prompt_too_long")
    assert [rollout.score and rollout.score.reward for rollout in (given_up, answered)] == [0.0, 1.0]


def test_a_program_may_ask_so_often_and_is_scored_on_what_it_did() -> None:
    rollout = play([bash("echo 1"), bash("echo 2")], Command(program="mini", max_steps=2))

    assert (rollout.outcome, rollout.trace.stop_condition) == ("truncated", "max_steps")
    assert rollout.score is not None
    assert len(rollout.trace.calls) == 2


def test_a_program_that_does_nothing_at_all_is_told_from_one_that_answers_nothing() -> None:
    rollout = play([], Command(command="true"))

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert "never called the model and printed nothing" in rollout.failure.message


def test_a_flood_is_drunk_and_only_its_end_is_kept() -> None:
    rollout = play([], Command(command="head -c 50000000 /dev/zero | tr '\\0' x; echo done"))

    assert rollout.outcome == "scored"
    assert len(rollout.trace.completion[-1]["content"]) < 250_000


@pytest.mark.parametrize("command", ["no-such-agent --fast {prompt}", ["no-such-agent", "{prompt}"]])
def test_a_program_that_is_not_there_is_told_before_anything_is_asked(command: Any) -> None:
    model = Scripted(["done"])

    with pytest.raises(ConfigError, match="'no-such-agent', which agent 'command' runs, is not on this mach"):
        asyncio.run(evaluate(exam(), model, agent=Command(command=command)))
    assert model.requests == []


# What it sees


def test_a_program_sees_the_door_and_none_of_the_hosts_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-host-secret")
    home = os.environ["HOME"]

    rollout = play([], Command(command="env; echo done", env={"OWN": "at {url} for {model}"}))

    seen = rollout.trace.completion[-1]["content"]
    assert "sk-host-secret" not in seen
    assert f"HOME={home}\n" not in seen
    assert "OPENAI_API_KEY=sk-proctor-" in seen
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:" in seen
    assert "for scripted\n" in seen


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        ["cat"],
        "echo {prompt}",
        "echo '{prompt}'",
        ["echo", "{prompt}"],
        "cat {prompt_file}",
        ["cat", "{prompt_file}"],
    ],
)
def test_the_prompt_arrives_as_it_is_however_it_is_given(command: Any) -> None:
    prompt = 'It\'s "done"; echo $HOME `id` {key} && {}\n\tdone'

    rollout = play([], Command(command=command), exam(prompt))

    assert rollout.trace.completion[-1]["content"] == prompt


def test_a_prompt_that_is_too_long_for_an_argument_is_refused_with_another_way() -> None:
    rollout = play([], Command(command=["echo", "{prompt}"]), exam("x" * 200_000))

    assert rollout.failure is not None
    assert "use {prompt_file}" in rollout.failure.message
    assert play([], Command(command="wc -c; echo done"), exam("x" * 200_000)).outcome == "scored"


def test_the_answer_may_stand_in_a_file_or_be_the_last_thing_the_model_said() -> None:
    in_file = play([], Command(command="echo no; echo done > out.txt", answer="out.txt"))
    missing = play([], Command(command="echo done", answer="out.txt"))
    said = play(["done"], Command(command=f"{ask('x')}; echo no", answer="last_message"))

    assert [rollout.score and rollout.score.reward for rollout in (in_file, said)] == [1.0, 1.0]
    assert missing.failure is not None
    assert missing.failure.message == "command did not write 'out.txt', which was to hold its answer"


def test_system_messages_come_first_and_later_turns_bring_only_what_is_new() -> None:
    messages = [
        {"role": "user", "content": "first"},
        {"role": "system", "content": "rules"},
        {"role": "assistant", "content": "said"},
        {"role": "user", "content": "second"},
    ]

    assert prompt_of(messages[:2]) == "rules\n\nfirst"
    assert prompt_of(messages) == "second"
    with pytest.raises(AgentError, match="more than text"):
        prompt_of([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])


def test_a_task_with_several_turns_runs_the_program_for_each() -> None:
    env = Environment("talk")

    @env.template()
    async def talk():  # type: ignore[no-untyped-def]
        first = yield "one"
        second = yield f"{first} two"
        yield float(second == "one two three")

    talk()

    rollout = play(
        [], Command(command='printf "%s" "$(cat)"; grep -q two {prompt_file} && echo " three"'), env
    )

    assert rollout.failure is not None  # grep found nothing in the first turn
    rollout = play([], Command(command="sed 's/two$/two three/'"), env)
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert len(rollout.trace.completion) == 3


def test_tools_it_cannot_reach_are_refused_unless_they_are_not_needed() -> None:
    env = exam()
    env.tool(look)

    with pytest.raises(ConfigError, match=r"lend tools \(look\), which 'command', a separate program"):
        play([], Command(command="echo done"), env)
    assert play([], Command(command="echo done", ignore_tools=True), env).outcome == "scored"


# In a workspace


class Folder:
    """A workspace without walls."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.endpoints: list[HttpEndpoint | None] = []

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        self.endpoints.append(endpoint)
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.path,
            env={"PATH": os.environ["PATH"], **(variables or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin), seconds)
        return CommandResult(process.returncode, output.decode())


class Workshop:
    """An environment of one task that has a workspace, and nothing else."""

    traits = Traits(wants_agent=True)
    tools: Sequence[ToolSpec] = ()

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self.workspace = Folder(path)
        self.answer = ""

    def tasks(self) -> list[Task]:
        return [Task(id=0)]

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[Workshop]:
        yield self

    async def play(self, seat: Seat) -> None:
        self.answer = await seat.drive([{"role": "user", "content": "Say done."}], self)

    async def score(self, seat: Seat) -> Score:
        return Score(float("done" in self.answer))

    async def call(self, name: str, arguments: str) -> str:
        raise AssertionError(name)

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


def play_inside(script: Script, agent: Command, path: Path) -> Rollout:
    workshop = Workshop(path)
    (rollout,) = asyncio.run(evaluate(workshop, Scripted(script), agent=agent))
    assert all(endpoint is not None for endpoint in workshop.workspace.endpoints)
    return rollout


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"command": "echo aside >&2; echo done"}, "done"),
        ({"command": "cat; echo done"}, "Say done.done"),
        ({"command": ["sh", "-c", 'cat "$1"', "sh", "{prompt_file}"]}, "Say done."),
        ({"command": "echo no; echo done > out.txt", "answer": "out.txt"}, "done\n"),
        ({"command": "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo done"}, None),
        ({"command": "touch ~/notes; echo done"}, "done"),
        ({"command": f"({nap(95310)} &) ; echo done"}, "done"),
    ],
)
def test_in_a_workspace_it_is_the_same(settings: dict[str, Any], answer: str | None, tmp_path: Path) -> None:
    rollout = play_inside([], Command(**settings), tmp_path / "work")

    assert rollout.outcome == "scored"
    assert answer is None or rollout.trace.completion[-1]["content"] == answer
    assert {each.name for each in (tmp_path / "work").iterdir()} <= {"out.txt"}
    assert not is_running(nap(95310))


def test_in_a_workspace_failures_are_told_apart_too(tmp_path: Path) -> None:
    failed = play_inside([], Command(command="echo out; echo lost >&2; exit 3"), tmp_path)
    missing = play_inside([], Command(command="true", answer="out.txt"), tmp_path)
    absent = play_inside([], Command(command=["no-such-agent"]), tmp_path)

    messages = [rollout.failure.message for rollout in (failed, missing, absent) if rollout.failure]
    assert messages[0] == "command ended with exit code 3: lost"
    assert "never called the model" in messages[1]
    assert "ended with exit code 127 (no such command)" in messages[2]


def test_the_tiny_agent_works_in_a_workspace(tmp_path: Path) -> None:
    rollout = play_inside([bash("echo hi > made.txt"), "done"], Command(program="mini"), tmp_path)

    assert rollout.outcome == "scored"
    assert (tmp_path / "made.txt").read_text() == "hi\n"


# Programs


@pytest.mark.parametrize("name", list_shipped_programs())
def test_every_shipped_program_can_be_filled_in(name: str) -> None:
    endpoint = HttpEndpoint("http://127.0.0.1:1", "key", "/nowhere", "model")

    ready = build_invocation(resolve_program(name, {}), "the prompt", "/prompt", endpoint)

    assert ready.stdin == b"the prompt"
    assert "{" not in "".join(ready.words[:2])
    assert ready.variables["ANTHROPIC_MODEL"] == "model"


def test_words_win_over_the_toml_and_variables_are_added(tmp_path: Path) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text('command = "mine"\nmax_steps = 7\n[env]\nA = "1"\nB = "2"\n')

    agent = Command(program=str(toml), env={"B": "3"}, max_steps=9)

    assert (agent.name, agent.program.max_steps, agent.program.env) == ("mine", 9, {"A": "1", "B": "3"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('command = "x"\nansver = "stdout"\n', r"mine.toml:2: .*did you mean 'answer'"),
        ('command = "x"\n[env]\nA = 1\n', r"mine.toml:2: .*Expected `str`"),
        ('name = "x"\n', "needs a command"),
        ("command = []\n", "empty command"),
        ('command = "x"\nmax_steps = 0\n', "at least 1"),
    ],
)
def test_a_toml_with_a_mistake_is_refused_where_it_stands(text: str, message: str, tmp_path: Path) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text(text)

    with pytest.raises(ConfigError, match=message):
        Command(program=str(toml))


def test_a_program_nobody_ships_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mini'"):
        read_program_file("mimi")
    with pytest.raises(ConfigError, match="no program at"):
        read_program_file("mimi.toml")


# Bits


ASKED = ("-m", "scripted", "-b", "script.jsonl")


def look() -> str:
    return "nothing"


def ask(question: str) -> str:
    """A shell command that asks the model once, as the tiny agent would."""
    body = f'{{"messages": [{{"role": "user", "content": "{question}"}}]}}'
    code = (
        "import os, urllib.request as u; "
        f"r = u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', b'{body}', "
        "{'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}); u.urlopen(r)"
    )
    return "python3 -c " + "'" + code.replace("'", "'\\''") + "' 2>/dev/null"


# Programs that npm installed


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which npm installed a program, and a folder in it to work in."""
    package = tmp_path / "node_modules" / "chatty"
    package.mkdir(parents=True)
    (package / "cli.sh").write_text("#!/bin/sh\ncat >/dev/null; cat $(dirname $(readlink -f $0))/words\n")
    (package / "cli.sh").chmod(0o755)
    (package / "words").write_text("done")
    (tmp_path / "node_modules" / ".bin").mkdir()
    (tmp_path / "node_modules" / ".bin" / "chatty").symlink_to("../chatty/cli.sh")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    return tmp_path


@pytest.mark.parametrize("command", [["chatty"], "chatty --yes"])
def test_a_program_that_npm_installed_in_the_project_is_found(project: Path, command: Any) -> None:
    rollout = play([], Command(command=command))

    assert rollout.score is not None, rollout.failure
    assert rollout.score.reward == 1.0


@pytest.mark.usefixtures("sandboxes")
@pytest.mark.parametrize("command", [["chatty"], "chatty --yes"])
def test_a_program_that_npm_installed_in_the_project_runs_in_a_workspace(project: Path, command: Any) -> None:
    env = exam()
    env.workspace()

    rollout = play([], Command(command=command), env)

    assert rollout.score is not None, rollout.failure
    assert rollout.score.reward == 1.0


def test_a_program_that_no_sandbox_would_show_is_refused_with_what_would_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tool" / "bin" / "chatty"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\ncat >/dev/null; echo done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    env = exam()
    env.workspace()

    with pytest.raises(ConfigError, match="does not show") as refused:
        Command(command=["chatty"]).check(env)

    suggested = json.loads(str(refused.value).partition("--agent-args '")[2].rpartition("'")[0])
    assert suggested == {"path": [str(program.parent)], "mounts": [str(tmp_path / "tool")]}
    Command(command=["chatty"], **suggested).check(env)


def test_a_program_that_is_nowhere_is_refused_for_tasks_with_a_workspace_too() -> None:
    env = exam()
    env.workspace()

    with pytest.raises(ConfigError, match="neither on PATH nor in a"):
        Command(command=["no-such-agent", "{prompt}"]).check(env)
