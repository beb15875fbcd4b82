"""Environments in a process of their own: shared by rollouts, replaced when it dies, gone with the run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import Taskset
from proctor.errors import ConfigError
from proctor.models.scripted import Scripted, Step
from proctor.runtimes.local import LocalRuntime
from proctor.task import Task, mint_task

if TYPE_CHECKING:
    from proctor.evaluation.execute import Result
    from tests.conftest import Provider, Ran

ENV = """
import asyncio, os, sys, time
from proctor import Environment

env = Environment("shop")


@env.template()
async def pid(number: int = 0):
    answer = yield str(os.getpid())
    yield {"score": float(answer == str(os.getpid())), "info": {"pid": os.getpid()}}


@env.template()
async def dying(mark: str, words: str = ""):
    first = not os.path.exists(mark)
    if first:
        open(mark, "w").close()
    yield "go"
    if first:
        print(words, flush=True)
        os.kill(os.getpid(), 9)
    yield 1.0


@env.template()
async def leaving():
    yield "go"
    sys.exit("I leave")


@env.template()
async def blocking():
    yield "go"
    time.sleep(60)
    yield 1.0


@env.template()
async def waiting(mark: str):
    try:
        yield "go"
        await asyncio.sleep(60)
        yield 1.0
    finally:
        open(mark, "w").close()


@env.template()
async def loud():
    yield "go"
    for number in range(2000):
        print("line", number)
    print("x" * 200_000)
    print("and this was all")
    yield 1.0


@env.template()
async def judged():
    answer = yield "Is water wet?"
    yield await env.judge(answer, question="Is water wet?", expected="yes")


@env.template()
async def talking():
    heard = []
    for number in range(3):
        heard.append((yield f"turn {number}"))
    yield float(heard == ["turn 0", "turn 1", "turn 2"])


@env.tool
async def double(number: int) -> int:
    "Twice the number."
    return 2 * number


@env.template()
async def tooled():
    answer = yield "use double"
    yield float(answer == "42")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """The file of an environment; nothing of ours may be left in the folder for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    file = tmp_path / "env.py"
    file.write_text(ENV)
    yield file
    tempfile.tempdir = before
    assert list(folder.iterdir()) == []


def task(template: str, **args: Any) -> Task:
    return mint_task("shop", template, args)


def played(
    shop: Path,
    *tasks: Task,
    model: Scripted | None = None,
    runtime: LocalRuntime | None = None,
    **settings: Any,
) -> Result:
    job = Taskset("shop", tasks).run(
        model=model or Scripted(),
        runtime=runtime or LocalRuntime(shop),
        output_dir=str(shop.parent),
        **settings,
    )
    return asyncio.run(job).result


def test_all_rollouts_share_one_process_that_is_not_ours(shop: Path) -> None:
    result = played(shop, *(task("pid", number=number) for number in range(20)), group=3)

    pids = {rollout.trace.prompt[0]["content"] for rollout in result.rollouts}
    assert [rollout.score is not None and rollout.score.reward for rollout in result.rollouts] == [1.0] * 60
    assert len(pids) == 1
    assert pids != {str(os.getpid())}
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.pop()), 0)


def test_a_process_that_is_killed_fails_its_rollouts_with_its_last_words(shop: Path, tmp_path: Path) -> None:
    doomed = task("dying", mark=str(tmp_path / "mark"), words="farewell")
    result = played(shop, doomed, task("pid"), max_concurrent=1)

    failed, fine = result.rollouts
    assert failed.failure is not None
    assert (failed.outcome, failed.failure.kind) == ("environment_error", "EnvLostError")
    assert "its process was killed by SIGKILL; its last output: farewell" in failed.failure.message
    assert fine.score is not None
    assert fine.score.reward == 1.0


def test_rollouts_of_a_process_that_died_are_played_again_if_that_is_wanted(
    shop: Path, tmp_path: Path
) -> None:
    result = played(shop, task("dying", mark=str(tmp_path / "mark")), max_retries=2)

    (rollout,) = result.rollouts
    assert rollout.score is not None
    assert [attempt.failure.kind for attempt in rollout.earlier] == ["EnvLostError"]


def test_a_template_that_exits_ends_its_own_rollout_only(shop: Path) -> None:
    result = played(shop, task("leaving"), task("pid"), max_concurrent=1)

    failed, fine = result.rollouts
    assert failed.failure is not None
    assert "I leave" in failed.failure.message
    assert fine.failure is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_the_kind", "nothing_of_the_kind"),
        ("raise RuntimeError('not today')", "not today"),
        ("import sys; print('so long'); sys.exit(3)", "SystemExit: 3"),
        ("import os; os.abort()", "SIGABRT"),
        ("x = (", "env.py"),
        ("x = 1", "no environment"),
    ],
)
def test_an_environment_that_cannot_be_loaded_says_why_in_every_rollout(
    shop: Path, code: str, said: str
) -> None:
    shop.write_text(code)

    result = played(shop, task("pid"), task("pid", number=1), max_concurrent=1)

    for rollout in result.rollouts:
        assert rollout.outcome == "environment_error"
        assert rollout.failure is not None
        assert said in rollout.failure.message


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not answer is waited for less."""
    monkeypatch.setattr("proctor.channel.client.CONNECT_SECONDS", 1.0)
    monkeypatch.setattr("proctor.channel.client.GOODBYE_SECONDS", 0.2)
    monkeypatch.setattr("proctor.runtimes.remote_environment.CANCEL_SECONDS", 0.5)


def test_a_blocked_environment_is_timed_out_and_leaves_nothing_behind(shop: Path, impatient: None) -> None:
    before = time.monotonic()
    result = played(shop, task("blocking"), timeout=1.0, scoring_timeout=1.0)

    (rollout,) = result.rollouts
    assert rollout.outcome == "timeout"
    assert time.monotonic() - before < 25


def test_a_process_that_does_not_say_hello_says_where_it_is_blocked(shop: Path, impatient: None) -> None:
    result = played(shop, task("blocking"), task("pid"), timeout=20, scoring_timeout=1.0, max_concurrent=1)

    blocked, ignored, *_ = result.rollouts
    assert blocked.outcome == "timeout"
    assert ignored.failure is not None
    assert "did not answer within 1 s" in ignored.failure.message
    assert "SIGABRT" in ignored.failure.message
    assert "env.py" in ignored.failure.message


def test_the_time_limit_of_a_rollout_cancels_it_over_there(shop: Path, tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    result = played(shop, task("waiting", mark=str(mark)), scoring_timeout=0.5)

    assert result.rollouts[0].outcome == "timeout"
    assert mark.exists()


def test_a_judge_over_there_asks_the_model_here_and_is_in_the_trace(shop: Path) -> None:
    model = Scripted(["yes"])
    result = played(shop, task("judged"), model=model)

    (rollout,) = result.rollouts
    assert rollout.score is not None
    assert [call.role for call in rollout.trace.calls] == ["agent", "judge"]
    assert len(model.requests) == 2


def test_a_judge_whose_model_fails_is_an_error_of_the_grader(shop: Path) -> None:
    model = Scripted({"reference_answer": Step(error="auth"), "Is water wet?": "yes"})
    result = played(shop, task("judged"), model=model)

    assert [rollout.outcome for rollout in result.rollouts] == ["grader_error"]


def test_several_turns_and_tools_work_as_in_this_process(shop: Path) -> None:
    call = {"id": "1", "name": "double", "arguments": '{"number": 21}'}
    model = Scripted({"use double": [Step(tool_calls=[call]), "42"]})
    result = played(shop, task("talking"), task("tooled"), model=model)

    talking, tooled = result.rollouts
    assert talking.score is not None
    assert (talking.score.reward, talking.score.metrics["num_turns"]) == (1.0, 3.0)
    assert tooled.score is not None
    assert (tooled.score.reward, tooled.score.metrics["total_tool_calls"]) == (1.0, 1.0)


def test_what_the_process_prints_is_logged_and_a_long_line_is_cut_with_a_mark(
    shop: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "proctor"):
        played(shop, task("loud"))
    assert "line 1999" in caplog.text
    assert "(181,024 more bytes cut)" in caplog.text
    assert "and this was all" in caplog.text


def test_two_environments_get_a_process_each(shop: Path) -> None:
    shop.write_text(ENV + ENV.replace('"shop"', '"other"').replace("env", "other_env"))
    result = played(shop, task("pid"), mint_task("other", "pid", {}, "others"))

    assert len({rollout.trace.prompt[0]["content"] for rollout in result.rollouts}) == 2


def test_it_takes_paths_only() -> None:
    with pytest.raises(ConfigError, match="takes the path"):
        LocalRuntime(object())  # type: ignore[arg-type]


def test_starting_takes_no_longer_than_it_may(shop: Path) -> None:
    shop.write_text("import time; time.sleep(60)")
    result = played(shop, task("pid"), runtime=LocalRuntime(shop, start_seconds=0.5))

    assert result.rollouts[0].failure is not None
    assert "was not ready after 0.5 s" in result.rollouts[0].failure.message


def test_the_process_is_gone_when_whoever_started_it_is_killed(shop: Path, tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(
        "import asyncio, sys\n"
        "from proctor.runtimes.local import LocalRuntime\n"
        "from proctor.task import mint_task\n"
        "async def main():\n"
        f"    async with LocalRuntime({str(shop)!r})(mint_task('shop', 'pid', {{}})) as runtime:\n"
        "        print(runtime.url, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    folder = tmp_path / "tmp"
    environ = {**os.environ, "TMPDIR": str(folder)}
    driver = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environ)
    assert driver.stdout is not None
    place = Path(driver.stdout.readline().strip().removeprefix("unix://"))
    assert place.is_socket()

    driver.kill()
    driver.communicate()

    deadline = time.monotonic() + 15
    while place.parent.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not place.parent.exists()


# The command line


def tasks_file(tmp_path: Path, count: int = 4) -> Path:
    rows = [{"env": "shop", "template": "pid", "args": {"number": number}} for number in range(count)]
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_workers_have_a_process_each(
    shop: Path, tmp_path: Path, proctor: Callable[..., Ran], provider: Callable[..., Provider]
) -> None:
    words = [
        "eval",
        "run",
        str(tasks_file(tmp_path, 12)),
        "--all",
        "--group",
        "4",
        "--runtime",
        "local",
        "-w",
        "2",
        "--json",
    ]
    ran = proctor(*words, "-m", "m", "-b", provider().url, "-A")

    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in ran.rows] == [1.0] * 48
    assert len({row["prompt"][0]["content"] for row in ran.rows}) == 2


def test_a_run_with_a_runtime_is_gone_on_with(
    shop: Path, tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    file = tasks_file(tmp_path)
    words = ["eval", "run", str(file), "-m", "scripted", "--runtime", "local", "--json", "-s"]
    first = proctor(*words, "-n", "2")
    again = proctor(*words, "-n", "4", "--resume", str(first.folder))

    assert (first.code, again.code) == (0, 0), first.stderr + again.stderr
    assert len(again.rows) == 4


def test_the_report_says_where_the_environment_lived(
    shop: Path, tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    ran = proctor("eval", "run", str(tasks_file(tmp_path)), "-m", "scripted", "--runtime", "local")

    assert ["runtime", "local"] in [line.split() for line in ran.stdout.splitlines()]


def test_a_suite_names_a_runtime(shop: Path, tmp_path: Path, proctor: Callable[..., Ran]) -> None:
    file = tasks_file(tmp_path)
    (tmp_path / "suite.toml").write_text(
        f'model = "scripted"\nruntime = "local"\nnum_examples = -1\n[[eval]]\nenv_id = "{file}"\n'
    )
    ran = proctor("eval", "run", "suite.toml", "--json")

    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)
