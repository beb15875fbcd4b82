"""`proctor eval` as a user meets it: flags, plans, exit codes, Ctrl-C, folders and mistakes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.cli.app import run
from tests.waiting import SECONDS

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

    Run = Callable[..., Ran]

FLAGS = {
    # Listed in the issue, with the short forms of the seed
    "--env-args": "-a",
    "--extra-env-kwargs": "-x",
    "--env-dir-path": "-p",
    "--model": "-m",
    "--api-base-url": "-b",
    "--api-key-var": "-k",
    "--api-client-type": None,
    "--agent-args": None,
    "--runtime": None,
    "--runtime-args": None,
    "--max-steps": None,
    "--task-ids": None,
    "--all": None,
    "--header": None,
    "--header-from-state": None,
    "--max-tokens": "-t",
    "--temperature": "-T",
    "--sampling-args": "-S",
    "--num-examples": "-n",
    "--rollouts-per-example": "-r",
    "--max-concurrent": "-c",
    "--max-concurrent-generation": None,
    "--max-concurrent-scoring": None,
    "--no-interleave-scoring": "-N",
    "--independent-scoring": "-i",
    "--max-retries": None,
    "--verbose": "-v",
    "--fullscreen": "-f",
    "--disable-tui": "-d",
    "--abbreviated-summary": "-A",
    "--output-dir": "-o",
    "--save-results": "-s",
    "--resume": "-R",
    "--state-columns": "-C",
    "--seed": None,
    "--shuffle": None,
    "--min-coverage": None,
    "--pass-threshold": None,
    "--rows": None,
    "--offset": None,
    "--dataset-file": None,
    "--secrets-file": None,
    "--retry-failed": None,
    "--fresh": None,
    "--json": None,
    "--dry-run": None,
    "--endpoints-path": "-e",
    "--num-workers": "-w",
    "--on": None,
    "--on-args": None,
    "--save-to-hf-hub": "-H",
    "--hf-hub-dataset-name": "-D",
    "--heartbeat-url": None,
    # Ours
    "--name": None,
    "--provider": None,
    "--listener": None,
    "--accept-changed": None,
    "--start-timeout": None,
    "--timeout": None,
    "--scoring-timeout": None,
    "--request-timeout": None,
    "--upload": None,
    "--hosted": None,
    "--follow": None,
    "--poll-interval": None,
    "--timeout-minutes": None,
    "--allow-sandbox-access": None,
    "--allow-instances-access": None,
    "--allow-network-access": None,
    "--custom-secrets": None,
    "--eval-name": None,
    "--isolated": None,
    "--until-halfwidth": None,
    "--until-decided": None,
    "--cache": None,
    "--reuse": None,
    "--max-cost": None,
    "--team": None,
    "--help": "-h",
}

DEFAULTS: dict[str, Any] = {
    "env_args": {},
    "extra_env_kwargs": {},
    "env_dir_path": "./environments",
    "headers": {},
    "headers_from_state": {"X-Session-ID": "example_id"},
    "max_tokens": None,
    "temperature": None,
    "sampling_args": {},
    "num_examples": 5,
    "rollouts_per_example": 3,
    "max_concurrent": 32,
    "max_concurrent_generation": None,
    "max_concurrent_scoring": None,
    "no_interleave_scoring": False,
    "independent_scoring": False,
    "max_retries": 0,
    "num_workers": "auto",
    "endpoints_path": "./configs/endpoints.toml",
    "save_to_hf_hub": False,
    "hf_hub_dataset_name": None,
    "save_results": False,
    "output_dir": None,
    "state_columns": [],
    "shuffle": False,
    "seed": 0,
    "min_coverage": 1.0,
}

GUESSING = '''
"""The model is told its turn until it has had enough of them."""
from proctor import MultiTurnEnv, Rubric

class Guessing(MultiTurnEnv):
    async def env_response(self, messages, state):
        state["guesses"] = {"all of them": state["turn"], "odd": {1, 2}}
        return f"turn {state['turn']}"

def never(completion):
    return 0.0

def load_environment(tasks=2):
    rows = [{"question": f"guess {n}"} for n in range(tasks)]
    return Guessing(rows, rubric=Rubric(never), max_turns=5)
'''


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.stdout)
        return document


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Calls the command in this process, which is enough where no rollout is played."""
    monkeypatch.chdir(tmp_path)

    def say(*words: str) -> Said:
        with pytest.raises(SystemExit) as left:
            run(words)
        out, err = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Said(left.value.code, out, err)

    return say


def environment(folder: Path, name: str, source: str, pyproject: str = "") -> Path:
    """An environment in ./environments, as `env install` would find it."""
    home = folder / "environments" / name
    home.mkdir(parents=True)
    (home / f"{name}.py").write_text(source)
    if pyproject:
        (home / "pyproject.toml").write_text(pyproject)
    return home


# Flags


def test_every_flag_is_there_with_its_short_form(say: Callable[..., Said]) -> None:
    said = say("eval", "run", "--help")

    offered = re.findall(r"^  (?:(-\w), )?(--[a-z-]+)", said.stdout, re.MULTILINE)
    assert {long: short or None for short, long in offered} == FLAGS
    assert "ENVIRONMENT" in said.stdout


def test_the_defaults_are_those_of_the_seed(say: Callable[..., Said]) -> None:
    config = say("eval", "run", "echo", "-m", "scripted", "--dry-run", "--json").document["config"]

    assert {name: config[name] for name in DEFAULTS} == DEFAULTS


def test_every_flag_reaches_its_setting(say: Callable[..., Said]) -> None:
    words = [
        *("-a", '{"tasks": 9}', "-x", '{"max_turns": 2}', "-p", "envs", "-m", "some/model"),
        *("-b", "http://localhost:8000/v1/", "-k", "", "--api-client-type", "openai_completions"),
        *("--header", "X-One: 1", "--header", "X-Two: a: b", "--header-from-state", "X-Task: example_id"),
        *("-t", "7", "-T", "0.5", "-S", '{"top_p": 0.9}', "-n", "8", "-r", "2", "-c", "4"),
        *("--max-concurrent-generation", "3", "--max-concurrent-scoring", "2", "-N", "-i"),
        *("--max-retries", "1", "-o", "out", "-s", "-C", "turn, answer", "--seed", "5", "--shuffle"),
        *("--name", "mine", "-w", "1", "-H", "-D", "me/results"),
        *("--min-coverage", "0.5", "--start-timeout", "90", "--timeout", "60", "--pass-threshold", "0.7"),
        *("--scoring-timeout", "30", "--request-timeout", "10", "--cache", "replies"),
    ]

    document = say("eval", "run", "echo", *words, "--dry-run", "--json").document

    assert document["config"] == {
        "env_id": "echo",
        "env_args": {"tasks": 9},
        "extra_env_kwargs": {"max_turns": 2},
        "env_dir_path": "envs",
        "isolated": False,
        "agent": None,
        "agent_args": {},
        "runtime": None,
        "runtime_args": {},
        "max_steps": None,
        "name": "mine",
        "label": "",
        "config_hash": "",
        "model": "some/model",
        "endpoint_id": None,
        "endpoints_path": "./configs/endpoints.toml",
        "provider": None,
        "api_base_url": "http://localhost:8000/v1/",
        "api_key_var": "",
        "api_client_type": "openai_completions",
        "headers": {"X-One": "1", "X-Two": "a: b"},
        "headers_from_state": {"X-Session-ID": "example_id", "X-Task": "example_id"},
        "max_tokens": 7,
        "temperature": 0.5,
        "sampling_args": {"top_p": 0.9},
        "num_examples": 8,
        "rollouts_per_example": 2,
        "task_ids": [],
        "shuffle": True,
        "seed": 5,
        "max_concurrent": 4,
        "max_concurrent_generation": 3,
        "max_concurrent_scoring": 2,
        "no_interleave_scoring": True,
        "independent_scoring": True,
        "num_workers": 1,
        "on": "here",
        "on_args": {},
        "max_retries": 1,
        "start_timeout": 90.0,
        "timeout": 60.0,
        "scoring_timeout": 30.0,
        "request_timeout": 10.0,
        "min_coverage": 0.5,
        "pass_threshold": 0.7,
        "until_halfwidth": None,
        "until_decided": None,
        "max_cost": None,
        "cache": "replies",
        "save_results": True,
        "output_dir": "out",
        "state_columns": ["turn", "answer"],
        "save_to_hf_hub": True,
        "hf_hub_dataset_name": "me/results",
    }
    assert document["planned_rollouts"] == 16
    assert document["endpoint"]["url"] == "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("keys", "words", "model", "url", "key_var"),
    [
        (["PRIME_API_KEY"], [], "openai/gpt-4.1-mini", "https://api.pinference.ai/api/v1", "PRIME_API_KEY"),
        (["OPENAI_API_KEY"], [], "gpt-4.1-mini", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        (
            ["OPENROUTER_API_KEY"],
            ["-m", "qwen/qwen3"],
            "qwen/qwen3",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
        ),
        (
            ["OPENAI_API_KEY", "OPENROUTER_API_KEY"],
            ["-m", "qwen/q"],
            "qwen/q",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
        ),
        (["MY_KEY"], ["-b", "https://my.host/v1", "-k", "MY_KEY"], None, "https://my.host/v1", "MY_KEY"),
        ([], [], "local", "", None),
    ],
)
def test_the_endpoint_is_the_first_whose_key_is_there(
    say: Callable[..., Said],
    monkeypatch: pytest.MonkeyPatch,
    keys: list[str],
    words: list[str],
    model: str | None,
    url: str,
    key_var: str | None,
) -> None:
    for key in keys:
        monkeypatch.setenv(key, "secret")

    said = say("eval", "echo", *words, "--dry-run", "--json")

    endpoint = said.document["endpoint"]
    assert endpoint["model"] == (model or "openai/gpt-4.1-mini")
    assert endpoint["url"] == url
    assert endpoint["key_var"] == key_var
    assert bool(endpoint["why"]) is ("-m" not in words and "-b" not in words)
    assert "secret" not in said.stdout


def test_run_may_be_left_out(say: Callable[..., Said]) -> None:
    words = ("echo", "-m", "scripted", "-n", "3", "--dry-run", "--json")

    assert say("eval", *words) == say("eval", "run", *words)
    assert say("eval", "-n", "3", *words).code == 0
    assert "run" in say("eval", "--help").stdout


# The plan


def test_a_dry_run_calls_nobody_and_keeps_nothing(
    say: Callable[..., Said], provider: Callable[..., Provider], tmp_path: Path
) -> None:
    server = provider("hello")

    said = say("eval", "echo", "-m", "gpt-9", "-b", server.url, "-n", "4", "-r", "2", "-s", "--dry-run")

    assert said.code == 0
    assert said.stderr == ""
    assert "echo · gpt-9   dry run: no model is called" in said.stdout
    assert "4 tasks in dataset order, 2 rollouts each" in said.stdout
    assert re.search(r"rollouts +8$", said.stdout, re.MULTILINE)
    assert re.search(r"num_examples +4 +\(flag\)", said.stdout)
    assert re.search(r"max_retries +0 +\(built-in default\)", said.stdout)
    assert (server.requests, server.checks) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_without_a_model_says_which_one_would_answer_and_why(say: Callable[..., Said]) -> None:
    said = say("eval", "echo", "--dry-run")

    assert said.code == 0
    assert "echo · local   dry run: no model is called" in said.stdout
    assert said.stderr.startswith(
        "Model local: no model was named and no API key is set, so the small embedded"
    )


def test_a_dry_run_as_json_tells_settings_endpoint_environment_and_size(say: Callable[..., Said]) -> None:
    words = ("eval", "echo", "-m", "scripted", "-a", '{"lazy": true}', "-n", "-1", "--dry-run", "--json")

    document = say(*words).document

    assert list(document) == [
        "config",
        "endpoint",
        "origins",
        "environment",
        "selection",
        "resolved",
        "workers",
        "planned_rollouts",
    ]
    assert document["planned_rollouts"] is None, "nobody has counted the tasks"
    assert document["selection"] == "all tasks in dataset order"
    assert document["origins"] == {
        "env_id": "flag",
        "env_args": "flag",
        "model": "flag",
        "num_examples": "flag",
    }


@pytest.mark.parametrize("table", ["proctor", "verifiers"])
def test_a_package_may_bring_its_own_defaults_and_flags_win(
    say: Callable[..., Said], tmp_path: Path, table: str
) -> None:
    environment(
        tmp_path,
        "guessing",
        GUESSING,
        f"[tool.{table}.eval]\nnum_examples = 7\nrollouts_per_example = 4\nenv_args = {{tasks = 9}}\n",
    )

    document = say("eval", "guessing", "-m", "scripted", "-r", "2", "--dry-run", "--json").document

    config = document["config"]
    assert (config["num_examples"], config["rollouts_per_example"], config["env_args"]) == (
        7,
        2,
        {"tasks": 9},
    )
    assert document["planned_rollouts"] == 14
    assert document["origins"]["num_examples"] == f"[tool.{table}.eval] of guessing/pyproject.toml"
    assert document["origins"]["rollouts_per_example"] == "flag"


def test_our_own_table_wins_over_that_of_verifiers(say: Callable[..., Said], tmp_path: Path) -> None:
    both = "[tool.verifiers.eval]\nnum_examples = 7\n[tool.proctor.eval]\nnum_examples = 8\n"
    environment(tmp_path, "guessing", GUESSING, both)

    document = say("eval", "guessing", "-m", "scripted", "--dry-run", "--json").document

    assert document["config"]["num_examples"] == 8


# A run


def test_results_go_to_stdout_and_everything_else_to_stderr(proctor: Run) -> None:
    ran = proctor("eval", "run", "echo", "-m", "scripted")

    assert ran.code == 0
    assert ran.stdout.startswith("echo · scripted   run ")
    for part in ("Settings", "Result", "Metrics", "Rollouts", "Examples", "Kept in"):
        assert re.search(rf"^{part}$", ran.stdout, re.MULTILINE), part
    assert "15 of 15 rollouts scored (100.0%), over 5 tasks" in ran.stdout
    assert "pass@1 1.000   pass@2 1.000   pass@3 1.000" in ran.stdout
    assert "Evaluating echo with scripted" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr


def test_an_abbreviated_summary_has_numbers_and_no_examples(proctor: Run) -> None:
    ran = proctor("eval", "echo", "-m", "scripted", "-A", environ={"PYTHONIOENCODING": "ascii"})

    assert ran.code == 0
    assert "Examples" not in ran.stdout
    assert "say 0" not in ran.stdout
    assert "15 of 15 rollouts scored" in ran.stdout
    assert len(ran.stdout.splitlines()) < 35


def test_json_is_one_document_with_run_folder_and_summary(proctor: Run) -> None:
    ran = proctor("eval", "echo", "-m", "scripted", "-n", "2", "-r", "2", "--json")

    document = json.loads(ran.stdout)
    assert list(document) == ["run", "folder", "summary"]
    assert list(document["run"]) == [
        "id",
        "env_id",
        "model",
        "label",
        "suite",
        "status",
        "started_at",
        "ended_at",
        "note",
    ]
    assert document["run"]["status"] == "finished"
    assert list(document["summary"]) == [
        "tasks",
        "rollouts_per_task",
        "planned",
        "finished",
        "scored",
        "timed_out",
        "coverage",
        "outcomes",
        "reward",
        "bounds",
        "metrics",
        "pass_threshold",
        "scores",
        "pass_at_k",
        "pass_hat_k",
        "stop_conditions",
        "seconds",
        "usage",
        "other_usage",
        "cost_usd",
        "unpriced_models",
        "errors",
        "cleanup_errors",
        "retried",
        "members",
        "reused_replies",
        "saved_usd",
        "rewards",
    ]
    assert document["summary"]["reward"]["mean"] == 1.0
    assert document["summary"]["outcomes"] == {"scored": 4}
    assert (ran.folder / "results.jsonl").is_file()
    assert ran.folder.is_relative_to(ran.cwd / "state" / "proctor" / "runs"), "nobody asked to save it"


def test_settings_for_the_environment_and_columns_of_its_state(proctor: Run, tmp_path: Path) -> None:
    home = environment(tmp_path, "guessing", GUESSING)

    ran = proctor(
        *("eval", "guessing", "-m", "scripted", "-a", '{"tasks": 1}', "-x", '{"max_turns": 3}', "-r", "1"),
        *("-s", "-C", "guesses,turn,nowhere", "--json"),
    )

    assert ran.code == 0
    (row,) = ran.rows
    assert (row["stop_condition"], row["turn"]) == ("max_turns_reached", 3)
    assert row["guesses"] == {"all of them": 2, "odd": [1, 2]}
    assert "nowhere" not in row
    assert ran.folder.parent == home / "outputs/evals/guessing--scripted"


def test_saved_results_lie_in_outputs_or_where_one_says(proctor: Run, tmp_path: Path) -> None:
    words = ("eval", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json")

    assert proctor(*words, "-s").folder.parent == tmp_path / "outputs/evals/echo--scripted"
    assert proctor(*words, "-o", "mine").folder.parent == tmp_path / "mine/evals/echo--scripted"


def test_a_shuffle_takes_the_same_tasks_for_the_same_seed(proctor: Run) -> None:
    words = ("eval", "echo", "-m", "scripted", "-n", "6", "-r", "1", "--json", "--shuffle")

    first, again, other = (
        [row["example_id"] for row in proctor(*words, "--seed", seed).rows] for seed in ("1", "1", "2")
    )

    assert first == again
    assert first != other
    assert first != list(range(6))


# Exit codes


def test_what_could_not_be_scored_fails_the_command_unless_less_is_asked_for(
    proctor: Run, tmp_path: Path
) -> None:
    step = {"when": "say 1", "error": "refused", "text": "I'd rather \x1b[31mnot\x1b[0m [bold]do[/bold]"}
    (tmp_path / "script.jsonl").write_text(json.dumps(step))
    words = ("eval", "echo", "-m", "scripted", "-b", "script.jsonl", "-n", "4", "-r", "1")

    ran = proctor(*words)

    assert ran.code == 1
    report = " ".join(ran.stdout.split())
    assert "no verdict: coverage is below the minimum" in report
    assert "3 of 4 rollouts scored (75.0%)" in report
    assert "0.750 if all that was not scored had failed, 1.000 if it had passed" in report
    refused = "1 × model_error RequestRefusedError: I'd rather not [bold]do[/bold]"
    assert f"{refused} (while playing, task 1, rollout 0)" in report

    assert proctor(*words, "--min-coverage", "0.75").code == 0


def test_results_that_cannot_be_kept_fail_the_command_in_one_sentence(proctor: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()

    ran = proctor("eval", "echo", "-m", "scripted", "-o", "taken")

    assert ran.code == 1
    assert re.fullmatch(r"Error: Cannot write results to taken/evals/.*: Not a directory\.", last_line(ran))


def last_line(ran: Ran | Said) -> str:
    return ran.stderr.splitlines()[-1]


class Running:
    """A command under way."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proctor", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def wait_for_rows(self, count: int) -> None:
        self.wait_for(lambda: len(self.rows()) >= count)

    def wait_for(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not happened():
            assert time.monotonic() < deadline, "it never happened"
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)

    def rows(self) -> list[dict[str, Any]]:
        files = self.folder.glob("outputs/evals/*/*/results.jsonl")
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines(keepends=False)]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def has_taken(self, number: int) -> bool:
        """Whether a signal arrived; the same one again would be lost before."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
        return not int(pending.split()[1], 16) & (1 << (number - 1))

    def end(self) -> Said:
        out, err = self.process.communicate(timeout=SECONDS)
        return Said(self.process.returncode, out, err)


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    running = Running(folder, *words)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


def slow_script(folder: Path, seconds: float) -> None:
    """The first two answers come at once, the others take their time."""
    steps = [{"delay_seconds": 0.0}] * 2 + [{"delay_seconds": seconds}] * 100
    (folder / "script.jsonl").write_text("\n".join(map(json.dumps, steps)))


SLOW = (
    *("eval", "echo", "-m", "scripted", "-b", "script.jsonl"),
    *("-n", "8", "-r", "1", "-c", "3", "-s", "--json"),
)


def test_ctrl_c_lets_what_is_in_flight_finish_and_the_run_can_go_on(proctor: Run, tmp_path: Path) -> None:
    slow_script(tmp_path, 3)
    with running(tmp_path, *SLOW) as run:
        run.wait_for_rows(2)
        run.signal(signal.SIGINT)
        said = run.end()

    assert said.code == 130
    assert said.document["run"]["status"] == "stopped"
    assert len(run.rows()) == 5, "two were finished, three in flight"
    assert {row["outcome"] for row in run.rows()} == {"scored"}
    assert "Traceback" not in said.stderr
    slow_script(tmp_path, 0)

    rest = proctor(*SLOW, "--resume")

    assert rest.code == 0
    assert str(rest.folder).endswith(said.document["folder"])
    assert [row["example_id"] for row in rest.rows] == list(range(8))


def test_ctrl_c_twice_leaves_at_once_with_what_was_finished(tmp_path: Path) -> None:
    slow_script(tmp_path, 60)
    with running(tmp_path, *SLOW) as run:
        run.wait_for_rows(2)
        run.signal(signal.SIGINT)
        run.wait_for(lambda: run.has_taken(signal.SIGINT))
        time.sleep(0.2)
        started = time.monotonic()
        run.signal(signal.SIGINT)
        said = run.end()

    assert said.code == 130
    assert time.monotonic() - started < 30
    assert len(run.rows()) == 2
    assert said.document["run"]["status"] == "stopped"
    assert said.document["summary"]["scored"] == 2
    assert "Traceback" not in said.stderr


def test_a_run_that_is_told_to_terminate_ends_as_stopped(tmp_path: Path) -> None:
    slow_script(tmp_path, 3)
    with running(tmp_path, *SLOW[:-1]) as run:
        run.wait_for_rows(2)
        run.signal(signal.SIGTERM)
        said = run.end()

    assert said.code == 5
    assert len(run.rows()) == 5
    assert "Stopped early. Continue with: --resume outputs/evals/echo--scripted/" in said.stdout


def test_ctrl_c_twice_leaves_before_anything_was_asked_too(tmp_path: Path) -> None:
    environment(
        tmp_path,
        "patient",
        """
import asyncio
from pathlib import Path
from proctor import EchoEnvironment

class Patient(EchoEnvironment):
    async def check(self):
        Path("checking").touch()
        await asyncio.sleep(60)

def load_environment():
    return Patient("say it")
""",
    )
    with running(tmp_path, "eval", "patient", "-m", "scripted") as run:
        run.wait_for((tmp_path / "checking").exists)
        run.signal(signal.SIGINT)
        run.wait_for(lambda: run.has_taken(signal.SIGINT))
        time.sleep(0.1)
        run.signal(signal.SIGINT)
        said = run.end()

    assert said.code == 130
    assert said.stdout == ""
    assert "Traceback" not in said.stderr


# Mistakes


def files(folder: Path) -> None:
    """Environments and other things to stumble over."""
    sources = {
        "raising": "def load_environment():\n    raise ValueError('no\\nway')",
        "unimportable": "import no_such_module_anywhere",
        "broken": "def load_environment(:",
        "bare": "x = 1",
        "nothing": "def load_environment():\n    return None",
        "demanding": "def load_environment(size, *, colour):\n    return None",
        "empty": "from proctor import SingleTurnEnv\ndef load_environment():\n    return SingleTurnEnv([])",
        "drained": (
            "from proctor import SingleTurnEnv\ndef load_environment():\n    return SingleTurnEnv(iter(()))"
        ),
        "unbuilt": (
            "from proctor import SingleTurnEnv\n"
            "def rows():\n    raise FileNotFoundError('no data here')\n"
            "def load_environment():\n    return SingleTurnEnv(rows)"
        ),
        "asking_nothing": (
            "from proctor import SingleTurnEnv\n"
            "def load_environment():\n    return SingleTurnEnv([{'question': 'a'}, {'answer': 'b'}])"
        ),
        "comparing": (
            "from proctor import Rubric, SingleTurnEnv\n"
            "def best(completions) -> list[float]:\n    return [1.0] * len(completions)\n"
            "def load_environment():\n    return SingleTurnEnv([{'question': 'a'}], rubric=Rubric(best))"
        ),
    }
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    environment(folder, "badly_kept", GUESSING, "[tool.proctor.eval\nnum_examples = 3")
    environment(folder, "oddly_kept", GUESSING, "[tool.proctor.eval]\nnum_exmples = 3")
    environment(folder, "mistyped", GUESSING, "[tool.proctor.eval]\nnum_examples = 'three'")
    (folder / "environments" / "hollow").mkdir()
    (folder / "odd.jsonl").write_text('{"text": "fine"}\n{"error": "overlooded"}\n')
    (folder / "torn.jsonl").write_text('{"text": ')


SCRIPTED = ("-m", "scripted")

MISTAKES: list[tuple[tuple[str, ...], str]] = [
    (("ech", *SCRIPTED), r"No environment 'ech': .* did you mean 'echo'\?"),
    (("badly-kep", *SCRIPTED), r"No environment 'badly-kep': .* did you mean 'badly_kept'"),
    (("./nowhere.py", *SCRIPTED), r"There is no environment at './nowhere.py'\."),
    (("json", *SCRIPTED), r"json .* has no load_environment\(\) function"),
    (("hollow", *SCRIPTED), r"hollow holds neither hollow.py nor a package hollow"),
    (("echo", *SCRIPTED, "-a", "{tasks: 3}"), r"--env-args is not valid JSON .*Example: --env-args"),
    (("echo", *SCRIPTED, "-a", "[3]"), r"--env-args must be a JSON object"),
    (("echo", *SCRIPTED, "-a", '{"taks": 3}'), r"takes no argument 'taks'; did you mean 'tasks'\?"),
    (("echo", *SCRIPTED, "-x", '{"max_turn": 3}'), r"has no setting 'max_turn'; did you mean 'max_turns'"),
    (
        ("raising.py", *SCRIPTED),
        r"of 'raising' raised ValueError: no way \(.*raising.py:2",
    ),
    (("unimportable.py", *SCRIPTED), r"Importing .* failed: ModuleNotFoundError: .*no_such_module_anywhere"),
    (("broken.py", *SCRIPTED), r"Importing .* failed: SyntaxError"),
    (("bare.py", *SCRIPTED), r"bare.py\) has no load_environment\(\) function"),
    (("nothing.py", *SCRIPTED), r"returned NoneType, which is not an environment"),
    (("demanding.py", *SCRIPTED), r"needs size, colour; pass it with -a"),
    (("empty.py", *SCRIPTED), r"empty has no tasks; there is nothing to evaluate"),
    (("drained.py", *SCRIPTED), r"drained has no tasks; there is nothing to evaluate"),
    (("unbuilt.py", *SCRIPTED), r"unbuilt: reading the tasks failed: FileNotFoundError: no data here"),
    (("unbuilt.py", *SCRIPTED, "--dry-run"), r"unbuilt: reading the tasks failed"),
    (("asking_nothing.py", *SCRIPTED), r"row 1 has neither 'prompt' nor 'question'; it has: answer"),
    (("comparing.py", *SCRIPTED, "-i"), r"compares the rollouts of a task \(best\).*leave out -i"),
    (("badly_kept", *SCRIPTED), r"badly_kept/pyproject.toml is not valid TOML"),
    (
        ("oddly_kept", *SCRIPTED),
        r"There is no setting 'num_exmples' \(from \[tool.proctor.eval\] of oddly_kept/pyproject",
    ),
    (("mistyped", *SCRIPTED), r"Invalid num_examples \(from \[tool.proctor.eval\]"),
    (("echo", "-m", "gpt-9"), r"No API key for model 'gpt-9': set PRIME_API_KEY, OPENAI_API_KEY or"),
    (
        ("echo", "-b", "https://my.host/v1", "-k", "NO_KEY"),
        r"NO_KEY is not set, and https://my.host",
    ),
    (("echo", "-b", "my.host"), r"'my.host' is not an API address"),
    (
        ("echo", "-m", "x", "-b", "http://no-such-host.invalid/v1", "-k", ""),
        r"Cannot resolve the host 'no-such-host.invalid' of .*; check -b",
    ),
    (("echo", "-m", "x", "-b", "http://127.0.0.1:9/v1"), r"Cannot connect to http://127.0.0.1:9/v1"),
    (
        ("echo", "-m", "x", "-b", "http://127.0.0.1:9/v1", "--api-client-type", "openai_chat_completion"),
        r"'openai_chat_completion', which is not a client type; did you mean 'openai_chat_completions'",
    ),
    (("echo", *SCRIPTED, "-b", "nowhere.jsonl"), r"Cannot read the script 'nowhere.jsonl' given by -b"),
    (
        ("echo", *SCRIPTED, "-b", "odd.jsonl"),
        r"odd.jsonl:2: there is no error 'overlooded'; did you mean",
    ),
    (("echo", *SCRIPTED, "-b", "torn.jsonl"), r"torn.jsonl:1: not a step of a script"),
    (("echo", *SCRIPTED, "-d", "-f"), r"-d turns the live display off and -f makes it fill the screen"),
    (("echo", *SCRIPTED, "-n", "0"), r"--num-examples is 0; give a number of tasks, or -1 for all"),
    (("echo", *SCRIPTED, "-n", "-2"), r"--num-examples is -2; give a number of tasks"),
    (("echo", *SCRIPTED, "-r", "0"), r"--rollouts-per-example is 0, and must be at least 1"),
    (("echo", *SCRIPTED, "-c", "-2"), r"--max-concurrent is -2, and must be at least -1"),
    (("echo", *SCRIPTED, "-t", "0"), r"--max-tokens is 0, and must be at least 1"),
    (("echo", *SCRIPTED, "-T", "-1"), r"--temperature is -1.0, and must be at least 0"),
    (("echo", *SCRIPTED, "--timeout", "0"), r"--timeout is 0, and must be more than 0 seconds"),
    (("echo", *SCRIPTED, "--min-coverage", "2"), r"--min-coverage is 2, and must lie between 0 and 1"),
    (("echo", *SCRIPTED, "--header", "nope"), r"--header must look like 'Name: Value'; number 1 does not"),
    (("echo", *SCRIPTED, "-C", " , "), r"--state-columns names nothing"),
    (("echo", *SCRIPTED, "--resume", "nowhere"), r"nowhere is not a run"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_exit_code_2(
    say: Callable[..., Said], tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    files(tmp_path)

    said = say("eval", "run", *words)

    assert said.code == 2
    assert said.stdout == ""
    *before, complaint = said.stderr.splitlines()
    assert re.match(f"Error: .*{sentence}", complaint)
    assert all(re.match(r"\d\d:\d\d:\d\d (Evaluating|Failed after) ", line) for line in before)


@pytest.mark.parametrize("words", [["-n", "many"], ["--no-such-flag"], []], ids=" ".join)
def test_words_that_are_no_command_are_refused(say: Callable[..., Said], words: list[str]) -> None:
    said = say("eval", "run", *(["echo", *words] if words else []))

    assert said.code == 2
    assert last_line(said).startswith("Error: ")
    assert "Traceback" not in said.stderr


def test_a_refused_key_is_one_sentence_before_anything_is_paid_for(
    say: Callable[..., Said], provider: Callable[..., Provider]
) -> None:
    server = provider("hello", models={"status": 401, "text": "no such key"})

    said = say("eval", "echo", "-m", "gpt-9", "-b", server.url)

    assert said.code == 2
    assert "answered 401: no such key" in last_line(said)
    assert server.requests == []


def test_an_environment_that_prints_does_not_spoil_the_json(proctor: Run, tmp_path: Path) -> None:
    chatty = GUESSING.replace("def load", "print('imported')\ndef load").replace(
        "    return 0.0", "    print('scored')\n    return 0.0"
    )
    environment(tmp_path, "chatty", chatty)

    ran = proctor("eval", "chatty", "-m", "scripted", "-n", "1", "-r", "1", "--json")

    assert ran.code == 0
    assert ran.summary["scored"] == 1
    assert "imported" in ran.stderr
    assert "scored" in ran.stderr


BROKEN = """
import json

from proctor import Rubric, SingleTurnEnv


def parse(text):
    return json.loads(text)


def correct(completion):
    return parse("{")


def load_environment(early: bool = False):
    if early:
        parse("{")
    return SingleTurnEnv([{"question": "a"}], rubric=Rubric(correct))
"""


def test_an_error_in_the_loader_names_the_authors_line_and_not_a_librarys(
    proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)

    ran = proctor("eval", "run", "broken.py", *SCRIPTED, "-a", '{"early": true}')

    assert ran.code == 2
    assert "raised JSONDecodeError" in ran.stderr
    assert f"({tmp_path / 'broken.py'}:8 in parse)" in ran.stderr


def test_the_report_shows_where_a_reward_function_raised(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)

    ran = proctor("eval", "run", "broken.py", *SCRIPTED, "-n", "1", "-r", "1")

    assert "broken.py:8 in parse; while scoring, task 0" in " ".join(ran.stdout.split())
    ran = proctor("eval", "run", "broken.py", *SCRIPTED, "-n", "1", "-r", "1", "--json")
    assert ran.rows[0]["error"]["location"] == f"{tmp_path / 'broken.py'}:8 in parse"


@pytest.mark.parametrize("block", ["evals", "eva", "evaluations"])
def test_a_misspelt_block_of_a_suite_is_told_its_name(
    proctor: Callable[..., Ran], tmp_path: Path, block: str
) -> None:
    (tmp_path / "suite.toml").write_text(f'[[{block}]]\nenv_id = "echo"\n')

    ran = proctor("eval", "run", "suite.toml")

    assert (
        ran.stderr == f"Error: suite.toml:1: [[{block}]] is not a block of a suite; did you mean [[eval]]?\n"
    )


def test_a_threshold_of_ones_own_decides_what_counts_as_passed(proctor: Callable[..., Ran]) -> None:
    words = ("eval", "run", "echo", "-m", "scripted", "-n", "2", "-r", "2", "--json")

    strict = proctor(*words, "--pass-threshold", "1.5").summary
    usual = proctor(*words).summary

    assert (strict["pass_threshold"], strict["pass_at_k"]["1"]) == (1.5, 0)
    assert (usual["pass_threshold"], usual["pass_at_k"]["1"]) == (0.5, 1)
