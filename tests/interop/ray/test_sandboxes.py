"""Sandboxes in plenty: the workspaces of one run are made where its workers are."""

from __future__ import annotations

import json

import pytest

from tests.interop.ray.conftest import RayCluster
from tests.interop.ray.machines import PROCTOR

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("sandboxes")]

ROOMS = """
from pathlib import Path
from proctor import Environment

env = Environment("rooms")
work = env.workspace()
ON_SECOND = Path.home().joinpath("second").exists()


@env.template()
async def remember(number: int):
    await work.run(f"echo {number} > number.txt; sleep 0.5")
    yield "Say so."
    found = await work.run("cat number.txt; ls; ls ~/second")
    assert found.output.split()[:2] == [str(number), "number.txt"], found.output
    yield 1.0 if ON_SECOND else 0.5


tasks = [remember(number=number) for number in range(16)]
"""


def test_workspaces_of_one_run_are_spread_over_the_nodes(cluster: RayCluster) -> None:
    (cluster.first._own / "home" / "lab" / "rooms.py").write_text(ROOMS)
    workers = ("-w", "4", "--on", "ray", "--on-args", json.dumps({"cpus": 0.5}), "-c", "8")

    ran = cluster.first.do(
        *(PROCTOR, "eval", "run", "lab/rooms.py", "-m", "m", "-k", "", "-b", cluster.url, "--all", "-r", "1"),
        *("-s", "-o", "rooms", "--json", *workers),
        seconds=180,
        environ={"XDG_STATE_HOME": str(cluster.first.home / "state")},
    )

    assert ran.returncode == 0, ran.stderr
    (file,) = (cluster.first._own / "home" / "rooms").rglob("results.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["error"] for row in rows] == [None] * 16
    assert {row["reward"] for row in rows} == {0.5, 1.0}, "both nodes made sandboxes"
    assert cluster.second.find("bwrap") == []
