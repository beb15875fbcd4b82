"""The host that a server starts itself: whose it is, and what does not end it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text, update

from proctor.errors import ConfigError
from proctor.runner import supervisor
from proctor.runner.host_key import read_host_key
from proctor.server.db.database import Database
from proctor.server.db.tables import runs, tokens, versions
from proctor.server.identity import ID_FILE, server_id
from proctor.server.own_host import FORGOTTEN_SECONDS, OwnHost, create_host_token
from proctor.server.people.tokens import (
    OWN_HOST_SILENT_SECONDS,
    SUPERSEDED_SECONDS,
    bind_host,
    make_token,
    record_token_use,
    resolve_caller,
)
from proctor.server.problems import ApiError
from tests.server.runs import making
from tests.server.serving import Api, Served, settings_in
from tests.waiting import SECONDS

KEY = "k" * 64


def names(database: Database) -> list[str]:
    return list(database.read_now(lambda c: c.execute(select(tokens.c.name)).scalars().all()))


def used(database: Database, secret: str, at: float) -> str:
    """A host that was started long ago and last heard of then."""
    token_id = database.read_now(resolve_caller, secret, KEY).token_id
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
    with pytest.raises(ConfigError, match="server-id does not hold a server's id; remove it"):
        server_id(tmp_path)


def test_a_server_forgets_only_its_own_hosts_and_only_those_that_are_silent(database: Database) -> None:
    long_ago = time.time() - FORGOTTEN_SECONDS - 1
    for server in ("one", "two"):
        used(database, database.write_now(create_host_token, server, KEY), long_ago)
    busy = database.write_now(create_host_token, "two", KEY)
    used(database, busy, time.time())

    database.write_now(create_host_token, "two", KEY)

    assert sorted(names(database)) == ["own-one", "own-two", "own-two"]
    assert database.read_now(resolve_caller, busy, KEY).kind == "host"


def test_tokens_of_earlier_starts_expire_unless_their_host_still_plays_a_run(database: Database) -> None:
    idle, playing = (database.write_now(create_host_token, "one", KEY) for _ in range(2))
    ids = [database.read_now(resolve_caller, each, KEY).token_id for each in (idle, playing)]
    run_id = add_played_run(database, f"machine-1@{ids[1]}")

    newest = database.write_now(create_host_token, "one", KEY)
    later = time.time() + SUPERSEDED_SECONDS
    for token_id in ids:
        database.write_now(record_token_use, token_id, later)  # neither is extended by being used, but one

    callers = [database.read_now(resolve_caller, each, KEY) for each in (idle, playing, newest)]
    ends = [caller.expires_at or 0.0 for caller in callers]
    assert ends[0] <= later
    assert ends[1] == later + OWN_HOST_SILENT_SECONDS
    assert ends[2] > later

    database.write_now(lambda c: c.execute(update(runs).where(runs.c.id == run_id).values(status="finished")))
    database.write_now(record_token_use, ids[1], later + 100)
    assert database.read_now(resolve_caller, playing, KEY).expires_at == later + OWN_HOST_SILENT_SECONDS


def test_hosts_whose_token_has_expired_are_not_listed(served: Served) -> None:
    served.root.post("/hosts", {"name": "big-machine"})
    expire = update(tokens).where(tokens.c.name == "big-machine").values(expires_at=time.time() - 1)
    served.platform.database.write_now(lambda connection: connection.execute(expire))
    assert served.root.get("/hosts")["items"] == []


def add_played_run(database: Database, host: str) -> str:
    def work(connection: Connection) -> str:
        making.user(connection)
        making.environment(connection)
        run_id = making.run(connection)
        connection.execute(update(runs).where(runs.c.id == run_id).values(status="running", host=host))
        return run_id

    return database.write_now(work)


@pytest.mark.parametrize(("started", "status"), [("one", "pending"), ("two", "running")])
def test_a_server_takes_back_only_the_checks_of_its_own_hosts(
    database: Database, started: str, status: str
) -> None:
    database.write_now(making.user)
    database.write_now(making.environment)
    host = database.read_now(resolve_caller, database.write_now(create_host_token, "one", KEY), KEY).token_id
    checking = versions.update().values(check_status="running", check_host=host, check_lease_until=1e12)
    database.write_now(lambda connection: connection.execute(checking))

    database.write_now(create_host_token, started, KEY)

    assert database.read_now(lambda c: c.execute(select(versions.c.check_status)).scalar_one()) == status


def test_no_machine_is_called_as_if_it_were_a_servers_own(served: Served) -> None:
    answer = served.root("POST", "/hosts", {"name": "own-machine"})
    assert (answer.status, answer.body["details"]) == (422, {"field": "name"})
    assert served.root.post("/hosts", {"name": "owner"})["name"] == "owner"


def test_when_a_host_was_last_heard_of_is_told(served: Served) -> None:
    secret = served.root.post("/hosts", {"name": "big-machine"})["token"]
    Api(served.url, secret, KEY)("GET", "/whoami")
    (host,) = served.root.get("/hosts")["items"]
    assert host["last_used_at"] > time.time() - 60


# One token, one host


def test_a_hosts_token_is_no_good_to_another_host(served_on_both: Served) -> None:
    served = served_on_both
    secret = served.root.post("/hosts", {"name": "big-machine"})["token"]
    first, thief = Api(served.url, secret, KEY), Api(served.url, secret, "x" * 64)
    assert first("POST", "/hosts/claims", {"host": "one"}).status == 204

    assert thief("POST", "/hosts/claims", {"host": "one"}).code == "other_host"
    assert Api(served.url, secret)("POST", "/hosts/claims", {"host": "one"}).code == "host_key_missing"
    assert first("POST", "/hosts/claims", {"host": "restarted"}).status == 204


def test_of_two_hosts_that_use_a_token_at_once_one_has_it(database: Database) -> None:
    made = database.write_now(
        lambda c: make_token(c, kind="host", user=None, name="big", scopes=[], expires_at=None)
    )
    database.write_now(bind_host, made.token.id, KEY)
    with pytest.raises(ApiError, match="another host"):
        database.write_now(bind_host, made.token.id, "x" * 64)
    database.write_now(bind_host, made.token.id, KEY)


def test_the_token_of_a_servers_own_host_is_bound_before_it_is_used(database: Database) -> None:
    secret = database.write_now(create_host_token, "one", KEY)
    with pytest.raises(ApiError, match="another host"):
        database.read_now(resolve_caller, secret, "x" * 64)


@pytest.mark.parametrize(("name", "seconds"), [("own-one", 900.0), ("big-machine", 86_400.0)])
def test_a_hosts_token_lives_as_long_as_the_host_is_heard_of(
    database: Database, name: str, seconds: float
) -> None:
    now = time.time()
    made = database.write_now(
        lambda c: make_token(c, kind="host", user=None, name=name, scopes=[], expires_at=now + 60)
    )
    database.write_now(record_token_use, made.token.id, now)
    assert database.read_now(resolve_caller, made.secret, KEY).expires_at == now + seconds
    database.write_now(record_token_use, made.token.id, now - seconds - 1)
    with pytest.raises(ApiError, match="expired"):
        database.read_now(resolve_caller, made.secret, KEY)


def test_a_token_that_no_host_ever_used_expires(served: Served) -> None:
    served.root.post("/hosts", {"name": "big-machine"})
    (host,) = served.root.get("/hosts")["items"]
    assert host["expires_at"] == pytest.approx(time.time() + 86_400, abs=60)


def test_no_host_speaks_for_a_run_of_another(served: Served) -> None:
    database = served.platform.database
    mine, other = (
        Api(served.url, served.root.post("/hosts", {"name": name})["token"], KEY) for name in ("one", "two")
    )
    database.write_now(making.user)
    database.write_now(making.environment)
    run_id = database.write_now(making.run)
    assert mine.post("/hosts/claims", {"host": "one"})["run_id"] == run_id
    where, why = f"/hosts/runs/{run_id}", {"cause": {"code": "crashed", "message": "x"}}

    assert other("POST", f"{where}/heartbeat?host=one&attempt=1", {}).body["lost"] is True
    other.ok("POST", f"{where}/lost?host=one&attempt=1", why)

    assert mine("POST", f"{where}/heartbeat?host=one&attempt=1", {}).body["lost"] is False


def test_a_hosts_key_is_made_once_and_for_nobody_else_to_read(tmp_path: Path) -> None:
    key = read_host_key(tmp_path / "runner")
    assert len(key) == 64
    assert read_host_key(tmp_path / "runner") == key
    assert (tmp_path / "runner" / "host-key").stat().st_mode & 0o777 == 0o600


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
        while "could not start the host" not in caplog.text:
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
        while "could not start the host" not in caplog.text:
            await asyncio.sleep(0.01)
        await host.close()

    asyncio.run(asyncio.wait_for(play(), SECONDS))
