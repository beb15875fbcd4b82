"""Runs that crash, are stopped at odd moments or outlive their server: each ends as it should, and soon."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Connection, update

from proctor.run import ENDED
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.tables import runs
from tests.server.workplace import Workplace, workplace
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("crashes")]

TROUBLE = '''
"""Whatever trouble is asked for."""

import ctypes
import os
import time

from proctor import Rubric, SingleTurnEnv


def load_environment(trouble: str = "", tasks: int = 6):
    def scored(answer):
        if trouble == "leave in a rollout" and answer == "say 3":
            print("this is too much")
            os._exit(4)
        if trouble == "deaf":
            time.sleep(60)
        return 1.0

    if trouble == "leave":
        print("about to leave")
        os._exit(3)
    if trouble == "crash":
        ctypes.string_at(0)
    if trouble == "deaf":
        print("hears nothing")
        time.sleep(60)
    rows = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(tasks)]
    return SingleTurnEnv(rows, rubric=Rubric(scored))
'''
MOST_SECONDS_TO_SHUT_DOWN = 30.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    folder = tmp_path_factory.mktemp("crashes")
    words = ("--lease-seconds", "4", "--most-crashes", "2", "--runs-at-once", "1")
    with workplace(folder, *words) as made:
        made.root.post("/grants", {"owner": "root", "amount_usd": 100.0})
        ada = made.person("ada")
        ada.write_environment("trouble", TROUBLE)
        ada.ok("env", "push", "trouble", "--wait")
        yield made


def start(place: Workplace, model: str = "parrot", **env_args: Any) -> str:
    settings = {"num_examples": -1, "rollouts_per_example": 1, "max_concurrent": 2, "env_args": env_args}
    asked = {"environment": "ada/trouble", "model": model, "settings": settings, "max_cost_usd": 1.0}
    return str(place.root.post("/runs", asked)["id"])


def read(place: Workplace, run_id: str) -> Any:
    return place.root.get(f"/runs/{run_id}")


def ended(place: Workplace, run_id: str) -> Any:
    wait_for(lambda: read(place, run_id)["status"] in ENDED)
    return read(place, run_id)


def wait_for_line(place: Workplace, run_id: str, text: str) -> None:
    def is_said() -> bool:
        items = place.root.get(f"/runs/{run_id}/events")["items"]
        return any(text in event.get("text", "") for event in items)

    wait_for(is_said)


def test_an_environment_that_leaves_while_loading_fails_with_its_last_words(place: Workplace) -> None:
    run = ended(place, start(place, trouble="leave"))
    assert (run["status"], run["cause"]["code"], run["attempt"]) == ("failed", "crashed", 2)
    assert "ended with exit code 3" in run["cause"]["message"]
    assert "about to leave" in run["cause"]["message"]
    assert "2 times in a row" in run["cause"]["message"]


def test_an_environment_that_crashes_while_loading_fails_and_says_where(place: Workplace) -> None:
    run = ended(place, start(place, trouble="crash"))
    assert (run["status"], run["cause"]["code"], run["attempt"]) == ("failed", "crashed", 2)
    assert "killed by signal 11" in run["cause"]["message"]


def test_a_rollout_that_ends_the_process_fails_the_run_which_keeps_the_others(place: Workplace) -> None:
    run = ended(place, start(place, trouble="leave in a rollout"))
    assert (run["status"], run["cause"]["code"]) == ("failed", "crashed")
    assert "this is too much" in run["cause"]["message"]
    assert run["attempt"] <= 6
    assert run["progress"]["settled"] <= 5


def test_a_run_whose_time_is_up_ends_and_keeps_what_it_has(place: Workplace) -> None:
    run_id = start(place, "slow-parrot", tasks=200)
    wait_for(lambda: read(place, run_id)["progress"]["settled"] >= 2)

    def make_late(connection: Connection) -> None:
        connection.execute(update(runs).where(runs.c.id == run_id).values(deadline_at=time.time()))

    database = Database(sqlite_url(place.data / "proctor.db"))
    database.write_now(make_late)
    database.close()
    run = ended(place, run_id)
    assert (run["status"], run["cause"]["code"]) == ("timed_out", "time_limit")
    assert run["progress"]["settled"] >= 2


def test_a_run_that_waits_is_stopped_at_once_and_gives_its_money_back(place: Workplace) -> None:
    first = start(place, "slow-parrot", tasks=200)
    wait_for(lambda: read(place, first)["status"] == "running")
    second = start(place)
    held_for_both = place.root.get("/balance")["held_usd"]
    place.root.post(f"/runs/{second}/stop")
    assert read(place, second)["status"] == "stopped"
    assert place.root.get("/balance")["held_usd"] == held_for_both - 1.0
    place.root.post(f"/runs/{first}/stop")
    assert ended(place, first)["status"] == "stopped"


def test_a_run_is_stopped_while_it_is_being_installed(place: Workplace) -> None:
    ended(place, start(place))
    venvs = place.data / "host" / "venvs"
    with ExitStack() as files:
        for finished in venvs.glob("*/lock.txt"):
            finished.unlink()
        for lock in venvs.glob("*.lock"):  # as if another process was still installing it
            fcntl.flock(files.enter_context(lock.open("w")), fcntl.LOCK_EX)
        run_id = start(place)
        wait_for_line(place, run_id, "Attempt 1 of")
        place.root.post(f"/runs/{run_id}/stop")
        run = ended(place, run_id)
    assert (run["status"], run["cause"]["code"]) == ("stopped", "stopped_by_user")


def test_a_run_goes_on_with_the_next_server_after_an_orderly_end(place: Workplace) -> None:
    run_id = start(place, "slow-parrot", tasks=20)
    wait_for(lambda: read(place, run_id)["progress"]["settled"] >= 2)
    assert seconds_to_stop(place) < MOST_SECONDS_TO_SHUT_DOWN
    assert not place.hosts()
    place.start()
    run = ended(place, run_id)
    assert (run["status"], run["attempt"], run["progress"]["settled"]) == ("finished", 2, 20)
    told = place.root.get(f"/runs/{run_id}/events")["items"]
    statuses = [event["status"] for event in told if event["kind"] == "status"]
    assert statuses == ["pending", "running", "pending", "running", "finished"]


def test_a_run_that_hears_nothing_does_not_hold_up_the_end_of_its_server(place: Workplace) -> None:
    run_id = start(place, trouble="deaf")
    wait_for_line(place, run_id, "hears nothing")
    assert seconds_to_stop(place) < MOST_SECONDS_TO_SHUT_DOWN
    place.start()
    assert read(place, run_id)["status"] in ("pending", "running")
    place.root.post(f"/runs/{run_id}/stop")


def seconds_to_stop(place: Workplace) -> float:
    began = time.monotonic()
    place.stop()
    return time.monotonic() - began
