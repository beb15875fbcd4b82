"""The host that a server starts itself: whose it is, and what does not end it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from sqlalchemy import select, text

from proctor.errors import ConfigError
from proctor.hosting import supervisor
from proctor.platform.db.database import Database
from proctor.platform.db.tables import tokens, versions
from proctor.platform.identity import ID_FILE, server_id
from proctor.platform.own_host import FORGOTTEN_SECONDS, OwnHost, host_token
from proctor.platform.people.tokens import caller_of
from tests.platform.runs import making
from tests.platform.serving import SECONDS, Served, settings_in


def names(database: Database) -> list[str]:
    return list(database.read_now(lambda c: c.execute(select(tokens.c.name)).scalars().all()))


def used(database: Database, secret: str, at: float) -> str:
    """A host that was started long ago and last heard of then."""
    token_id = database.read_now(caller_of, secret).token_id
    change = tokens.update().where(tokens.c.id == token_id).values(created_at=1.0, last_used_at=at)
    database.write_now(lambda connection: connection.execute(change))
    return token_id


def test_a_server_keeps_its_id(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made = server_id(tmp_path)
    assert server_id(tmp_path) == made
    assert server_id(tmp_path / "other") != made


def test_a_file_that_holds_no_id_is_named(tmp_path: Path) -> None:
    (tmp_path / ID_FILE).write_text("")
    with pytest.raises(ConfigError, match="server-id holds no id of a server; remove it"):
        server_id(tmp_path)


def test_a_server_forgets_only_its_own_hosts_and_only_those_that_are_silent(database: Database) -> None:
    long_ago = time.time() - FORGOTTEN_SECONDS - 1
    for server in ("one", "two"):
        used(database, database.write_now(host_token, server), long_ago)
    busy = database.write_now(host_token, "two")
    used(database, busy, time.time())

    database.write_now(host_token, "two")

    assert sorted(names(database)) == ["own-one", "own-two", "own-two"]
    assert database.read_now(caller_of, busy).kind == "host"


@pytest.mark.parametrize(("started", "status"), [("one", "pending"), ("two", "running")])
def test_a_server_takes_back_only_the_checks_of_its_own_hosts(
    database: Database, started: str, status: str
) -> None:
    database.write_now(making.user)
    database.write_now(making.environment)
    host = database.read_now(caller_of, database.write_now(host_token, "one")).token_id
    checking = versions.update().values(check_status="running", check_host=host, check_lease_until=1e12)
    database.write_now(lambda connection: connection.execute(checking))

    database.write_now(host_token, started)

    assert database.read_now(lambda c: c.execute(select(versions.c.check_status)).scalar_one()) == status


def test_no_machine_is_called_as_if_it_were_a_servers_own(served: Served) -> None:
    answer = served.root("POST", "/hosts", {"name": "own-machine"})
    assert (answer.status, answer.body["details"]) == (422, {"field": "name"})
    assert served.root.post("/hosts", {"name": "owner"})["name"] == "owner"


def test_when_a_host_was_last_heard_of_is_told(served: Served) -> None:
    secret = served.root.post("/hosts", {"name": "big-machine"})["token"]
    served.nobody("GET", "/whoami", headers={"authorization": f"Bearer {secret}"})
    (host,) = served.root.get("/hosts")["items"]
    assert host["last_used_at"] > time.time() - 60


def rename(database: Database, old: str, new: str) -> None:
    database.write_now(lambda connection: connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}")))


def test_a_database_that_is_away_for_a_moment_does_not_leave_a_server_without_a_host(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_SECONDS", 0.01)

    async def play() -> None:
        host = OwnHost(settings_in(tmp_path, runs_at_once=1), database, "one")
        rename(database, "tokens", "away")
        host.start()
        while "could not be started" not in caplog.text:
            await asyncio.sleep(0.01)
        rename(database, "away", "tokens")
        while host.supervisor.process is None:
            await asyncio.sleep(0.01)
        await host.close()
        assert host.supervisor.process.returncode is not None

    asyncio.run(asyncio.wait_for(play(), SECONDS))


def test_a_server_ends_though_its_host_could_never_be_started(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        host = OwnHost(settings_in(tmp_path, runs_at_once=1), database, "one")
        rename(database, "tokens", "away")
        host.start()
        while "could not be started" not in caplog.text:
            await asyncio.sleep(0.01)
        await host.close()

    asyncio.run(asyncio.wait_for(play(), SECONDS))
