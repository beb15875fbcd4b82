"""A server that is killed and started again in the middle of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.workplace import workplace
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")


def test_a_restart_of_the_server_costs_a_run_no_rollout(tmp_path: Path) -> None:
    with workplace(tmp_path / "w") as place:
        ada = place.person("ada")
        ada.write_environment()
        ada.ok("env", "push", "sums")
        words = (
            "eval",
            "run",
            "ada/sums",
            "--hosted",
            "-m",
            "slow-parrot",
            "-a",
            '{"tasks": 12}',
            "-n",
            "-1",
        )
        run_id = ada.ok(*words, "-r", "1", "-c", "2", "--json").json["runs"][0]["id"]
        wait_for(lambda: place.root.get(f"/runs/{run_id}")["progress"]["settled"] >= 2)

        place.kill()
        place.start()

        assert ada("eval", "wait", run_id, "--timeout", "60").code == 0
        progress = place.root.get(f"/runs/{run_id}")["progress"]
        assert (progress["scored"], progress["failed"]) == (12, 0)
