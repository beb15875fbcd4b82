"""The commands about runs on a server, and uploads of runs that were played here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proctor.api.runs import Cause
from tests.conftest import Ran
from tests.hosted.double import Double

Command = Callable[..., Ran]


def row(task: int, reward: float | None = 1.0) -> bytes:
    fields = {
        "example_id": task,
        "rollout": 0,
        "outcome": "scored" if reward is not None else "model_error",
        "prompt": [{"role": "user", "content": f"say {task}"}],
        "completion": [{"role": "assistant", "content": f"SAY {task}"}],
        "reward": reward,
    }
    return json.dumps(fields).encode()


def with_rows(server: Double) -> None:
    server.add_run()
    server.rows["run-1"] = {str(task): row(task, None if task == 2 else 1.0) for task in range(3)}


def test_the_list_shows_where_every_run_stands_the_newest_first(evals: Command, server: Double) -> None:
    server.add_run("run-1", "finished", cost_usd=0.5, name="nightly")
    server.progress("run-1", planned=10, settled=10, scored=10, mean_reward=0.75)
    server.add_run("run-2", "running")
    done = evals("list")
    head, newest, oldest = done.stdout.splitlines()
    assert head.split() == [
        "id",
        "name",
        "environment",
        "model",
        "owner",
        "status",
        "done",
        "score",
        "cost",
        "started",
    ]
    assert newest.startswith("run-2")
    for part in ("nightly", "ada/echo@1.0.0", "finished", "10/10", "0.750", "$0.5000"):
        assert part in oldest
    filtered = json.loads(evals("list", "--status", "finished", "--json").stdout)
    assert [run["id"] for run in filtered["runs"]] == ["run-1"]


def test_a_long_list_is_asked_for_in_pages(evals: Command, server: Double) -> None:
    for number in range(130):
        server.add_run(f"run-{number}")
    assert len(json.loads(evals("list", "-n", "-1", "--json").stdout)["runs"]) == 130
    assert json.loads(evals("list", "-n", "3", "--json").stdout)["more"]


def test_info_tells_the_cause_and_the_next_step(evals: Command, server: Double) -> None:
    cause = Cause(code="missing_secret", message="It needs KEY.", next_step="Set it.")
    server.add_run(status="failed", cause=cause)
    done = evals("info", "run-1")
    assert "It needs KEY." in done.stdout
    assert "Set it." in done.stdout
    assert json.loads(evals("info", "run-1", "--json").stdout)["cause"]["code"] == "missing_secret"


def test_a_run_that_is_not_there_is_an_error_in_one_line(evals: Command) -> None:
    done = evals("info", "run-9")
    assert done.code == 2
    assert done.stderr == "Error: There is no such run, or it is not yours to see.\n"


def test_logs_are_printed_whole_by_their_tail_or_as_events(evals: Command, server: Double) -> None:
    server.add_run()
    server.say("run-1", "one", "two", "\x1b[31mthree")
    server.rollout("run-1", "t0")
    assert [line.split(" ", 2)[2] for line in evals("logs", "run-1").stdout.splitlines()] == [
        "one",
        "two",
        "three",
    ]
    assert evals("logs", "run-1", "-n", "1").stdout.endswith("three\n")
    events = [json.loads(line) for line in evals("logs", "run-1", "--json").stdout.splitlines()]
    assert [event["seq"] for event in events] == [1, 2, 3, 4]


def test_followed_logs_end_with_the_run(evals: Command, server: Double) -> None:
    server.add_run()
    server.say("run-1", "one", "two")
    server.end("run-1")
    lines = evals("logs", "run-1", "-f", "-n", "2").stdout.splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["INFO two", "STATUS finished"]


def test_samples_show_what_was_asked_and_answered(evals: Command, server: Double) -> None:
    with_rows(server)
    shown = evals("samples", "run-1", "--task", "1").stdout
    assert "say 1" in shown
    assert "SAY 1" in shown
    assert "say 0" not in shown
    failed = json.loads(evals("samples", "run-1", "--failed", "--json").stdout)["samples"]
    assert [sample["example_id"] for sample in failed] == [2]


def test_stop_and_delete_want_a_yes_where_nobody_can_be_asked(evals: Command, server: Double) -> None:
    server.add_run()
    refused = evals("stop", "run-1")
    assert (refused.code, server.runs["run-1"].status) == (2, "running")
    assert "--yes" in refused.stderr
    assert evals("stop", "run-1", "--yes").stdout == "run-1 is stopped\n"
    assert json.loads(evals("resume", "run-1", "--json").stdout)["runs"][0]["status"] == "pending"
    assert evals("delete", "run-1", "-y").code == 0
    assert server.runs == {}


def test_wait_leaves_with_the_worst_outcome(evals: Command, server: Double) -> None:
    server.add_run("run-1")
    server.progress("run-1", planned=1, settled=1, scored=1)
    server.end("run-1")
    server.add_run("run-2")
    server.end("run-2", "timed_out")
    assert evals("wait", "run-1").code == 0
    assert evals("wait", "run-1", "run-2").code == 6


def test_wait_gives_up_after_its_own_time(evals: Command, server: Double) -> None:
    server.add_run()
    assert evals("wait", "run-1", "--timeout", "0.2").code == 124


def test_a_run_on_the_server_is_exported_like_one_of_here(
    evals: Command, server: Double, tmp_path: Path
) -> None:
    with_rows(server)
    table = evals("export", "run-1", "--columns", "example_id,reward,completion").stdout
    assert table.splitlines() == ["example_id,reward,completion", "0,1.0,SAY 0", "1,1.0,SAY 1", "2,,SAY 2"]
    done = evals("export", "run-1", "--folder", "kept/here")
    assert done.code == 0, done.stderr
    assert (tmp_path / "kept/here/results.jsonl").read_bytes().count(b"\n") == 3
    assert evals("export", "run-1", "--folder", "kept/here").code == 2


# Runs of here


def played(proctor: Command, *words: str, **settings: Any) -> Ran:
    done = proctor(
        "eval", "run", "echo", "-m", "scripted", "-n", "3", "-r", "2", "--json", *words, **settings
    )
    assert done.code in (0, 1), done.stderr
    return done


def test_a_run_is_pushed_whole_and_pushing_it_again_adds_nothing(
    proctor: Command, evals: Command, server: Double
) -> None:
    folder = played(proctor).folder
    first = json.loads(evals("push", str(folder), "--env", "ada/echo", "--json").stdout)["pushed"][0]
    again = evals("push", "latest")
    assert first["sent"] == 6
    assert again.code == 0, again.stderr
    assert list(server.runs) == ["run-1"]
    assert len(server.rows["run-1"]) == 6
    run = server.runs["run-1"]
    assert (run.kind, run.environment, run.status) == ("local", "ada/echo", "finished")
    assert server.metadata["run-1"]["run_id"] == folder.name


def test_all_runs_are_pushed_and_a_damaged_one_stops_no_other(
    proctor: Command, evals: Command, server: Double
) -> None:
    folder = played(proctor).folder
    damaged = played(proctor).folder
    (damaged / "metadata.json").write_text("{")
    done = evals("push", "--all")
    assert done.code == 1
    assert str(damaged) in done.stderr
    assert str(folder) in done.stdout


def test_a_run_is_uploaded_while_it_goes_on(proctor: Command, server: Double) -> None:
    done = played(proctor, "--upload", environ=server.environ())
    assert len(server.rows["run-1"]) == 6
    assert server.runs["run-1"].status == "finished"
    assert server.metadata["run-1"]["run_id"] == done.folder.name
    assert "Uploaded as run-1" in done.stderr


def test_an_upload_that_is_refused_costs_the_run_nothing_and_names_the_way_to_repeat_it(
    proctor: Command, server: Double
) -> None:
    began = time.monotonic()
    done = played(proctor, "--upload", environ={**server.environ(), "PROCTOR_API_KEY": "wrong"})
    assert time.monotonic() - began < 60
    assert done.summary["finished"] == 6
    assert f"proctor eval push {done.folder}" in done.stderr
