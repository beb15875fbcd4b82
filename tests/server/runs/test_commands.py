"""What the commands about runs show of a real server: who ran what with what, and each task's rewards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.cli.app import run as run_proctor
from tests.conftest import Ran
from tests.server.runs import making
from tests.server.serving import Api, Served

As = Callable[..., Ran]
REWARDS: dict[int | str, list[float]] = {10: [0.0, 1.0], 2: [1.0, 1.0], "pear": [0.5]}


@pytest.fixture
def api(served: Served) -> Api:
    return served.user("ada")


@pytest.fixture
def ada(
    served: Served,
    api: Api,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> As:
    """The command line within this process, as ada."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", api.token)

    def run(*words: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run_proctor(words)
        shown = capsys.readouterr()
        return Ran(int(left.value.code or 0), shown.out, shown.err, tmp_path)

    return run


@pytest.fixture
def run_id(api: Api) -> str:
    """A run that was played elsewhere and uploaded, its rollouts in no order."""
    config = {"agent": "claude", "runtime": "docker://letters", "rollouts_per_example": 2}
    told = {
        "client_run_id": "1a2b3c4d",
        "environment": "letters",
        "model": "m",
        "metadata": {"config": config},
    }
    run = api.post("/uploads", told)
    rows = [
        making.row(task, number, reward=reward)
        for task, rewards in REWARDS.items()
        for number, reward in enumerate(rewards)
    ]
    api.post(f"/uploads/{run['id']}/reports", {"batch": 1, "rows": [json.loads(row) for row in rows]})
    api.post(f"/uploads/{run['id']}/end", {"status": "finished"})
    return str(run["id"])


def test_the_list_and_the_page_of_a_run_name_agent_runtime_and_owner(ada: As, api: Api, run_id: str) -> None:
    (told,) = api.get("/runs")["items"]
    assert (told["agent"], told["runtime"], told["owner"]) == ("claude", "docker://letters", "ada")
    assert told["client_run_id"] == "1a2b3c4d"
    assert api.get(f"/runs/{run_id}")["agent"] == "claude"

    head, row = ada("eval", "list").stdout.splitlines()
    assert {"agent", "owner", "runtime"} <= set(head.split())
    assert {"claude", "ada", "docker://letters"} <= set(row.split())
    assert "claude" in ada("eval", "info", run_id).stdout


def test_samples_come_in_task_order_under_the_mean_and_spread_of_each_task(ada: As, run_id: str) -> None:
    shown = ada("eval", "samples", run_id).stdout
    heads = [line.strip() for line in shown.splitlines() if line.lower().startswith("task")]
    assert [line.split("  ")[0] for line in heads] == [
        "Task 2: 2 rollouts, mean 1.000 ± 0.000",
        "task 2 · rollout 0",
        "task 2 · rollout 1",
        "Task 10: 2 rollouts, mean 0.500 ± 0.707",
        "task 10 · rollout 0",
        "task 10 · rollout 1",
        "task pear · rollout 0",
    ]
    samples = json.loads(ada("eval", "samples", run_id, "--json", "-n", "3").stdout)["samples"]
    assert [row["example_id"] for row in samples] == [2, 2, 10]


def test_samples_are_grouped_by_task_as_a_table_and_in_the_api(ada: As, api: Api, run_id: str) -> None:
    head, *rows = ada("eval", "samples", run_id, "--grouped").stdout.splitlines()
    assert head.split() == ["task", "rollouts", "failed", "mean", "spread", "lowest", "highest"]
    assert [row.split() for row in rows] == [
        ["2", "2", "0", "1.000", "0.000", "1.000", "1.000"],
        ["10", "2", "0", "0.500", "0.707", "0.000", "1.000"],
        ["pear", "1", "0", "0.500", "–", "0.500", "0.500"],
    ]
    told = json.loads(ada("eval", "samples", run_id, "--grouped", "--json").stdout)["tasks"]
    first = api.get(f"/runs/{run_id}/tasks?limit=2")
    rest = api.get(f"/runs/{run_id}/tasks?limit=2&offset=2")
    assert (first["total"], first["complete"]) == (3, True)
    assert [{**group, "entries": []} for group in (*first["items"], *rest["items"])] == told
    assert ada("eval", "samples", run_id, "--grouped", "--failed").code == 2


def test_jobs_lists_the_servers_runs_below_those_that_are_here_and_each_once(ada: As, run_id: str) -> None:
    shown = ada("jobs").stdout
    assert shown.splitlines()[0] == "On the server"
    assert run_id in shown
    told = json.loads(ada("jobs", "--json").stdout)
    assert (told["runs"], [run["id"] for run in told["hosted"]]) == ([], [run_id])
    assert run_id not in ada("jobs", "--local").stdout

    ada("eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json", "-d")
    assert ada("eval", "push", "latest").code == 0
    told = json.loads(ada("jobs", "--json").stdout)
    assert (len(told["runs"]), [run["id"] for run in told["hosted"]]) == (1, [run_id])


def test_jobs_shows_what_is_here_when_the_server_does_not_answer(
    ada: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada("eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json", "-d")
    monkeypatch.setenv("PROCTOR_API_URL", "http://127.0.0.1:9")
    shown = ada("jobs")
    assert (shown.code, "echo" in shown.stdout) == (0, True)
    assert "The runs on http://127.0.0.1:9 are not listed" in shown.stderr


def test_jobs_and_trace_open_a_run_on_the_server_by_its_id(ada: As, run_id: str) -> None:
    shown = ada("jobs", run_id).stdout
    assert "agent claude, runtime docker://letters, owner ada" in shown
    assert f"{run_id}/10/1" in shown
    told = json.loads(ada("jobs", run_id, "--json").stdout)
    assert (told["run"]["owner"], told["run"]["folder"], len(told["rollouts"])) == ("ada", None, 5)

    trace = ada("trace", f"{run_id}/10/1").stdout
    assert f"{run_id}/10/1" in trace
    assert "agent claude" in trace
    assert json.loads(ada("trace", f"{run_id}/pear", "--json").stdout)["reward"] == 0.5
    assert ada("trace", "diff", f"{run_id}/10/0", f"{run_id}/10/1").code == 0
    lost = ada("trace", f"{run_id}/9/0")
    assert (lost.code, "has no rollout '9/0'" in lost.stderr) == (2, True)


def test_the_list_names_agent_and_runtime_on_either_database(served_on_both: Served) -> None:
    ada = served_on_both.user("ada")
    for number, config in enumerate(({"agent": "claude", "runtime": "local"}, {"agent": None}, {"agent": 3})):
        told = {
            "client_run_id": str(number),
            "environment": "e",
            "model": "m",
            "metadata": {"config": config},
        }
        ada.post("/uploads", told)
    found = ada.get("/runs")["items"]
    assert [(run["agent"], run["runtime"]) for run in found][1:] == [(None, ""), ("claude", "local")]
