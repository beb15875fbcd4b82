"""Whatever is killed while a recipe is fetched or played: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.runner.repositories import make_checkout
from tests.server.serving import Api
from tests.server.sources.git_server import git_server
from tests.server.sources.test_sources import recipe
from tests.server.sources.test_submit import MAIN, rows
from tests.server.workplace import Workplace, workplace
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("repositories")]

WORDS = ("--allow-source-host", "127.0.0.1", "--lease-seconds", "2", "--most-crashes", "1000")
ROWS = 12
SUMS = "/datasets/root/sums/versions"


def kill_everything(place: Workplace) -> None:
    for pid in place.hosts():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    place.kill()


@pytest.mark.slow
def test_a_server_and_a_host_killed_during_fetch_and_play_lose_nothing(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "git", MAIN.format(mark=""))
    with git_server(tmp_path / "git") as host, workplace(tmp_path / "work", *WORDS) as place:
        root, data = place.root, rows(ROWS).encode()
        sha256 = hashlib.sha256(data).hexdigest()
        assert root("PUT", f"{SUMS}/{sha256}?format=jsonl", data=data).status in (200, 201)
        new = {"url": f"{host.url}/remote.git", "name": "agents", "token": "letmein"}
        root.post("/sources", new)
        dataset = {
            "owner": "root",
            "name": "sums",
            "format": "jsonl",
            "sha256": sha256,
            "selected_rows": ROWS,
        }
        asked = {"source": "root/agents", "recipe": recipe(model_path="slow-parrot"), "dataset": dataset}

        host.answers.clear()
        host.asked.clear()
        failing = threading.Thread(target=submit_in_vain, args=(root, asked), daemon=True)
        failing.start()
        assert host.asked.wait(30)
        kill_everything(place)  # the fetch hangs in its sandbox
        failing.join(30)
        host.answers.set()
        place.start()
        assert root.get("/runs")["items"] == []
        assert list((place.data / "fetches").iterdir()) == []

        run = root.post("/submissions", asked)
        wait_for(lambda: has_settled(root.get(f"/runs/{run['id']}")))
        kill_everything(place)
        place.start()
        ended = wait_for(lambda: find_ended(root, run["id"]))

    assert (ended["status"], ended["progress"]["settled"]) == ("finished", ROWS)
    assert ended["attempt"] > 1
    assert ended["origin"]["commit_sha"] == checkout.git("rev-parse", "HEAD")


def submit_in_vain(api: Api, asked: dict[str, Any]) -> None:
    with suppress(OSError, json.JSONDecodeError):
        api("POST", "/submissions", asked)


def has_settled(run: Any) -> bool:
    assert run["status"] in ("pending", "running"), run["cause"]["message"]
    return bool(run["progress"]["settled"] >= 2)


def find_ended(api: Api, run_id: str) -> Any:
    run = api.get(f"/runs/{run_id}")
    return run if run["status"] in ("finished", "failed", "stopped", "timed_out") else None
