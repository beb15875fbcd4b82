"""Rollouts in processes of their own: every one is played once, whoever dies."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor import ConfigError, Scripted, evaluate
from tests.conftest import Provider, Ran
from tests.waiting import SECONDS, wait_for

Run = Callable[..., Ran]

SLOW = """
import os, sys, asyncio
from proctor import Rubric, SingleTurnEnv

def right(completion, answer):
    return float(answer in completion[-1]["content"])

async def process(state):
    return float(os.getpid())

class Slow(SingleTurnEnv):
    async def setup_state(self, state):
        await asyncio.sleep({seconds})
        {trick}
        return state

def load_environment(tasks=12):
    rows = [{{"question": f"say {{n}}", "answer": f"say {{n}}"}} for n in range(tasks)]
    return Slow(rows, rubric=Rubric(right, process, weights=[1.0, 0.0]))
"""


def environment(folder: Path, trick: str = "pass", seconds: float = 0.0) -> Path:
    path = folder / "slow.py"
    path.write_text(SLOW.format(trick=trick, seconds=seconds))
    return path


def keys(ran: Ran) -> list[tuple[Any, int]]:
    return [(row["example_id"], row["rollout"]) for row in ran.rows]


ODD = {"tasks": type("Odd", (int,), {})(3)}
"""Settings that no other process can read."""
ALL = [(task, number) for task in range(12) for number in range(2)]
SIZE = ("-n", "12", "-r", "2", "--json")


def test_workers_share_the_rollouts_and_the_results_are_those_of_one_process(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path, server = environment(tmp_path), provider()
    words = ("eval", "run", str(path), "-m", "m", "-b", server.url, "-c", "8", *SIZE)

    alone, together = proctor(*words), proctor(*words, "-w", "2")

    assert together.code == 0, together.stderr
    assert keys(together) == keys(alone) == ALL
    assert together.summary["reward"] == alone.summary["reward"]
    assert together.summary["usage"] == alone.summary["usage"]
    assert len({row["metrics"]["process"] for row in alone.rows}) == 1
    assert len({row["metrics"]["process"] for row in together.rows}) == 2
    varying = {"timing", "metrics", "model_calls"}
    for one, other in zip(alone.rows, together.rows, strict=True):
        assert {name: one[name] for name in one if name not in varying} == {
            name: other[name] for name in other if name not in varying
        }


def test_a_group_is_played_and_scored_by_one_worker(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    (tmp_path / "shortest.py").write_text(
        """
import os
from proctor import Rubric, SingleTurnEnv

def shortest(completions):
    sizes = [len(each[-1]["content"]) for each in completions]
    return [float(size == min(sizes)) for size in sizes]

def process(completion):
    return float(os.getpid())

def load_environment():
    rows = [{"question": f"say {n}"} for n in range(8)]
    return SingleTurnEnv(rows, rubric=Rubric(shortest, process, weights=[1.0, 0.0]))
"""
    )
    server = provider("short", "much longer", "short")

    ran = proctor(
        "eval", "shortest.py", "-m", "m", "-b", server.url, "-n", "8", "-r", "3", "-w", "2", "--json"
    )

    assert ran.code == 0, ran.stderr
    for task in range(8):
        rows = [row for row in ran.rows if row["example_id"] == task]
        assert len({row["metrics"]["process"] for row in rows}) == 1
        assert {row["group_size"] for row in rows} == {3}


def test_the_tools_stand_in_the_metadata_once(proctor: Run, tmp_path: Path, provider: Any) -> None:
    (tmp_path / "tooled.py").write_text(
        """
from proctor import Rubric, ToolEnv

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def load_environment():
    return ToolEnv([{"question": f"say {n}"} for n in range(40)], tools=[add], rubric=Rubric(lambda **_: 1.0))
"""
    )
    ran = proctor(
        "eval",
        "tooled.py",
        "-m",
        "m",
        "-b",
        provider().url,
        "-n",
        "40",
        "-r",
        "1",
        "-c",
        "2",
        "-w",
        "2",
        "--json",
    )

    assert ran.code == 0, ran.stderr
    assert [tool["name"] for tool in ran.metadata["tools"]] == ["add"]
    assert sum("tool_defs" in row for row in ran.rows) < 10


def started(words: list[str], cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "proctor", *words],
        cwd=cwd,
        env={**os.environ},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def command_of(pid: int) -> bytes:
    """What a process was started as; nothing if it is gone, as others that a run starts soon are."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def workers_of(process: subprocess.Popen[str], count: int) -> list[int]:
    """The workers' process ids, as soon as there are so many."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def find() -> list[int] | None:
        found = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        found = [pid for pid in found if b"proctor.workers" in command_of(pid)]
        return found if len(found) == count else None

    return wait_for(find, what="the workers")


def results_in(folder: Path, at_least: int) -> None:
    def are_there() -> bool:
        files = list(folder.glob("outputs/evals/*/*/results.jsonl"))
        return bool(files) and files[0].read_bytes().count(b"\n") >= at_least

    wait_for(are_there, what="results")


def test_a_worker_that_is_killed_costs_no_rollout_and_the_log_says_what_happened(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path, "print('setting up', flush=True)", seconds=0.1)
    words = ["eval", "run", str(path), "-m", "m", "-b", provider().url, "-c", "4", "-w", "2", "-s", *SIZE]
    run = started(words, tmp_path)
    victim = workers_of(run, 2)[0]
    results_in(tmp_path, 3)

    os.kill(victim, signal.SIGKILL)
    stdout, stderr = run.communicate(timeout=SECONDS)

    ran = Ran(run.returncode, stdout, stderr, tmp_path)
    assert ran.code == 0, stderr
    assert keys(ran) == ALL
    assert ran.summary["coverage"] == 1.0
    assert 1 <= ran.summary["retried"] <= 2
    again = [row for row in ran.rows if row.get("attempts", 1) > 1]
    assert {row["earlier_attempts"][0]["error"]["error"] for row in again} == {"WorkerDiedError"}
    said = re.compile(
        rf"worker \d \(process {victim}\) was killed by SIGKILL; [12] units? .* played again by others; "
        r"its last words: .*setting up"
    )
    assert said.search(stderr), stderr
    assert said.search((ran.folder / "run.log").read_text())


def test_a_rollout_that_kills_its_workers_ends_in_an_error_and_the_others_are_scored(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path, "os._exit(9) if state['answer'] == 'say 5' else None")

    ran = proctor(
        *("eval", str(path), "-m", "m", "-b", provider().url, "-n", "12", "-r", "1", "-c", "2", "-w", "2"),
        "--json",
    )

    assert ran.code == 1
    [failed] = [row for row in ran.rows if row["error"]]
    assert failed["example_id"] == 5
    assert failed["outcome"] == "environment_error"
    assert "ended with exit code 9" in failed["error"]["message"]
    assert len(failed["earlier_attempts"]) == 4
    assert len(ran.rows) == 12


def test_whoever_plays_beside_a_rollout_that_kills_its_workers_is_not_blamed(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(
        tmp_path, "os.kill(os.getpid(), 11) if state['answer'] == 'say 5' else await asyncio.sleep(0.5)"
    )

    ran = proctor(
        *("eval", str(path), "-m", "m", "-b", provider().url, "-n", "12", "-r", "1", "-c", "12", "-w", "2"),
        "--json",
    )

    assert [row["example_id"] for row in ran.rows if row["error"]] == [5]
    assert len(ran.rows) == 12
    assert "was killed by SIGSEGV" in ran.stderr
    assert "its last words: Fatal Python error: Segmentation fault" in ran.stderr
    assert "in setup_state" in ran.stderr


def test_all_workers_may_be_killed_at_once(tmp_path: Path, provider: Callable[..., Provider]) -> None:
    path = environment(tmp_path, seconds=0.2)
    words = ["eval", "run", str(path), "-m", "m", "-b", provider().url, "-c", "6", "-w", "6", "-s", *SIZE]
    run = started(words, tmp_path)
    workers = workers_of(run, 6)
    results_in(tmp_path, 1)

    for victim in workers:
        os.kill(victim, signal.SIGKILL)
    stdout, stderr = run.communicate(timeout=SECONDS)

    ran = Ran(run.returncode, stdout, stderr, tmp_path)
    assert ran.code == 0, stderr
    assert keys(ran) == ALL


def test_a_dead_worker_is_noticed_although_a_child_of_it_holds_its_socket(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(
        tmp_path,
        """if state['answer'] == 'say 3' and not os.path.exists('forked'):
            open('forked', 'w').write(str(os.getpid()))
            if os.fork() == 0:
                import time
                time.sleep(50)
                os._exit(0)
            os.kill(os.getpid(), 9)""",
    )

    ran = proctor("eval", str(path), "-m", "m", "-b", provider().url, "-c", "4", "-w", "2", *SIZE)

    assert ran.code == 0, ran.stderr
    assert keys(ran) == ALL
    assert "was killed by SIGKILL" in ran.stderr


def test_a_file_of_the_user_does_not_pass_for_a_module_of_the_library(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    (tmp_path / "lab").mkdir()
    path = environment(tmp_path / "lab")
    for name in ("queue.py", "uuid.py", "msgspec.py"):
        (tmp_path / name).write_text("raise RuntimeError('not meant for you')")
    words = ["eval", str(path), "-m", "m", "-b", provider().url, "-n", "2", "-r", "1", "-w", "2", "--json"]

    command = Path(sys.executable).with_name("proctor")
    ran = subprocess.run([command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)

    assert ran.returncode == 0, ran.stderr


def test_an_environment_imports_in_a_worker_what_a_script_lets_it_import(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    environment(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "neighbour.py").write_text("GREETING = 'hello'")
    slow = (tmp_path / "slow.py").read_text()
    (tmp_path / "slow.py").write_text(f"from neighbour import GREETING\n{slow}")
    (tmp_path / "script.py").write_text(
        f"""
import asyncio, sys
sys.path.append("elsewhere")
from proctor import evaluate

result = asyncio.run(
    evaluate("slow.py", "m", api_base_url="{provider().url}", num_workers=2, state_columns=("answer",))
)
assert [rollout.task.id for rollout in result] == list(range(12))
assert [rollout.score.reward for rollout in result] == [1.0] * 12
assert [rollout.columns["answer"] for rollout in result] == [f"say {{n}}" for n in range(12)]
assert len({{rollout.score.metrics["process"] for rollout in result}}) == 2
assert result.rollouts[3].trace.completion[-1]["content"] == "say 3"
"""
    )

    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
    )

    assert ran.returncode == 0, ran.stderr


def test_a_model_made_in_python_is_the_one_that_is_asked(tmp_path: Path) -> None:
    path = environment(tmp_path)
    model = Scripted(["say 0", "say 1", "no"])

    result = asyncio.run(evaluate(str(path), model, num_examples=3))

    assert [rollout.score.reward for rollout in result if rollout.score] == [1.0, 1.0, 0.0]
    assert result.run.model == model.name
    with pytest.raises(ConfigError, match="A model made in Python cannot be made again in a worker"):
        asyncio.run(evaluate(str(path), model, num_workers=2))


def test_settings_that_cannot_travel_are_told_of(tmp_path: Path, provider: Callable[..., Provider]) -> None:
    path = environment(tmp_path)
    url = provider().url

    with pytest.raises(ConfigError, match="The settings cannot be sent to a worker process"):
        asyncio.run(evaluate(str(path), "m", api_base_url=url, num_workers=2, env_args=ODD))


def test_ctrl_c_does_not_wait_for_workers_that_still_load(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path)
    with path.open("a") as file:
        file.write(
            "\nimport time\nif os.path.exists('loaded'):\n    time.sleep(50)\nopen('loaded', 'w').close()\n"
        )
    words = ["eval", "run", str(path), "-m", "m", "-b", provider().url, "-w", "2", "-s", *SIZE]
    run = started(words, tmp_path)
    workers = workers_of(run, 2)

    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=SECONDS)

    ran = Ran(run.returncode, stdout, stderr, tmp_path)
    assert ran.code == 130, stderr
    assert ran.metadata["status"] == "stopped"
    assert not any(is_alive(pid) for pid in workers)


def test_a_worker_outlives_its_run_by_moments_also_when_its_event_loop_is_blocked(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    trick = "open('busy', 'w').close(); exec('while True: pass')"
    path = environment(tmp_path, trick)
    with path.open("a") as file:
        file.write("\nimport proctor.workers.process as own\nown.ALIVE_SECONDS = own.CLOSING_SECONDS = 0.5\n")
    run = started(["eval", str(path), "-m", "m", "-b", provider().url, "-w", "2", *SIZE], tmp_path)
    workers = workers_of(run, 2)
    wait_for((tmp_path / "busy").exists)

    run.kill()
    run.communicate(timeout=SECONDS)

    wait_for(lambda: not any(is_alive(pid) for pid in workers), what="the workers' end")


def test_workers_that_only_die_end_the_run_with_their_last_words(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path, "print('out of luck', file=sys.stderr); os._exit(3)")

    ran = proctor("eval", str(path), "-m", "m", "-b", provider().url, "-c", "2", "-w", "2", "--json")

    assert ran.code == 1
    assert "ended with exit code 3" in ran.stdout
    assert "out of luck" in ran.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-w", "0"], "must be a number of processes, or auto"),
        (["-w", "many"], "must be a number of processes, or auto"),
        (["-w", "2", "-N"], "give one of them"),
        (["-w", "2", "-m", "local"], "load the embedded model again"),
    ],
)
def test_what_workers_cannot_do_is_refused(proctor: Run, words: list[str], reason: str) -> None:
    ran = proctor("eval", "echo", "-m", "scripted", *words)

    assert ran.code == 2
    assert reason in ran.stderr


def test_a_worker_that_cannot_load_the_environment_refuses_the_run(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    (tmp_path / "once.py").write_text(
        """
from pathlib import Path
from proctor import EchoEnvironment

def load_environment():
    if Path("loaded").exists():
        raise RuntimeError("loaded already")
    Path("loaded").touch()
    return EchoEnvironment("say 1")
"""
    )

    ran = proctor("eval", "once.py", "-m", "m", "-b", provider().url, "-w", "2")

    assert ran.code == 2
    assert "loaded already" in ran.stderr
    [metadata] = tmp_path.glob("state/**/metadata.json")
    assert json.loads(metadata.read_text())["status"] == "failed"


@pytest.mark.parametrize("value", ["threading.Lock()", "OneWay('gone', 1)"])
def test_a_task_that_cannot_travel_is_told_of(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider], value: str
) -> None:
    (tmp_path / "locked.py").write_text(
        """
import threading
from proctor import Rubric, SingleTurnEnv

class OneWay(Exception):
    "Can be pickled, and not be made again."

    def __init__(self, text, number):
        super().__init__(text)

def load_environment():
    rows = [{"question": "?", "info": {"value": VALUE}}]
    return SingleTurnEnv(rows, rubric=Rubric(lambda **_: 1.0))
""".replace("VALUE", value)
    )

    ran = proctor("eval", "locked.py", "-m", "m", "-b", provider().url, "-w", "2")

    assert ran.code == 2
    assert "Task 0 cannot be sent to a worker process" in ran.stderr
    assert "leave out -w" in ran.stderr


def test_a_refused_key_stops_the_run_before_anything_is_kept(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    server = provider({"status": 401, "text": "no such key"})

    ran = proctor("eval", "echo", "-m", "m", "-b", server.url, "-w", "2")

    assert ran.code == 2
    assert "no such key" in ran.stderr


def test_ctrl_c_lets_workers_finish_and_leaves_none_behind(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path, seconds=0.2)
    words = ["eval", "run", str(path), "-m", "m", "-b", provider().url, "-c", "4", "-w", "2", "-s", *SIZE]
    run = started(words, tmp_path)
    workers = workers_of(run, 2)
    results_in(tmp_path, 2)

    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=SECONDS)

    ran = Ran(run.returncode, stdout, stderr, tmp_path)
    assert ran.code == 130, stderr
    assert 2 <= len(ran.rows) < 24
    assert {row["outcome"] for row in ran.rows} == {"scored"}
    assert not any(is_alive(pid) for pid in workers)


def test_workers_end_with_the_run_that_started_them(
    tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    path = environment(tmp_path, seconds=0.2)
    words = ["eval", "run", str(path), "-m", "m", "-b", provider().url, "-c", "4", "-w", "2", "-s", *SIZE]
    run = started(words, tmp_path)
    workers = workers_of(run, 2)
    results_in(tmp_path, 1)

    run.kill()
    run.communicate(timeout=SECONDS)

    wait_for(lambda: not any(is_alive(pid) for pid in workers), what="the workers' end")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("value", ["threading.Lock()", "OneWay('gone', 1)"])
def test_state_that_cannot_travel_is_kept_as_text(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider], value: str
) -> None:
    path = environment(tmp_path, f"import threading; state['odd'] = {value}")
    with path.open("a") as file:
        file.write("\nclass OneWay(Exception):\n    def __init__(self, a, b):\n        super().__init__(a)\n")

    ran = proctor("eval", str(path), "-m", "m", "-b", provider().url, "-w", "2", "-C", "odd", *SIZE)

    assert ran.code == 0, ran.stderr
    assert keys(ran) == ALL
    assert all(isinstance(row["odd"], str) for row in ran.rows)


def test_threads_of_an_environment_may_log_and_what_they_print_fills_no_memory(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    trick = """import logging
        for n in range(20):
            await asyncio.to_thread(logging.getLogger('proctor').warning, 'careful with %s', state['answer'])
        logging.getLogger('proctor').warning('%d of two', 1, 2)
        print('x' * 3_000_000)
        if state['answer'] == 'say 5' and not os.path.exists('dead'):
            open('dead', 'w').close()
            os._exit(9)"""
    path = environment(tmp_path, trick)

    ran = proctor(
        "eval", str(path), "-m", "m", "-b", provider().url, "-w", "2", "-r", "1", "-n", "12", "--json"
    )

    assert ran.code == 0, ran.stderr
    log = (ran.folder / "run.log").read_text()
    assert all(log.count(f"careful with say {n}\n") >= 20 for n in range(12))
    assert "its last words: …xxx" in log
    assert len(log) < 1_000_000, "each line is cut"


def test_what_a_worker_logs_is_in_the_log_of_the_run(
    proctor: Run, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    trick = "import logging; logging.getLogger('proctor').warning('careful with %s', state['answer'])"
    path = environment(tmp_path, trick)

    ran = proctor(
        "eval", str(path), "-m", "m", "-b", provider().url, "-n", "1", "-r", "1", "-w", "2", "--json"
    )

    assert ran.code == 0, ran.stderr
    assert re.search(r"WARNING worker \d: careful with say 0", (ran.folder / "run.log").read_text())


def test_one_worker_for_each_256_rollouts_in_flight_and_at_most_one_for_each_core(
    proctor: Run, provider: Callable[..., Provider]
) -> None:
    def workers(*words: str) -> Mapping[str, Any]:
        ran = proctor("eval", "echo", "-m", "m", "-b", provider().url, *words, "--dry-run", "--json")
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    assert workers()["workers"] == 1
    assert workers("-c", "256")["workers"] == 1
    cores = len(os.sched_getaffinity(0))
    assert workers("-c", "257")["workers"] == min(2, cores)
    assert workers("-c", "20000")["workers"] == min(79, cores)
    assert workers("-c", "2000", "-N")["workers"] == 1
    assert workers("-w", "3")["workers"] == 3
