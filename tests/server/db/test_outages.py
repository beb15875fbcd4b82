"""A PostgreSQL that goes away and comes back: callers wait, and everything is written once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, RootTransaction, func, insert, select, text

from proctor.server.db import availability
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.commits import LostConnectionError, SingleCommit, mark_commit
from proctor.server.db.database import Database
from proctor.server.db.migrate import migrate
from proctor.server.db.tables import namespaces
from tests.server.postgres import Cluster
from tests.waiting import SECONDS


@pytest.fixture
def database(restartable: Cluster) -> Iterator[Database]:
    made = Database(restartable.fresh())
    migrate(made)
    yield made
    made.availability.stop_waiting()
    made.close()


def add_name(connection: Connection, name: str) -> str:
    connection.execute(insert(namespaces).values(name=name, kind="user"))
    return name


def count_names(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(namespaces)).scalar_one()


def test_callers_wait_for_a_database_that_restarts_and_each_writes_once(
    restartable: Cluster, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        with caplog.at_level(logging.WARNING):
            await database.write(add_name, "before")
            restartable.stop()
            writing = [asyncio.create_task(database.write(add_name, f"name-{each}")) for each in range(40)]
            reading = asyncio.create_task(database.read(count_names))
            await wait_until_away(database)
            assert await database.availability.look() is not None

            restartable.start()

            assert sorted(await asyncio.gather(*writing)) == sorted(f"name-{each}" for each in range(40))
            assert await reading >= 1
        assert await database.read(count_names) == 41
        assert await database.availability.look() is None
        assert [record.exc_info for record in caplog.records] == [None, None]
        assert "does not answer" in caplog.text
        assert "answers again" in caplog.text

    asyncio.run(play())


def test_a_database_that_stays_away_is_waited_for_only_so_long(
    restartable: Cluster, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        monkeypatch.setattr("proctor.server.db.database.PATIENCE_SECONDS", 0.2)
        restartable.stop()
        try:
            with pytest.raises(DatabaseAwayError, match="does not answer"):
                await database.write(add_name, "late")
        finally:
            restartable.start()
        assert await database.read(count_names) == 0

    asyncio.run(play())


def test_a_database_that_is_silent_is_noticed(
    restartable: Cluster, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes are stopped, so that nothing breaks and nothing answers."""

    async def play() -> None:
        monkeypatch.setattr("proctor.server.db.database.SILENT_SECONDS", 0.5)
        monkeypatch.setattr(availability, "SILENT_SECONDS", 0.5)
        await database.write(add_name, "before")
        with restartable.frozen():
            writing = asyncio.create_task(database.write(add_name, "during"))
            await wait_until_away(database)
        await writing
        assert await database.read(count_names) == 2

    asyncio.run(play())


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_that_was_not_acknowledged_is_neither_lost_nor_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    calls: list[str] = []

    def work(connection: Connection) -> str:
        calls.append("called")
        return add_name(connection, "ada")

    def lose(transaction: RootTransaction) -> None:
        """The commit arrives, or does not; its answer never does."""
        monkeypatch.undo()
        connection = transaction.connection
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        if is_committed:
            transaction.commit()
        with database.connect_alone() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        connection.execute(text("SELECT 1"))

    once = SingleCommit(database._writing, work)
    monkeypatch.setattr(RootTransaction, "commit", lose)
    with pytest.raises(LostConnectionError):
        once()

    assert once() == "ada"
    assert database.read_now(count_names) == 1
    assert len(calls) == (1 if is_committed else 2)


def test_a_transaction_that_changes_nothing_leaves_no_mark(database: Database) -> None:
    assert database.write_now(mark_commit) is None


async def wait_until_away(database: Database) -> None:
    async with asyncio.timeout(SECONDS):
        while database.availability.reason is None:
            await asyncio.sleep(0.01)
