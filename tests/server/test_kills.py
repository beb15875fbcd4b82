"""Whatever is killed, and whenever: no finished rollout is lost or doubled, no run is stuck, no charge is
doubled, and nothing is left behind."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.server.db.database import Database, sqlite_url
from tests.server.killing import Killer, Poller, need_true_books, need_whole, providing
from tests.server.postgres import Cluster
from tests.server.serving import Api
from tests.server.workplace import Workplace, workplace
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")

log = logging.getLogger(__name__)
SEED = 5
TASKS = 40
MOST_SECONDS = 120.0
"""For one run to end once nobody is killed any more."""
WORDS = ("--lease-seconds", "2", "--most-crashes", "1000")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """For temporary files of hosts alone; short, since sockets are among them."""
    with tempfile.TemporaryDirectory(prefix="pk-") as folder:
        yield Path(folder)


def play_and_kill(folder: Path, temporary: Path, database_url: str | None, kills: int, seed: int) -> None:
    words = (*WORDS, "--database", database_url) if database_url else WORDS
    environ = {"TMPDIR": str(temporary), "PROVIDER_KEY": "k"}
    began = time.monotonic()
    with (
        providing(delay_seconds=0.2) as provider,
        workplace(folder, *words, environ=environ, models=provider.models) as place,
    ):
        place.root.post("/grants", {"owner": "root", "amount_usd": 1000.0})  # so that money is set aside
        ada = place.person("ada")
        ada.write_environment()
        ada.ok("env", "push", "sums", "--wait")
        killer = Killer(place, seed)
        owner = place.root
        left, attempts, played = kills, 0, 0
        while left > 0 or not played:
            poller = start_run(place, owner)
            while left > 0 and not poller.ended.is_set():
                left -= killer.strike(poller)
            assert poller.ended.wait(MOST_SECONDS), place.root.get(f"/runs/{poller.run_id}")
            need_whole(place, poller, TASKS)
            attempts += place.root.get(f"/runs/{poller.run_id}")["attempt"]
            played += 1
        database = Database(database_url or sqlite_url(place.data / "proctor.db"))
        try:
            need_true_books(database, provider, "root")
        finally:
            database.close()
        need_nothing_left(place, temporary)
        took = time.monotonic() - began
        log.info(
            "seed %d: kills %s, %d runs of %d rollouts in %d attempts, %d answers, %.0f s",
            *(seed, dict(killer.killed), played, TASKS, attempts, provider.given, took),
        )


def start_run(place: Workplace, api: Api) -> Poller:
    asked = {
        "environment": "ada/sums",
        "model": "priced",
        "settings": {
            "num_examples": -1,
            "rollouts_per_example": 1,
            "max_concurrent": 4,
            "env_args": {"tasks": TASKS},
        },
        "max_cost_usd": 10.0,
    }
    return Poller(api, api.post("/runs", asked)["id"])


def need_nothing_left(place: Workplace, temporary: Path) -> None:
    """The next host removes what those before it left; the last one leaves nothing."""
    place.stop()
    place.start()
    work = place.data / "host" / "work"
    wait_for(lambda: not list(work.iterdir()) and len(place.hosts()) == 1)
    place.stop()
    wait_for(lambda: not place.hosts())
    assert list(temporary.iterdir()) == []


def test_a_few_kills_lose_and_double_nothing(tmp_path: Path, temporary: Path) -> None:
    play_and_kill(tmp_path / "w", temporary, None, kills=3, seed=SEED)


@pytest.mark.slow
def test_a_hundred_kills_lose_and_double_nothing(tmp_path: Path, temporary: Path) -> None:
    play_and_kill(tmp_path / "w", temporary, None, kills=100, seed=SEED)


@pytest.mark.slow
def test_twenty_kills_on_postgresql_lose_and_double_nothing(
    tmp_path: Path, temporary: Path, postgres: Cluster
) -> None:
    play_and_kill(tmp_path / "w", temporary, postgres.fresh(), kills=20, seed=SEED)
