"""Calls to models while the database is away: answered late, and booked once."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from proctor.server.db.tables import calls, reservations
from proctor.server.gateway.meter import UsageMeter
from tests.server.gateway.provider import COST, Provider
from tests.server.gateway.test_gateway import ASKED
from tests.server.gateway.test_limits_of_money import PATH, rich, rows
from tests.server.postgres import Cluster
from tests.server.serving import Served, serving, settings_in
from tests.waiting import SECONDS, wait_for

CALLS = 60


def test_sixty_calls_outlast_a_database_that_restarts_and_each_is_paid_once(
    tmp_path: Path,
    registry: Path,
    provider: Provider,
    restartable: Cluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = restartable.fresh()
    with (
        caplog.at_level(logging.WARNING),
        serving(settings_in(tmp_path, endpoints=registry, database=database)) as served,
        ThreadPoolExecutor(6) as pool,
    ):
        ada = rich(served, "ada", 5)
        asked = [pool.submit(ada, "POST", PATH, ASKED) for _ in range(CALLS)]
        wait_for(lambda: sum(each.done() for each in asked) >= 6)

        restartable.stop()
        wait_for(lambda: served.nobody("GET", "/ready").status == 503)
        away = served.nobody("GET", "/ready")
        restartable.start()

        assert {each.result().status for each in asked} == {200}
        assert away.body["status"] == "unavailable"
        assert "database does not answer" in away.body["reason"]
        assert str(restartable.folder) not in str(away.body)
        assert served.nobody("GET", "/ready").status == 200
        booked = rows(served, calls)
        assert len(booked) == CALLS
        assert ada.get("/balance")["balance_usd"] == pytest.approx(5 - CALLS * COST)
        wait_for(lambda: not rows(served, reservations))
        assert [record.exc_info for record in caplog.records] == [None, None]


def test_a_call_that_was_answered_is_booked_even_if_the_database_stays_away_for_longer_than_its_caller_waits(
    tmp_path: Path,
    registry: Path,
    provider: Provider,
    restartable: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_answered, is_away = threading.Event(), threading.Event()
    book = UsageMeter.book

    async def book_once_away(meter: UsageMeter, call: object) -> None:
        is_answered.set()
        while not is_away.is_set():
            await asyncio.sleep(0.01)
        await book(meter, call)  # type: ignore[arg-type]

    monkeypatch.setattr(UsageMeter, "book", book_once_away)
    monkeypatch.setattr("proctor.server.db.database.PATIENCE_SECONDS", 0.3)
    database = restartable.fresh()
    with (
        serving(settings_in(tmp_path, endpoints=registry, database=database)) as served,
        ThreadPoolExecutor(1) as pool,
    ):
        ada = rich(served, "ada", 5)
        asked = pool.submit(ada, "POST", PATH, ASKED)
        assert is_answered.wait(SECONDS)
        restartable.stop()
        is_away.set()
        refused = asked.result()
        restartable.start()

        assert (refused.status, refused.body["error"]["code"]) == (503, "database_away")
        wait_for(lambda: rows_or_none(served))
        assert ada.get("/balance")["balance_usd"] == pytest.approx(5 - COST)


def rows_or_none(served: Served) -> list[object] | None:
    try:
        return rows(served, calls)
    except OperationalError:  # it is starting
        return None
