"""Three servers, two runners and their PostgreSQL, killed and paused at random: nothing is lost or doubled.

Files are in object storage (SeaweedFS) where that is installed, else in a folder that the servers share.

`SOAK_SECONDS`, `SOAK_RUNS` and `SOAK_SEED` say how long, how much and by which plan:

    SOAK_SECONDS=600 SOAK_RUNS=200 pytest -m slow tests/server/test_chaos.py
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.server.db.database import Database
from tests.server.fleet import Breaker, Fleet, HealthProbe, StreamFollower, open_file_store
from tests.server.killing import need_true_books, providing
from tests.server.postgres import cluster
from tests.server.serving import Api

pytestmark = pytest.mark.usefixtures("sandboxes")

log = logging.getLogger(__name__)
TASKS = 6
FOLLOWED = 5
"""One run in so many has a follower."""
END_SECONDS = 600.0
"""For all runs to end once nothing is broken any more."""


@pytest.mark.slow
def test_servers_runners_and_the_database_are_broken_at_random_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    seconds, runs = float(os.environ.get("SOAK_SECONDS", "600")), int(os.environ.get("SOAK_RUNS", "200"))
    seed = int(os.environ.get("SOAK_SEED", "7"))
    play(tmp_path, servers=3, runners=2, runs=runs, seconds=seconds, seed=seed)


@pytest.mark.interop
def test_two_servers_survive_a_few_blows(tmp_path: Path) -> None:
    blows = ("server killed", "database crashed", "server restarted", "runner killed", "database paused")
    play(tmp_path, servers=2, runners=1, runs=5, seconds=0.0, seed=3, blows=blows)


def play(
    folder: Path,
    *,
    servers: int,
    runners: int,
    runs: int,
    seconds: float,
    seed: int,
    blows: Sequence[str] = (),
) -> None:
    """Start runs while things are broken: by a list or, without one, at random for some seconds."""
    with (
        cluster() as postgres,
        providing(delay_seconds=0.3) as provider,
        open_file_store(folder) as files,
    ):
        fleet = Fleet(folder, postgres, servers, provider.models, files)
        with fleet.running(runners):
            ada = fleet.person("ada")
            ada.write_environment()
            ada.ok("env", "push", "sums", "--wait")
            fleet.ask("POST", "/grants", {"owner": "root", "amount_usd": 1000.0}, key="grant")
            probe, breaker = HealthProbe(fleet), Breaker(fleet, seed)
            began = time.monotonic()
            ids, followers = start_and_break(fleet, breaker, runs, seconds, blows)
            took = time.monotonic() - began
            infos = wait_for_end(fleet, ids)
            probe.stop()
            for run_id, info in infos.items():
                need_whole_run(fleet.api, run_id, info)
            need_uninterrupted(followers, infos)
            assert probe.failures == []
            database = Database(fleet.database)
            try:
                need_true_books(database, provider, "root")
            finally:
                database.close()
            attempts = sum(info["attempt"] for info in infos.values())
            log.info(
                "seed %d, %.0f s, files by %s: %s; %d runs of %d rollouts in %d attempts, "
                "%d answers of the provider; %d followers, cut %d times, "
                "at most %.1f s without a stream; %d health checks; ended %.0f s later",
                *(seed, took, files.words[0], dict(breaker.done), runs, TASKS, attempts, provider.given),
                *(len(followers), sum(each.cuts for each in followers)),
                max(each.longest_gap for each in followers),
                *(probe.asked, time.monotonic() - began - took),
            )


def start_and_break(
    fleet: Fleet, breaker: Breaker, runs: int, seconds: float, blows: Sequence[str]
) -> tuple[list[str], list[StreamFollower]]:
    """Start the runs spread over the time, while something is always being broken."""
    ids: list[str] = []
    followers: list[StreamFollower] = []
    began, struck = time.monotonic(), 0

    def find_progress() -> float:
        return struck / len(blows) if blows else (time.monotonic() - began) / seconds

    while (progress := find_progress()) < 1.0 or len(ids) < runs:
        due = min(runs, max(1, round(runs * progress * 1.25)))
        while len(ids) < due:
            ids.append(start_run(fleet, len(ids)))
            if len(ids) % FOLLOWED == 1:
                followers.append(StreamFollower(fleet.api, ids[-1]))
        breaker.strike(blows[struck % len(blows)] if blows else "")
        struck += 1
        time.sleep(breaker.chance.uniform(0, 2))
    return ids, followers


def start_run(fleet: Fleet, number: int) -> str:
    settings = {
        "num_examples": -1,
        "rollouts_per_example": 1,
        "max_concurrent": 3,
        "env_args": {"tasks": TASKS},
    }
    asked = {"environment": "ada/sums", "model": "priced", "settings": settings, "max_cost_usd": 1.0}
    return str(fleet.ask("POST", "/runs", asked, key=f"run-{number}").body["id"])


def wait_for_end(fleet: Fleet, ids: list[str]) -> dict[str, Any]:
    deadline = time.monotonic() + END_SECONDS
    infos: dict[str, Any] = {}
    while len(infos) < len(ids):
        assert time.monotonic() < deadline, [
            fleet.ask("GET", f"/runs/{run_id}").body for run_id in ids if run_id not in infos
        ]
        for run_id in ids:
            if run_id not in infos:
                info = fleet.ask("GET", f"/runs/{run_id}").body
                if info["status"] not in ("pending", "running", "stopping"):
                    infos[run_id] = info
        time.sleep(1.0)
    return infos


def need_whole_run(api: Api, run_id: str, info: dict[str, Any]) -> None:
    assert (info["status"], info["cause"]) == ("finished", None), info
    lines = api("GET", f"/runs/{run_id}/results.jsonl").body.splitlines()
    rows = [json.loads(line) for line in lines]
    keys = [(str(row["example_id"]), row["rollout"]) for row in rows]
    assert len(keys) == len(set(keys)) == TASKS, keys
    assert all(row["reward"] == 1.0 for row in rows), rows
    events = read_events(api, run_id)
    assert [event["seq"] for event in events] == list(range(1, info["last_seq"] + 1))
    told = [event["rollout"] for event in events if event.get("rollout")]
    assert Counter((brief["task"], brief["number"]) for brief in told) == Counter(keys)


def read_events(api: Api, run_id: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while True:
        page = api.get(f"/runs/{run_id}/events?after={events[-1]['seq'] if events else 0}")
        events += page["items"]
        if page["ended"]:
            return events


def need_uninterrupted(followers: list[StreamFollower], infos: dict[str, Any]) -> None:
    for follower in followers:
        assert follower.ended.wait(30), follower.run_id
        assert follower.seqs == list(range(1, infos[follower.run_id]["last_seq"] + 1))
