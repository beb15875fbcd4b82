"""Whole runs of `proctor eval run` with rollouts in containers: to their end, killed, and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("nothing_left")]

PATIENT = Path(__file__).with_name("patient.py")
BREAK_OUT = """\
import glob, json, socket
def is_open(door):
    try:
        socket.create_connection(door, timeout=2).close()
    except OSError:
        return False
    return True
environs = [open(file, "rb").read() for file in glob.glob("/proc/[0-9]*/environ")]
tried = {
    "open": sum(is_open(door) for door in json.load(open("doors.json"))),
    "tokens": sum(b"PROCTOR_SERVE_TOKEN" in environ for environ in environs),
    "graders": len(glob.glob("/srv/*")),
}
json.dump(tried, open("tried.json", "w"))
"""
WAIT_SECONDS = 120.0
TASKS, GROUP, AT_ONCE = 5, 4, 4

Say = Callable[..., str]
Ours = Callable[[], set[str]]
Key = tuple[str, int]


class Driver:
    """Runs evaluations in a folder of their own, each in a process of its own."""

    def __init__(self, folder: Path, image: str) -> None:
        self.folder = folder
        self.image = image

    def tasks(self, *rows: dict[str, Any]) -> None:
        (self.folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A run; it is over when the block is."""
        command = (sys.executable, "-m", "proctor", "eval", "run", "tasks.jsonl", *words)
        place = ("--runtime", f"docker://{self.image}", "-o", "out", "-s")
        with (self.folder / "said").open("w") as said:
            process = subprocess.Popen(
                [*command, *place], cwd=self.folder, stdout=said, stderr=said, text=True
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def code(self, process: subprocess.Popen[str]) -> int:
        return process.wait(WAIT_SECONDS)

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def rows(self) -> list[dict[str, Any]]:
        files = list(self.folder.glob("out/**/results.jsonl"))
        assert len(files) <= 1
        lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def thinking(self) -> int:
        """How many rollouts wait in the hands of a patient agent."""
        file = self.folder / "thinking"
        return int(file.read_text() or 0) if file.exists() else 0

    def wait_for_thinking(self, count: int, process: subprocess.Popen[str]) -> None:
        self.wait_until(lambda: self.thinking() >= count, process)

    def wait_until(self, is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not is_so():
            assert process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.02)

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def driver(image: str, tmp_path: Path) -> Driver:
    return Driver(tmp_path, image)


@pytest.fixture
def visits(driver: Driver) -> Driver:
    driver.tasks(*({"env": "room", "template": "visit", "args": {"number": each}} for each in range(TASKS)))
    return driver


def words_for(at_once: int) -> Sequence[str]:
    """Words of a run whose agent answers so many rollouts at once, and keeps the others waiting."""
    agent = (f"{PATIENT}:Patient", "-m", "scripted", "--agent-args", json.dumps({"at_once": at_once}))
    return (*agent, "-n", str(TASKS), "--group", str(GROUP), "-c", str(AT_ONCE))


def key(row: dict[str, Any]) -> Key:
    return row["example_id"], row["rollout"]


def visited(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(row["prompt"][-1]["content"]) for row in rows]


def test_twenty_rollouts_have_twenty_fresh_containers_and_no_more_at_once_than_asked(
    visits: Driver, ours: Ours
) -> None:
    most = 0
    words = ("-m", "scripted", "-n", str(TASKS), "--group", str(GROUP), "-c", str(AT_ONCE))
    with visits.running(*words) as run:
        while run.poll() is None:
            most = max(most, len(ours()))
            time.sleep(0.2)

        assert run.returncode == 0, visits.said
    rows = visits.rows()
    assert len({key(row) for row in rows}) == len(rows) == TASKS * GROUP
    assert {(row["outcome"], row["reward"]) for row in rows} == {("scored", 1.0)}
    assert len({visit["host"] for visit in visited(rows)}) == len(rows)
    assert all(row["completion"] and len(row["model_calls"]) == 1 for row in rows)
    assert 1 < most <= AT_ONCE
    assert ours() == set()


def test_a_killed_run_goes_on_with_what_is_left_and_leaves_no_container(visits: Driver, ours: Ours) -> None:
    words = words_for(at_once=6)
    with visits.running(*words) as run:
        visits.wait_for_thinking(AT_ONCE, run)
        run.send_signal(signal.SIGKILL)
        run.wait()
    before = visits.rows()
    orphans = ours()
    assert len(before) == 6
    assert len(orphans) == AT_ONCE

    visits.go()
    with visits.running(*words, "--resume") as run:
        assert visits.code(run) == 0, visits.said

    rows = visits.rows()
    assert len({key(row) for row in rows}) == len(rows) == TASKS * GROUP
    assert {(row["outcome"], row["reward"]) for row in rows} == {("scored", 1.0)}
    assert len({visit["host"] for visit in visited(rows)}) == len(rows)
    assert [row for row in rows if key(row) in set(map(key, before))] == before
    assert ours() == set()


def test_ctrl_c_ends_the_run_when_what_is_in_flight_has_finished(visits: Driver, ours: Ours) -> None:
    with visits.running(*words_for(at_once=0)) as run:
        visits.wait_for_thinking(AT_ONCE, run)
        run.send_signal(signal.SIGINT)
        visits.wait_until(lambda: "Stopping: 4 rollouts in flight will finish" in visits.said, run)
        visits.go()

        assert visits.code(run) == 130, visits.said
        assert ours() == set()
    assert [row["outcome"] for row in visits.rows()] == ["scored"] * AT_ONCE


def test_ctrl_c_twice_ends_it_at_once_and_leaves_no_container_either(visits: Driver, ours: Ours) -> None:
    with visits.running(*words_for(at_once=0)) as run:
        visits.wait_for_thinking(AT_ONCE, run)
        assert len(ours()) == AT_ONCE
        run.send_signal(signal.SIGINT)
        visits.wait_until(lambda: "Stopping:" in visits.said, run)
        run.send_signal(signal.SIGINT)

        assert visits.code(run) == 130, visits.said
        assert ours() == set()


def test_a_container_that_is_killed_from_outside_is_an_environment_error_that_names_it(
    visits: Driver, docker: Say, ours: Ours
) -> None:
    with visits.running(f"{PATIENT}:Patient", "-m", "scripted") as run:
        visits.wait_for_thinking(1, run)
        docker("kill", *ours())
        visits.go()

        assert visits.code(run) == 1, visits.said
    (row,) = visits.rows()
    assert row["outcome"] == "environment_error"
    assert row["reward"] is None
    assert f"the container of {visits.image} was killed (exit code 137)" in row["error"]["message"]
    assert row["completion"], "what the agent said before is kept"


def test_a_rollout_whose_container_was_killed_is_played_again_in_another(
    visits: Driver, docker: Say, ours: Ours
) -> None:
    with visits.running(f"{PATIENT}:Patient", "-m", "scripted", "--max-retries", "1") as run:
        visits.wait_for_thinking(1, run)
        docker("kill", *ours())
        visits.go()

        assert visits.code(run) == 0, visits.said
    (row,) = visits.rows()
    assert (row["outcome"], row["reward"], row["attempts"]) == ("scored", 1.0, 2)


@pytest.fixture
def workshop(driver: Driver, docker: Say) -> Driver:
    """One task in a workspace, and an agent who tries to grade itself from there."""
    if "bwrap" not in docker("run", "--rm", driver.image, "sh", "-c", "command -v bwrap || true"):
        pytest.skip("there is no bwrap for the image")
    driver.tasks({"env": "workshop", "template": "break_out", "args": {}})
    calls = [
        {"name": "write_file", "arguments": {"path": "break_out.py", "content": BREAK_OUT}},
        {"name": "bash", "arguments": {"command": "python3 break_out.py; echo tried $?"}},
    ]
    script = [*({"tool_calls": [call]} for call in calls), {"text": "I could not."}]
    (driver.folder / "script.jsonl").write_text("".join(json.dumps(step) + "\n" for step in script))
    return driver


def words_with(**settings: Any) -> Sequence[str]:
    command = "proctor serve /srv/workshop.py --host 0.0.0.0 -p 8765"
    given = json.dumps({"command": command, **settings})
    return ("-m", "scripted", "-b", "script.jsonl", "--runtime-args", given, "-C", "grade_info")


def test_an_agent_in_a_workspace_in_a_container_works_there_and_cannot_grade_itself(workshop: Driver) -> None:
    with workshop.running(*words_with(sandbox=True, user="1000:1000")) as run:
        assert workshop.code(run) == 0, workshop.said

    (row,) = workshop.rows()
    results = [message["content"] for message in row["completion"] if message["role"] == "tool"]
    assert results[-1] == "tried 0", results
    assert row["reward"] == 1.0
    assert {change["path"] for change in row["file_changes"]} == {"break_out.py", "tried.json"}
    info = row["grade_info"]
    assert info["tried"] == {"open": 0, "tokens": 0, "graders": 0}
    assert (info["user"], info["open_outside"]) == (1000, 2)
    assert info["tokens_outside"] > 0


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"user": "1000:1000"}, "workspaces in a container need sandbox=True"),
        ({"sandbox": True}, "set user='1000:1000', or USER in the image"),
    ],
)
def test_where_no_workspace_can_be_walled_off_it_is_said_what_to_set(
    workshop: Driver, settings: dict[str, Any], advice: str
) -> None:
    with workshop.running(*words_with(**settings)) as run:
        assert workshop.code(run) == 1, workshop.said

    (row,) = workshop.rows()
    assert row["outcome"] == "environment_error"
    assert advice in row["error"]["message"]
