"""The whole story as two people live it: from an empty folder to results, and nothing for who has no rights.

Everything is the real thing: the server in a process of its own, its host, the walls, the command line.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.workplace import Person, Workplace, workplace
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Iterator[Workplace]:
    words = () if database_url.startswith("sqlite") else ("--database", database_url)
    with workplace(tmp_path / "w", *words) as made:
        yield made


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_from_an_empty_folder_to_results_and_nothing_for_who_has_no_rights(place: Workplace) -> None:
    ada, eve = place.person("ada"), place.person("eve")
    assert "ada" in ada.ok("whoami").stdout

    ada.write_environment()
    pushed = ada.ok("env", "push", "sums", "--wait", "--json").json
    assert pushed["version"]["check"]["status"] == "passed"
    assert pushed["version"]["check"]["tasks"] == 6

    run_id = follow_a_run_to_its_end(ada)
    read_it_in_every_way(ada, run_id)
    stop_another(ada)
    eve_gets_nothing(place, eve, run_id)


def follow_a_run_to_its_end(ada: Person) -> str:
    followed = ada.ok(
        *("eval", "run", "ada/sums@0.1.0", "--hosted", "--follow", "-m", "parrot", "-n", "4", "-r", "2"),
        *("--eval-name", "first", "-a", '{"shout": "hello there"}'),
    )
    assert "8 of 8 rollouts scored" in followed.stdout
    assert followed.stderr.count("hello there") == 1
    listed = ada.ok("eval", "list", "--json").json
    (run,) = listed["runs"]
    assert (run["name"], run["status"], run["version"]) == ("first", "finished", "0.1.0")
    return str(run["id"])


def read_it_in_every_way(ada: Person, run_id: str) -> None:
    info = ada.ok("eval", "info", run_id, "--json").json
    assert info["summary"]["reward"]["mean"] == 1.0
    assert info["content_hash"]
    assert "hello there" in ada.ok("eval", "logs", run_id).stdout
    samples = ada.ok("eval", "samples", run_id, "--json").json["samples"]
    assert len(samples) == 8
    exported = ada.ok("eval", "export", run_id, "--format", "jsonl").stdout.splitlines()
    assert len(exported) == 8
    assert all(json.loads(line)["reward"] == 1.0 for line in exported)
    assert ada("eval", "wait", run_id).code == 0


def stop_another(ada: Person) -> None:
    words = ("eval", "run", "ada/sums", "--hosted", "-m", "slow-parrot", "-a", '{"tasks": 500}', "-n", "-1")
    started = ada.ok(*words, "-r", "1", "-c", "1", "--json").json
    run_id = started["runs"][0]["id"]
    waiting = ada.start("eval", "logs", run_id, "-f")
    wait_for(lambda: ada.ok("eval", "info", run_id, "--json").json["progress"]["settled"] >= 2)
    ada.ok("eval", "stop", run_id, "--yes")
    assert ada("eval", "wait", run_id).code == 5
    info = ada.ok("eval", "info", run_id, "--json").json
    assert (info["status"], info["cause"]["code"]) == ("stopped", "stopped_by_user")
    assert info["progress"]["settled"] >= 2
    _, _ = ended(waiting)


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    return process.communicate(timeout=60)


def eve_gets_nothing(place: Workplace, eve: Person, run_id: str) -> None:
    for words in (
        ("eval", "info", run_id),
        ("eval", "logs", run_id),
        ("eval", "samples", run_id),
        ("eval", "export", run_id),
        ("eval", "stop", run_id, "--yes"),
        ("eval", "resume", run_id),
        ("eval", "delete", run_id, "--yes"),
        ("env", "info", "ada/sums"),
        ("env", "inspect", "ada/sums"),
        ("env", "pull", "ada/sums"),
        ("env", "fork", "ada/sums"),
        ("eval", "run", "ada/sums", "--hosted", "-m", "parrot"),
    ):
        said = eve(*words)
        assert said.code != 0, words
        assert "say 0" not in said.stdout + said.stderr
        assert "Traceback" not in said.stderr
    assert eve.ok("eval", "list", "--json").json["runs"] == []
    assert place.root.get(f"/runs/{run_id}")["status"] == "finished"
