"""Several evaluations from one file, through the real command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.views.dry_run import describe_origins
from tests.conftest import Provider, Ran
from tests.waiting import SECONDS, wait_for

Run = Callable[..., Ran]
Start = Callable[..., Provider]

ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv

def right(completion, answer):
    return float(answer in completion[-1]["content"])

def load_environment(tasks=4):
    rows = [{"question": f"say {n}", "answer": f"say {n}"} for n in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(right))
"""


def write(folder: Path, registry: str, suite: str, environments: tuple[str, ...] = ()) -> Path:
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "configs" / "endpoints.toml").write_text(registry)
    for name in environments:
        home = folder / "environments" / name
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{name}.py").write_text(ENVIRONMENT)
    path = folder / "suite.toml"
    path.write_text(suite)
    return path


def endpoint(name: str, url: str, more: str = "") -> str:
    return f'[[endpoint]]\nendpoint_id = "{name}"\nmodel = "{name}"\nurl = "{url}"\n{more}\n'


@contextmanager
def replica() -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [sys.executable, str(Path(__file__).with_name("replica_server.py"))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def rows_under(folder: Path) -> list[dict[str, Any]]:
    files = folder.glob("**/evals/*/*/results.jsonl")
    return [
        json.loads(line) for file in files for line in file.read_text().splitlines() if line.endswith("}")
    ]


MATRIX = """
rollouts_per_example = 2
num_examples = 4
max_concurrent = 6

[[ablation]]
[ablation.sweep]
env_id = ["alpha", "beta", "gamma", "delta"]
endpoint_id = ["big", "middle", "small"]
temperature = [0.0, 1.0]
"""


def test_four_environments_three_models_two_temperatures_survive_the_death_of_a_replica(
    tmp_path: Path, provider: Start
) -> None:
    with replica() as (victim, first), replica() as (_, second):
        registry = endpoint("big", first) + endpoint("big", second)
        registry += endpoint("middle", provider().url) + endpoint("small", provider().url)
        path = write(tmp_path, registry, MATRIX, ("alpha", "beta", "gamma", "delta"))
        words = [sys.executable, "-m", "proctor", "eval", "run", str(path), "--json"]
        run = subprocess.Popen(words, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + SECONDS
        while sum(row["model_calls"][0].get("served_by") == first for row in rows_under(tmp_path)) < 5:
            assert time.monotonic() < deadline, "the first replica was not asked"
            assert run.poll() is None
            time.sleep(0.01)
        victim.send_signal(signal.SIGKILL)
        stdout, stderr = run.communicate(timeout=SECONDS)

    assert run.returncode == 0, stderr
    document = json.loads(stdout)
    assert len(document["runs"]) == 24
    assert {each["summary"]["coverage"] for each in document["runs"]} == {1.0}
    rows = rows_under(tmp_path)
    assert len(rows) == 24 * 8
    assert {row["outcome"] for row in rows} == {"scored"}
    answered = {row["model_calls"][0].get("served_by") for row in rows}
    assert answered == {None, first, second}
    assert f"{first} is left out for a while" in stderr
    folders = {file.parent.name for file in tmp_path.glob("environments/*/outputs/evals/*/*")}
    assert len(folders) == 24, "every combination has a folder that names it"


def test_evaluations_of_one_endpoint_share_its_budget(proctor: Run, tmp_path: Path, provider: Start) -> None:
    shared, own = (
        provider({"text": "say", "delay_seconds": 0.02}),
        provider({"text": "say", "delay_seconds": 0.02}),
    )
    suite = """
max_concurrent = 4
rollouts_per_example = 3
[[ablation]]
[ablation.sweep]
env_id = ["alpha", "beta"]
temperature = [0.0, 0.5, 1.0]
endpoint_id = ["shared", "own"]
"""
    registry = endpoint("shared", shared.url) + endpoint("own", own.url, "max_concurrent = 2")

    ran = proctor("eval", str(write(tmp_path, registry, suite, ("alpha", "beta"))), "--json")

    assert ran.code == 0, ran.stderr
    assert (shared.most_in_flight, own.most_in_flight) == (4, 2)


GROUPED = """
from proctor import Rubric, SingleTurnEnv

def together(completions):
    return [1.0] * len(completions)

def load_environment():
    return SingleTurnEnv([{"question": f"say {n}"} for n in range(3)], rubric=Rubric(together))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_groups_larger_than_the_shared_budget_are_played_within_it(
    proctor: Run, tmp_path: Path, provider: Start, workers: int
) -> None:
    server = provider({"text": "say", "delay_seconds": 0.02})
    suite = f"""
endpoint_id = "m"
max_concurrent = 12
rollouts_per_example = 5
num_workers = {workers}
[[ablation]]
[ablation.sweep]
env_id = ["alpha", "beta"]
temperature = [0.0, 1.0]
"""
    path = write(tmp_path, endpoint("m", server.url, "max_concurrent = 3"), suite, ("alpha", "beta"))
    (tmp_path / "environments" / "beta" / "beta.py").write_text(GROUPED)

    ran = proctor("eval", str(path), "--json")

    assert ran.code == 0, ran.stderr
    assert {each["summary"]["coverage"] for each in json.loads(ran.stdout)["runs"]} == {1.0}
    assert server.most_in_flight <= 3


def test_evaluations_of_one_endpoint_share_its_processes(
    proctor: Run, tmp_path: Path, provider: Start
) -> None:
    suite = """
max_concurrent = 1024
[[ablation]]
env_id = "echo"
[ablation.sweep]
endpoint_id = ["shared", "paced"]
temperature = [0.0, 1.0]
"""
    registry = endpoint("shared", provider().url)
    registry += endpoint("paced", provider().url, "requests_per_minute = 600")

    ran = proctor("eval", str(write(tmp_path, registry, suite)), "--dry-run", "--json")

    assert ran.code == 0, ran.stderr
    plans = json.loads(ran.stdout)
    assert [plan["workers"] for plan in plans["evaluations"]] == [2, 2, 1, 1]


def test_one_endpoint_that_cannot_be_reached_leaves_the_others_alone(
    proctor: Run, tmp_path: Path, provider: Start
) -> None:
    registry = endpoint("good", provider().url) + endpoint("gone", "http://127.0.0.1:9/v1")
    suite = '[[ablation]]\nenv_id = "echo"\n[ablation.sweep]\nendpoint_id = ["gone", "good"]\n'

    ran = proctor("eval", str(write(tmp_path, registry, suite)), "--json")

    assert ran.code == 1
    gone, good = json.loads(ran.stdout)["runs"]
    assert "Cannot connect to http://127.0.0.1:9/v1" in gone["error"]
    assert good["summary"]["coverage"] == 1.0


def test_everything_that_is_wrong_with_a_suite_is_told_at_once_with_its_line(
    proctor: Run, tmp_path: Path
) -> None:
    suite = """
model = "scripted"
[[eval]]
env_id = "ecko"

[[eval]]
env_id = "echo"
env_args = { task = 3 }
"""
    ran = proctor("eval", str(write(tmp_path, "", suite)))

    assert ran.code == 2
    first, second = ran.stderr.splitlines()
    assert "suite.toml:3: No environment 'ecko'" in first
    assert "did you mean 'echo'?" in first
    assert (
        "suite.toml:6: load_environment() of 'echo' takes no argument 'task'; did you mean 'tasks'?" in second
    )


def test_settings_flags_beside_a_suite_are_named_as_ignored(proctor: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "", 'model = "scripted"\nnum_examples = 2\n[[eval]]\nenv_id = "echo"\n')

    ran = proctor("eval", str(path), "-n", "7", "-T", "1", "-A", "--json")

    assert ran.code == 0, ran.stderr
    assert "sets the evaluations: --temperature, --num-examples." in ran.stderr
    assert json.loads(ran.stdout)["summary"]["planned"] == 6


def test_a_dry_run_prints_every_evaluation_of_the_sweep_and_calls_nobody(
    proctor: Run, tmp_path: Path, provider: Start
) -> None:
    server = provider()
    suite = '[[ablation]]\nenv_id = "echo"\nendpoint_id = "m"\n[ablation.sweep]\ntemperature = [0.0, 0.5]\n'

    ran = proctor("eval", str(write(tmp_path, endpoint("m", server.url), suite)), "--dry-run")

    assert ran.code == 0, ran.stderr
    assert "2 evaluations, 30 rollouts   dry run: no model is called" in ran.stdout
    assert sum(line.startswith("  said in") for line in ran.stdout.splitlines()) == 2
    assert "1. echo   m   temperature=0.0" in ran.stdout
    assert "2. echo   m   temperature=0.5" in ran.stdout
    assert server.requests == server.checks == []


def test_a_suite_is_resumed_run_by_run(proctor: Run, tmp_path: Path, provider: Start) -> None:
    answers: list[Any] = [{"status": 400}, "say 0", {"status": 400}]
    suite = """
endpoint_id = "m"
rollouts_per_example = 1
num_examples = 2
[[ablation]]
env_id = "echo"
[ablation.sweep]
temperature = [0.0, 0.5]
"""
    flaky = provider(*answers, "say 1")
    path = write(tmp_path, endpoint("m", flaky.url), suite)
    first = proctor("eval", str(path), "--json")
    asked = len(flaky.requests)

    second = proctor("eval", str(path), "--resume", "--json")

    assert (first.code, second.code) == (1, 0), second.stderr
    before, after = (json.loads(ran.stdout)["runs"] for ran in (first, second))
    assert [run["run"]["id"] for run in before] == [run["run"]["id"] for run in after]
    assert len(flaky.requests) - asked == 2
    assert len({run["run"]["suite"] for run in (*before, *after)} - {""}) == 1


def test_several_environments_may_be_named_with_commas(proctor: Run, tmp_path: Path) -> None:
    write(tmp_path, "", "", ("alpha", "beta"))

    ran = proctor("eval", "alpha,beta", "-m", "scripted", "-n", "2", "-r", "1", "--json")

    assert ran.code == 0, ran.stderr
    assert [run["run"]["env_id"] for run in json.loads(ran.stdout)["runs"]] == ["alpha", "beta"]


def test_a_name_of_ones_own_is_in_the_folder_and_in_the_results(proctor: Run, tmp_path: Path) -> None:
    ran = proctor("eval", "echo", "-m", "scripted", "-n", "1", "--name", "mine", "-s", "--json")

    assert ran.folder.parent.name == "mine--scripted"
    assert ran.metadata["name"] == "mine"
    assert ran.metadata["env_id"] == "echo"


def test_ctrl_c_stops_all_runs_of_a_suite(tmp_path: Path, provider: Start) -> None:
    suite = """
endpoint_id = "m"
num_examples = 50
max_concurrent = 2
[[ablation]]
env_id = "echo"
env_args = { tasks = 50 }
[ablation.sweep]
temperature = [0.0, 0.5, 1.0]
"""
    path = write(tmp_path, endpoint("m", provider({"text": "x", "delay_seconds": 0.05}).url), suite)
    words = [sys.executable, "-m", "proctor", "eval", "run", str(path), "--json"]
    run = subprocess.Popen(words, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: len(rows_under(tmp_path)) >= 3)

    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=SECONDS)

    assert run.returncode == 130, stderr
    assert {each["run"]["status"] for each in json.loads(stdout)["runs"]} == {"stopped"}


@pytest.mark.parametrize("name", ["missing.toml", "configs"])
def test_a_file_that_is_not_there_is_one_sentence(proctor: Run, name: str) -> None:
    ran = proctor("eval", name if name.endswith(".toml") else f"{name}/missing.toml")

    assert ran.code == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "missing.toml" in ran.stderr


def test_the_example_suite_runs_as_it_is(proctor: Run) -> None:
    path = Path(__file__).parents[1] / "examples" / "suite" / "suite.toml"

    ran = proctor("eval", "run", os.fspath(path), "--json")

    assert ran.code == 0, ran.stderr
    assert len(json.loads(ran.stdout)["runs"]) == 6


def test_one_folder_cannot_be_resumed_by_several_evaluations(tmp_path: Path, proctor: Run) -> None:
    suite = '[[ablation]]\nenv_id = "echo"\nmodel = "scripted"\n[ablation.sweep]\ntemperature = [0, 1]\n'
    path = str(write(tmp_path, "", suite))

    ran = proctor("eval", path, "--resume", "outputs/evals/echo--scripted/1a2b3c4d")

    assert ran.code == 2
    assert "1a2b3c4d holds one run, but you asked for 2 evaluations" in ran.stderr


def test_two_spellings_of_one_evaluation_are_told_apart_and_resumed_each_by_itself(
    tmp_path: Path, proctor: Run, provider: Start
) -> None:
    suite = """
        rollouts_per_example = 1
        [[eval]]
        env_id = "alpha"
        model = "same"
        api_base_url = "URL"
        [[eval]]
        env_id = "./environments/alpha"
        endpoint_id = "alias"
        [[eval]]
        env_id = "alpha"
        endpoint_id = "alias"
    """
    url = provider().url
    registry = endpoint("alias", url).replace('model = "alias"', 'model = "same"')
    path = str(write(tmp_path, registry, suite.replace("URL", url), ("alpha",)))

    first, again = proctor("eval", path, "--json"), proctor("eval", path, "--json", "--resume")

    assert (first.code, again.code) == (0, 0), again.stderr
    runs = json.loads(first.stdout)["runs"]
    assert [run["label"] for run in runs] == ["", "#2", "#3"]
    assert [run["folder"] for run in json.loads(again.stdout)["runs"]] == [run["folder"] for run in runs]


# Keys


def test_a_key_in_a_header_is_sent_and_neither_shown_nor_saved(
    tmp_path: Path, proctor: Run, provider: Start
) -> None:
    server = provider()
    suite = """
        endpoint_id = "m"
        num_examples = 1
        verbose = true
        header = ["X-Gateway-Key: hunter2"]
        [[ablation]]
        env_id = "echo"
        [ablation.sweep]
        temperature = [0.0, 1.0]
    """
    registry = endpoint("m", server.url, 'headers = { Authorization = "Bearer hunter3", X-Team = "blue" }')
    path = str(write(tmp_path, registry, suite))

    plan, as_json = proctor("eval", path, "--dry-run"), proctor("eval", path, "--dry-run", "--json")
    ran = proctor("eval", path)

    assert ran.code == 0, ran.stderr
    sent = server.requests[0].headers
    assert (sent["x-gateway-key"], sent["authorization"], sent["x-team"]) == (
        "hunter2",
        "Bearer hunter3",
        "blue",
    )
    files = [file.read_text() for file in tmp_path.glob("outputs/**/*") if file.is_file()]
    told = [each for run in (plan, as_json, ran) for each in (run.stdout, run.stderr)]
    assert files
    assert not [text for text in [*files, *told] if "hunter" in text]
    assert '"X-Gateway-Key": "(hidden)"' in as_json.stdout
    assert '"X-Team": "blue"' in as_json.stdout


@pytest.mark.parametrize(
    ("origins", "text"),
    [
        ([f"s.toml:{line}" for line in (12, 5, 6, 7, 1)], "s.toml, lines 1, 5–7 and 12"),
        (["s.toml:3", "flag", "default of the suite s.toml"], "s.toml, line 3"),
        (["s.toml:3", "s.toml:4"], "s.toml, lines 3–4"),
        (["flag"], ""),
    ],
)
def test_where_settings_stand_is_said_in_a_few_words(origins: list[str], text: str) -> None:
    assert describe_origins(origins) == text


PAIR = """
[[eval]]
env_id = "alpha"
endpoint_id = "big"
num_examples = 1
temperature = 0.25

[[eval]]
env_id = "beta"
endpoint_id = "big"
num_examples = 2
"""


@pytest.mark.parametrize("flags", [(), ("-A",)])
def test_a_suite_reports_each_evaluation_in_full_and_leaves_examples_out_if_asked(
    flags: tuple[str, ...], proctor: Run, provider: Start, tmp_path: Path
) -> None:
    registry = endpoint("big", provider().url)
    path = write(tmp_path, registry, PAIR, ("alpha", "beta"))

    report = proctor("eval", str(path), *flags).stdout

    assert report.count("Settings\n") == report.count("Metrics\n") == 2
    assert "alpha · big" in report
    assert "beta · big" in report
    assert "temperature 0.25" in report
    assert report.count("Examples\n") == (0 if flags else 2)
    assert report.index("Settings") < report.rindex("alpha"), "the comparison comes last"
