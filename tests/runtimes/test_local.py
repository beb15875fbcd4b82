"""Every rollout in flight in a process of its own, which ends with it or, where that is safe, is reused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import Taskset
from proctor.errors import ConfigError, InfraError
from proctor.models.scripted import Scripted, Step
from proctor.runtimes.local import LocalRuntime
from proctor.task import Task, mint_task
from tests.waiting import wait_for

if TYPE_CHECKING:
    from proctor.evaluation.execute import Result
    from tests.conftest import Provider, Ran

ENV = """
import asyncio, os, sys, time
from proctor import Environment

env = Environment("shop")
moves = []


@env.template()
async def pid(number: int = 0):
    answer = yield str(os.getpid())
    yield {"score": float(answer == str(os.getpid())), "info": {"pid": os.getpid()}}


@env.template()
async def board(mark: str):
    moves.append(mark)
    await asyncio.sleep(0)
    answer = yield "play"
    moves.append(answer)
    yield float(moves == [mark, answer])


@env.template()
async def gone(number: int):
    yield "go"
    if number == 1:
        os._exit(3)
    await asyncio.sleep(0.2)
    yield 1.0


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


def pids_of(result: Result) -> set[str]:
    return {str(rollout.trace.prompt[0]["content"]) for rollout in result.rollouts}


def rewards_of(result: Result) -> list[float | None]:
    return [rollout.score.reward if rollout.score else None for rollout in result.rollouts]


def test_every_rollout_has_a_process_of_its_own_that_is_gone_afterwards(shop: Path) -> None:
    result = played(shop, *(task("pid", number=number) for number in range(6)), group=2)

    pids = pids_of(result)
    assert rewards_of(result) == [1.0] * 12
    assert len(pids) == 12
    assert str(os.getpid()) not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_board_kept_in_the_module_is_played_by_one_rollout_only(shop: Path) -> None:
    result = played(shop, task("board", mark="x"), group=4)

    assert rewards_of(result) == [1.0] * 4


def test_a_template_that_ends_its_process_costs_no_other_rollout(shop: Path) -> None:
    result = played(shop, *(task("gone", number=number) for number in range(4)))

    assert rewards_of(result) == [1.0, None, 1.0, 1.0]
    failure = result.rollouts[1].failure
    assert failure is not None
    assert "its process ended with exit code 3" in failure.message


def test_a_reusable_environment_keeps_its_processes_warm(shop: Path) -> None:
    shop.write_text(ENV.replace('Environment("shop")', 'Environment("shop", reusable=True)'))
    result = played(shop, *(task("pid", number=number) for number in range(12)), max_concurrent=2)

    assert rewards_of(result) == [1.0] * 12
    assert len(pids_of(result)) == 2


def test_a_process_in_which_a_rollout_failed_is_not_used_again(shop: Path) -> None:
    shop.write_text(ENV.replace('Environment("shop")', 'Environment("shop", reusable=True)'))
    fine = [task("pid", number=number) for number in range(2)]
    result = played(shop, fine[0], task("leaving"), fine[1], max_concurrent=1)

    assert result.rollouts[1].failure is not None
    assert rewards_of(result) == [1.0, None, 1.0]
    assert result.rollouts[0].trace.prompt != result.rollouts[2].trace.prompt


COUNTING = """
import asyncio, os
from proctor import Environment
env = Environment("shop", capacity=2)

@env.template()
async def pid(number: int = 0):
    folder = os.environ["OPEN_FOLDER"]
    open(f"{folder}/{number}", "w").close()
    yield "go"
    await asyncio.sleep(0.05)
    count = len(os.listdir(folder))
    os.remove(f"{folder}/{number}")
    yield float(count)
"""


@pytest.mark.parametrize("known", [True, False])
def test_no_more_rollouts_are_open_at_once_than_the_environment_can_hold(shop: Path, known: bool) -> None:
    shop.write_text(COUNTING + ("tasks = [pid(number=n) for n in range(6)]" if known else ""))
    folder = shop.parent / "open"
    folder.mkdir()
    runtime = LocalRuntime(shop, env={"OPEN_FOLDER": str(folder)})
    tasks = Taskset.from_file(shop) if known else Taskset("t", (task("pid", number=n) for n in range(6)))
    job = asyncio.run(tasks.run(model=Scripted(), runtime=runtime, output_dir=str(shop.parent)))

    assert max(rollout.score.reward for rollout in job if rollout.score) <= 2
    assert job.errors == []


def test_the_next_rollout_starts_although_the_process_that_forks_was_killed(shop: Path) -> None:
    async def run() -> list[int]:
        runtime = LocalRuntime(shop)
        codes = []
        for _ in range(2):
            async with runtime(task("pid")) as served:
                assert Path(served.url.removeprefix("unix://")).is_socket()
                process = runtime._forks._process
                assert process is not None
                process.kill()
                codes.append(await process.wait())
        await runtime.close()
        return codes

    assert asyncio.run(asyncio.wait_for(run(), 60)) == [-9, -9]


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
        ("x = (", "env.py"),
        ("x = 1", "no environment"),
    ],
)
def test_an_environment_that_cannot_be_loaded_says_why_before_anything_is_paid_for(
    shop: Path, code: str, said: str
) -> None:
    shop.write_text(code)

    with pytest.raises(ConfigError, match=re.escape(said)):
        played(shop, task("pid"), task("pid", number=1), max_concurrent=1)


def test_an_environment_whose_process_dies_while_it_loads_says_so_in_every_rollout(shop: Path) -> None:
    shop.write_text("import os; os.abort()")

    result = played(shop, task("pid"), task("pid", number=1), max_concurrent=1)

    for rollout in result.rollouts:
        assert rollout.outcome == "environment_error"
        assert rollout.failure is not None
        assert "SIGABRT" in rollout.failure.message


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not answer is waited for less."""
    monkeypatch.setattr("proctor.channel.client.CONNECT_SECONDS", 3.0)
    monkeypatch.setattr("proctor.channel.client.GOODBYE_SECONDS", 0.2)
    monkeypatch.setattr("proctor.runtimes.remote_environment.CANCEL_SECONDS", 0.5)


def test_a_blocked_environment_is_timed_out_and_leaves_nothing_behind(shop: Path, impatient: None) -> None:
    before = time.monotonic()
    result = played(shop, task("blocking"), timeout=1.0, scoring_timeout=1.0)

    (rollout,) = result.rollouts
    assert rollout.outcome == "timeout"
    assert time.monotonic() - before < 50


def test_a_blocked_process_does_not_keep_the_next_rollout_from_playing(shop: Path, impatient: None) -> None:
    shop.write_text(ENV.replace('Environment("shop")', 'Environment("shop", reusable=True)'))
    result = played(shop, task("blocking"), task("pid"), timeout=60, scoring_timeout=3.0, max_concurrent=1)

    blocked, fine = result.rollouts
    assert blocked.outcome == "timeout"
    assert fine.failure is None


def test_a_process_that_does_not_answer_is_aborted_so_that_it_says_where_it_was(shop: Path) -> None:
    async def run() -> None:
        runtime = LocalRuntime(shop)
        try:
            async with runtime(task("pid")):
                raise InfraError("no hello") from TimeoutError()
        finally:
            await runtime.close()

    with pytest.raises(
        InfraError, match="no hello: its process was killed by SIGABRT; its last output: Fatal"
    ):
        asyncio.run(run())


def test_the_time_limit_of_a_rollout_cancels_it_over_there(shop: Path, tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    result = played(shop, task("waiting", mark=str(mark)), scoring_timeout=2.0)

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


@pytest.mark.parametrize("source", ["nowhere.py", "nowhere.py:env"])
def test_a_missing_file_is_reported_before_anything_is_paid_for(source: str) -> None:
    with pytest.raises(ConfigError, match=r"There is no environment at 'nowhere\.py'"):
        asyncio.run(LocalRuntime(source).check())


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

    wait_for(lambda: not place.parent.exists())


# The command line


def tasks_file(tmp_path: Path, count: int = 4) -> Path:
    rows = [{"env": "shop", "template": "pid", "args": {"number": number}} for number in range(count)]
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_workers_play_each_rollout_in_a_process_of_its_own(
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
    assert len({row["prompt"][0]["content"] for row in ran.rows}) == 48


def test_the_capacity_of_an_environment_counts_for_all_workers_together(
    shop: Path,
    tmp_path: Path,
    proctor: Callable[..., Ran],
    provider: Callable[..., Provider],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    monkeypatch.setenv("OPEN_FOLDER", str(folder))
    shop.write_text(COUNTING + "tasks = [pid(number=n) for n in range(8)]")
    words = ["eval", "run", str(shop), "--all", "-w", "2", "-c", "8", "--json", "-A"]
    ran = proctor(*words, "-m", "m", "-b", provider().url)

    assert ran.code == 0, ran.stderr
    assert len(ran.rows) == 8
    assert max(row["reward"] for row in ran.rows) <= 2


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


INSTALLED = """
from proctor import Environment

env = Environment("letters-of-the-package")


@env.template()
async def repeat(word: str):
    answer = yield f"Say {word}."
    yield float(word in answer)


repeat(word="fig")
"""


@pytest.mark.parametrize("env_id", ["letters_package", "ada/letters_package"])
def test_an_installed_package_with_a_loader_is_played_in_a_child_process(
    tmp_path: Path, proctor: Callable[..., Ran], env_id: str
) -> None:
    package = tmp_path / "site" / "letters_package"
    package.mkdir(parents=True)
    (package / "tasks.py").write_text(INSTALLED)
    (package / "__init__.py").write_text(
        "def load_environment():\n    from .tasks import env\n    return env\n"
    )
    words = ("eval", "run", env_id, "-m", "scripted", "--runtime", "local", "-n", "1", "-r", "1", "--json")

    ran = proctor(*words, environ={"PYTHONPATH": str(tmp_path / "site")})

    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)["summary"]["reward"]["mean"] == 1.0
