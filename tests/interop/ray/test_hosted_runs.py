"""Hosted runs on a real Ray cluster of two nodes: placed, found again, stopped, resumed, and gone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.cluster.address import parse_address
from proctor.cluster.connect import connect
from tests.interop.ray.namespaces import HEAD_ADDRESS, RayNode, SeparateNodes, ray_cluster
from tests.server.workplace import Person, Workplace, processes, workplace
from tests.waiting import wait_for

pytestmark = pytest.mark.interop

LEASE_SECONDS = 6
HIDE_BUBBLEWRAP = "mount --bind /dev/null /usr/bin/bwrap"
TOKEN = re.compile(rb"proctor_[0-9a-f]+_[\w-]{20,}")


class Runner:
    """`proctor runner --on ray://…`, started and killed as a test wants it."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.log = hosting.admin.home / "runner.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        hosting = self.hosting
        words = [
            *("runner", "--server", hosting.place.url, "--token-file", "host-token", "--data", "runner"),
            *("--on", hosting.cluster.address, "--run-memory-mb", "512", "--run-cpus", "1"),
            *("--node-server", f"http://{HEAD_ADDRESS}:{hosting.place.port}"),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proctor", *words],
                cwd=hosting.admin.home,
                env=hosting.admin.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """It, its host and its driver at once, as the crash of its machine would."""
        assert self.process is not None
        own = str(self.hosting.admin.home)
        for each in processes():
            if each.folder == own:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def wait_for(self, text: str, seconds: float = 60.0, after: int = 0) -> None:
        wait_for(lambda: text in self.text[after:], seconds, f"{text!r} in the runner's log:\n{self.text}")

    @property
    def text(self) -> str:
        return self.log.read_text()


def is_idle(node: RayNode) -> bool:
    return node.processes() == []


class Hosting(NamedTuple):
    cluster: SeparateNodes
    place: Workplace
    admin: Person
    ada: Person

    def submit(self, tasks: int, model: str = "slow-parrot") -> str:
        arguments = json.dumps({"tasks": tasks})
        words = ("eval", "run", "ada/sums", "--hosted", "-m", model, "-n", str(tasks), "-r", "1", "-c", "2")
        made: str = self.ada.ok(*words, "-a", arguments, "--json").json["runs"][0]["id"]
        return made

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.place.root.get(f"/runs/{run_id}")
        return found

    def events(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.place.root.get(f"/runs/{run_id}/events?after=0")["items"]
        return found

    def wait_until_settled(self, run_id: str, count: int, seconds: float = 90.0) -> None:
        wait_for(
            lambda: self.run(run_id)["progress"]["settled"] >= count, seconds, f"{count} settled in {run_id}"
        )

    def wait_for_end(self, run_id: str, seconds: float = 120.0) -> dict[str, Any]:
        wait_for(lambda: self.run(run_id)["ended_at"] is not None, seconds, f"the end of {run_id}")
        return self.run(run_id)

    def need_each_row_once(self, run_id: str, planned: int) -> None:
        exported = self.place.root("GET", f"/runs/{run_id}/results.jsonl").body
        rows = [json.loads(line) for line in exported.splitlines()]
        assert sorted(int(row["example_id"]) for row in rows) == list(range(planned))
        assert all(row["outcome"] == "scored" for row in rows)

    def names(self) -> list[str]:
        """Of the processes that the cluster keeps."""

        async def ask() -> list[str]:
            async with connect(parse_address(self.cluster.address)) as cluster:
                return await cluster.names()

        return asyncio.run(ask())

    def need_nothing_left(self, crashed: RayNode | None = None) -> None:
        """No actor and no process, and no folder of a run unless its machine crashed."""
        wait_for(lambda: self.names() == [], 30, "the end of every actor")
        for node in self.cluster.nodes:
            wait_for(partial(is_idle, node), 10, f"the end of everything on {node.name}")
            assert node is crashed or folders(node) == []

    def node_of(self, run_id: str) -> RayNode:
        """Where it plays now."""
        return next(node for node in self.cluster.nodes if run_id in folders(node))


def folders(node: RayNode) -> list[str]:
    work = node.home / ".local/state/proctor-runner/work"
    return [] if node.process is None or not work.exists() else [each.name for each in work.iterdir()]


@pytest.fixture(scope="module")
def hosting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosting]:
    folder = tmp_path_factory.mktemp("ray")
    words = ("--runs-at-once", "0", "--host", "0.0.0.0", "--lease-seconds", str(LEASE_SECONDS))
    with ray_cluster(folder) as cluster, workplace(folder / "w", *words) as place:
        for node in cluster.nodes:
            node.start()
        admin, ada = Person(folder / "admin", place.url), place.person("ada")
        admin.ok("login", place.url, stdin=place.token)
        admin.ok("token", "create", "--host", "cluster", "-o", "host-token")
        ada.write_environment()
        ada.ok("env", "push", "sums")
        for node in cluster.nodes:
            node.wait_until_joined()
        yield Hosting(cluster, place, admin, ada)


@pytest.fixture
def runner(hosting: Hosting) -> Iterator[Runner]:
    made = Runner(hosting)
    made.log.write_text("")
    made.start()
    try:
        yield made
    finally:
        made.stop()
        sys.stdout.write(made.text[-6000:])


@contextmanager
def measured(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    sys.stdout.write(f"{what}: {time.monotonic() - began:.1f} s\n")


def test_a_run_is_placed_on_a_node_and_finishes_there(hosting: Hosting, runner: Runner) -> None:
    run_id = hosting.submit(60)

    with measured("until the first row, with the check of both nodes and a new virtual environment"):
        hosting.wait_until_settled(run_id, 1)
    assert hosting.names() == [f"{run_id}-1"]
    shown = b"".join(command_lines())
    run = hosting.wait_for_end(run_id)

    assert (run["status"], run["progress"]["settled"]) == ("finished", 60)
    hosting.need_each_row_once(run_id, 60)
    assert TOKEN.search(shown) is None
    with measured("until nothing is left"):
        hosting.need_nothing_left()
    assert find_tokens_in_logs(hosting.cluster) == []


def test_a_stop_reaches_the_node(hosting: Hosting, runner: Runner) -> None:
    run_id = hosting.submit(400)
    hosting.wait_until_settled(run_id, 2)

    with measured("until it stopped, with the command"):
        hosting.ada.ok("eval", "stop", run_id, "--yes")
        run = hosting.wait_for_end(run_id, 30)

    assert run["status"] == "stopped"
    wait_for(lambda: hosting.names() == [], 30, "the end of every actor")


def test_a_killed_runner_finds_its_runs_again(hosting: Hosting, runner: Runner) -> None:
    run_id = hosting.submit(240)
    hosting.wait_until_settled(run_id, 2)

    runner.kill()
    before = hosting.run(run_id)["progress"]["settled"]
    hosting.wait_until_settled(run_id, before + 10)  # longer than a lease, without a runner
    runner.start()
    runner.wait_for(f"Found {run_id}-1 again")
    run = hosting.wait_for_end(run_id)

    assert (run["status"], run["progress"]["settled"]) == ("finished", 240)
    hosting.need_each_row_once(run_id, 240)
    assert attempts(hosting, run_id) == 1
    hosting.need_nothing_left()


def test_a_restarted_server_finds_its_runs_playing(hosting: Hosting, runner: Runner) -> None:
    run_id = hosting.submit(40)
    hosting.wait_until_settled(run_id, 2)

    hosting.place.kill()
    time.sleep(LEASE_SECONDS + 2)  # longer than the lease
    hosting.place.start()
    run = hosting.wait_for_end(run_id)

    assert (run["status"], run["progress"]["settled"]) == ("finished", 40)
    hosting.need_each_row_once(run_id, 40)
    assert attempts(hosting, run_id) == 1
    hosting.need_nothing_left()


def test_a_run_of_a_dead_node_resumes_on_the_other(hosting: Hosting, runner: Runner) -> None:
    run_id = hosting.submit(60)
    hosting.wait_until_settled(run_id, 4)
    node = hosting.node_of(run_id)

    node.kill()
    before = hosting.run(run_id)["progress"]["settled"]
    with measured("from the death of the node to the next row"):
        hosting.wait_until_settled(run_id, before + 3)
    run = hosting.wait_for_end(run_id)
    node.start()

    assert (run["status"], run["progress"]["settled"]) == ("finished", 60)
    hosting.need_each_row_once(run_id, 60)
    assert attempts(hosting, run_id) == 2
    hosting.need_nothing_left(crashed=node)


def test_a_node_without_bubblewrap_is_skipped_and_the_cause_told(hosting: Hosting, runner: Runner) -> None:
    first, second = hosting.cluster.nodes
    for node in (first, second):
        node.kill()
    first.start(further=HIDE_BUBBLEWRAP)
    runner.wait_for("is skipped: Runs need bubblewrap, but `bwrap` is not installed")
    run_id = hosting.submit(2)
    assert hosting.run(run_id)["status"] == "pending"

    second.start()
    run = hosting.wait_for_end(run_id)

    assert (run["status"], run["progress"]["settled"]) == ("finished", 2)
    assert "can play runs" not in runner.text.partition("is skipped")[2].partition(second.name)[0]
    hosting.need_nothing_left(crashed=first)


def attempts(hosting: Hosting, run_id: str) -> int:
    told = [event.get("text", "") for event in hosting.events(run_id)]
    return sum(line.startswith("Attempt ") for line in told)


def command_lines() -> Iterator[bytes]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (place / "cmdline").read_bytes()


def find_tokens_in_logs(cluster: SeparateNodes) -> list[str]:
    """Files of Ray, on any machine, that hold a token of ours."""
    seen = [
        cluster.temp,
        *(Path(f"/proc/{first_process(node)}/root{cluster.temp}") for node in cluster.nodes),
    ]
    files = [file for folder in seen for file in folder.rglob("*") if file.is_file()]
    assert any("raylet" in file.name for file in files)
    return [str(file) for file in files if TOKEN.search(file.read_bytes())]


def first_process(node: RayNode) -> int:
    assert node.process is not None
    children = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text().split()
    return int(children[0])
