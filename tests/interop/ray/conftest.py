"""A Ray cluster of two machines: the first is its head and the run's, the second joins."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from tests.interop.ray.machines import PROCTOR, Machine, can_have_machines, model_on, two_machines
from tests.waiting import wait_for

ENVIRONMENT = """
import asyncio, os, time
from pathlib import Path
from proctor import Rubric, SingleTurnEnv

GREETING = (Path(__file__).parent / "data" / "greeting.txt").read_text().strip()

def right(completion, answer):
    return float(answer in completion[-1]["content"])

async def process(state):
    return float(os.getpid())

async def second(state):
    return float(Path.home().joinpath("second").exists())

class Played(SingleTurnEnv):
    async def setup_state(self, state):
        info = state["info"]
        await asyncio.sleep(info["seconds"])
        end = time.process_time() + info["work"]
        while time.process_time() < end:
            pass
        state["words"] = [GREETING, info["said"]]
        return state

def load_environment(tasks=12, seconds=0.0, work=0.0, file=""):
    info = {"seconds": seconds, "work": work, "said": Path(file).read_text().strip() if file else ""}
    rows = [{"question": f"say {n}", "answer": "say", "info": info} for n in range(tasks)]
    return Played(rows, rubric=Rubric(right, process, second, weights=[1.0, 0.0, 0.0]))
"""


class Finished(msgspec.Struct, frozen=True):
    """A run that has ended."""

    code: int
    stdout: str
    stderr: str
    rows: Sequence[dict[str, Any]]
    seconds: float

    @property
    def nodes(self) -> set[bool]:
        """Which machines played: the second, or not."""
        return {bool(row["metrics"]["second"]) for row in self.rows if row.get("metrics")}

    @property
    def pace(self) -> float:
        """Rollouts per second between the first and the last."""
        starts = [row["timing"]["start_time"] for row in self.rows]
        ends = [row["timing"]["start_time"] + row["timing"]["total"] for row in self.rows]
        return len(self.rows) / float(max(ends) - min(starts))

    def check_whole(self, count: int) -> None:
        assert self.code == 0, self.stderr
        keys = [(row["example_id"], row["rollout"]) for row in self.rows]
        assert len(keys) == count
        assert len(set(keys)) == count, "each once"
        assert {row["outcome"] for row in self.rows} == {"scored"}


class Playing:
    """A run on the first machine."""

    def __init__(self, machine: Machine, words: Sequence[str], name: str) -> None:
        self.folder = machine._own / "home" / name
        self.started_at = time.monotonic()
        self.process = machine.start(
            *(PROCTOR, "eval", "run", "lab/played.py", "-m", "m", "-k", "", "-s", "-o", name),
            *("--json", *words),
            environ={"XDG_STATE_HOME": str(machine.home / "state")},
        )

    def read_rows(self) -> list[dict[str, Any]]:
        files = list(self.folder.rglob("results.jsonl"))
        return [json.loads(line) for line in files[0].read_text().splitlines()] if files else []

    def count_rows(self) -> int:
        files = list(self.folder.rglob("results.jsonl"))
        return files[0].read_bytes().count(b"\n") if files else 0

    def wait_for_rows(self, count: int, seconds: float = 60.0) -> None:
        def enough() -> bool:
            if self.process.poll() is not None:
                stdout, stderr = self.process.communicate()
                raise AssertionError(f"the run ended with {self.process.returncode}: {stdout[-500:]}{stderr}")
            return self.count_rows() >= count

        wait_for(enough, seconds, f"{count} rows")

    def read_log(self) -> str:
        return "".join(file.read_text() for file in self.folder.rglob("run.log"))

    def finish(self, seconds: float = 120.0) -> Finished:
        try:
            stdout, stderr = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        took = time.monotonic() - self.started_at
        return Finished(self.process.returncode, stdout, stderr, self.read_rows(), took)


class RayCluster:
    """Both machines, and a model that they reach."""

    def __init__(self, machines: Sequence[Machine], url: str) -> None:
        self.first, self.second = machines
        self.url = url
        self.runs: list[Playing] = []

    def play(self, *words: str, url: str = "") -> Playing:
        self.runs.append(Playing(self.first, ("-b", url or self.url, *words), f"run-{len(self.runs)}"))
        return self.runs[-1]

    def count_nodes(self) -> int:
        asked = self.first.do(PROCTOR, "cluster", "status", "--json")
        if asked.returncode != 0:
            return 0
        return sum(node["is_alive"] for node in json.loads(asked.stdout)["nodes"])

    def mend(self) -> None:
        """Both machines are nodes again."""
        self.second.mend()
        if not self.second.find("raylet/raylet"):
            self.second.kill_everything()
            self.second.join(self.first)
        wait_for(lambda: self.count_nodes() == 2, 60, "two nodes")


def lay_out(machine: Machine) -> None:
    """An environment and its files, on the disk of one machine only."""
    lab = machine._own / "home" / "lab"
    (lab / "data").mkdir(parents=True)
    (lab / "played.py").write_text(ENVIRONMENT)
    (lab / "data" / "greeting.txt").write_text("from the run's disk\n")
    (machine._own / "home" / "said.txt").write_text("as an argument\n")


@pytest.fixture(scope="session")
def machines() -> Iterator[Sequence[Machine]]:
    if not can_have_machines():
        pytest.skip("needs root, iproute2 and Ray (tests/interop/install.sh)")
    with two_machines() as made:
        for machine in made:
            (machine._own / "home" / "state").mkdir()
        (made[1]._own / "home" / "second").touch()
        yield made


@pytest.fixture(scope="session")
def standing(machines: Sequence[Machine]) -> Iterator[RayCluster]:
    """A cluster that stands as long as the tests run."""
    first, second = machines
    lay_out(first)
    first.start_head()
    second.join(first)
    with model_on(first, "--answer", "I say so") as url:
        yield RayCluster(machines, url)


@pytest.fixture
def cluster(standing: RayCluster) -> Iterator[RayCluster]:
    """Both nodes are there, and nothing of an earlier run."""
    standing.mend()
    yield standing
    for playing in standing.runs:
        if playing.process.poll() is None:
            playing.process.kill()
            playing.process.communicate()
