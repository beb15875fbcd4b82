"""A PostgreSQL that crashes and comes back in the middle of a hosted run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.server.postgres import cluster
from tests.server.serving import Api
from tests.server.workplace import workplace
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.slow]

ROLLOUTS = 60
AWAY_SECONDS = 5.0
PRICE = {"input_usd_per_million": 1.0, "output_usd_per_million": 1.0}


def test_a_database_that_goes_away_for_five_seconds_costs_a_run_no_rollout_and_no_money(
    tmp_path: Path,
) -> None:
    with (
        cluster() as postgres,
        workplace(tmp_path / "w", "--database", postgres.fresh(), "--default-balance", "5") as place,
    ):
        place.root.ok("PUT", "/prices/slow-parrot", PRICE)
        ada = place.person("ada")
        ada.write_environment()
        ada.ok("env", "push", "sums")
        asked = ("eval", "run", "ada/sums", "--hosted", "-m", "slow-parrot", "-n", "-1", "-r", "1", "-c", "6")
        words = (*asked, "-a", f'{{"tasks": {ROLLOUTS}}}', "--json")
        run_id = ada.ok(*words).json["runs"][0]["id"]
        wait_for(lambda: place.root.get(f"/runs/{run_id}")["progress"]["settled"] >= 6)
        before = len(place.log.read_text().splitlines())

        postgres.stop()
        away = wait_for(lambda: unavailable(place.url))
        time.sleep(AWAY_SECONDS)
        postgres.start()

        assert "does not answer" in away["reason"]
        wait_for(lambda: Api(place.url)("GET", "/ready").status == 200)
        assert ada("eval", "wait", run_id, "--timeout", "60").code == 0
        run = place.root.get(f"/runs/{run_id}")
        assert (run["status"], run["progress"]["scored"], run["progress"]["failed"]) == ("finished", 60, 0)
        (used,) = place.root.get(f"/usage?run={run_id}")["items"]
        wallet = place.root.get("/balance?owner=ada")
        assert used["requests"] == ROLLOUTS
        assert used["cost_usd"] == run["cost_usd"] == pytest.approx(wallet["spent_usd"])
        assert wallet["balance_usd"] == pytest.approx(5 - wallet["spent_usd"])
        assert wallet["available_usd"] == pytest.approx(wallet["balance_usd"])
        said = [line for line in place.log.read_text().splitlines()[before:] if "database" in line]
        assert ["does not answer" in line for line in said] == [True, False], said
        assert "Traceback" not in place.log.read_text()


def unavailable(url: str) -> dict[str, str] | None:
    answer = Api(url)("GET", "/ready")
    return dict(answer.body) if answer.status == 503 else None
