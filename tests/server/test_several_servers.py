"""Two servers on one PostgreSQL: what is done through one is seen, counted and refused at the other."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection, func, select, update

from proctor.api.common import BASE
from proctor.errors import ConfigError
from proctor.server.db import database as database_module
from proctor.server.db import leases
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import OLDEST_RELEASE, migrate
from proctor.server.db.tables import runs, server_settings, users
from proctor.server.platform import Platform
from proctor.server.registry import check_clock
from proctor.server.runs import queue
from proctor.server.runs.event_log import append_events, build_log_event
from proctor.server.secrets.vault import KEY_FILE_VARIABLE, new_key
from proctor.server.server import create_http_server, open_server
from tests.ports import free_port
from tests.server.empty_database import create_postgres, write_sqlite
from tests.server.postgres import Cluster
from tests.server.runs import making
from tests.server.serving import (
    Api,
    app_for,
    run_in_thread,
    serving_two,
    settings_in,
)
from tests.waiting import wait_for

PROMPT_SECONDS = 1.0
LATEST_SECONDS = 60.0


class Listener(threading.Thread):
    """The events of a stream, with the moment at which each came."""

    def __init__(self, api: Api, path: str) -> None:
        super().__init__(daemon=True)
        where = urlsplit(api.url)
        self.connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=LATEST_SECONDS)
        self.connection.request("GET", BASE + path, headers={"authorization": f"Bearer {api.token}"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.events: list[tuple[float, Any]] = []
        self.news = threading.Condition()
        self.start()

    def run(self) -> None:
        with closing(self.connection):
            for line in self.response:
                if line.startswith(b"data: "):
                    with self.news:
                        self.events.append((time.monotonic(), json.loads(line[6:])))
                        self.news.notify_all()

    def wait_for(self, **fields: Any) -> float:
        """When an event with these fields came."""
        wanted = fields.items()

        def find() -> float | None:
            return next((at for at, event in self.events if wanted <= event.items()), None)

        with self.news:
            assert self.news.wait_for(find, LATEST_SECONDS), (fields, self.events)
            return find() or 0.0


def start_run(connection: Connection) -> str:
    run_id = making.run(connection)
    queue.start_attempt(connection, queue.find_run(connection, run_id), "host", time.time(), 1e6)
    return run_id


def say(connection: Connection, run_id: str, text: str) -> None:
    append_events(connection, run_id, [build_log_event(text, at=time.time())])


def test_what_changes_through_one_server_reaches_followers_of_the_other_also_after_an_outage(
    tmp_path: Path, restartable: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_two(tmp_path, create_postgres(restartable), monkeypatch) as (one, other):
        one.user("ada")
        one.platform.database.write_now(making.environment)
        run_id = one.platform.database.write_now(start_run)
        elsewhere = Api(other.url, one.root.token)
        follower = Listener(elsewhere, f"/runs/{run_id}/events/stream")
        feed = Listener(elsewhere, "/feed")

        def speak(text: str) -> None:
            one.call(one.platform.runs.change, lambda connection, id_: say(connection, id_, text), run_id)

        def change_dataset() -> None:
            push = {"visibility": "public"}
            one.root.ok("PATCH", "/datasets/root/numbers", push)

        rows = b'{"question": "1"}\n'
        sha256 = hashlib.sha256(rows).hexdigest()
        pushed = one.root("PUT", f"/datasets/root/numbers/versions/{sha256}?format=jsonl&rows=1", data=rows)
        assert pushed.status == 201, pushed
        feed.wait_for(kind="dataset", dataset="root/numbers")
        assert elsewhere("GET", f"/datasets/root/numbers/versions/{sha256}/content").status == 200

        for text in ("before", "after"):
            began = time.monotonic()
            speak(text)
            assert follower.wait_for(kind="log", text=text) - began < PROMPT_SECONDS
            feed.events.clear()
            began = time.monotonic()
            change_dataset()
            assert feed.wait_for(kind="dataset", dataset="root/numbers") - began < PROMPT_SECONDS
            if text == "before":
                restartable.stop()
                restartable.start()
                deadline = time.monotonic() + LATEST_SECONDS
                while not (one.platform.notifier.is_listening and other.platform.notifier.is_listening):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)

        eve = Listener(Api(other.url, one.user("eve").token), "/feed")
        one.root.ok("PATCH", "/users/eve?disabled=true")
        eve.join(PROMPT_SECONDS)
        assert not eve.is_alive(), "a user who was disabled at one server follows the other"


def test_a_request_sent_to_both_servers_at_once_creates_one_thing(
    tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serving_two(tmp_path, create_postgres(postgres), monkeypatch) as servers,
        ThreadPoolExecutor(8) as pool,
    ):
        token = servers[0].root.token
        apis = [Api(server.url, token) for server in servers] * 4
        for number in range(3):
            body, headers = {"name": f"team-{number}"}, {"idempotency-key": f"key-{number}"}
            asked = [pool.submit(api, "POST", "/teams", body, headers=headers) for api in apis]
            answers = [each.result() for each in asked]
            assert {answer.status for answer in answers} == {201}, answers
            assert len({json.dumps(answer.body, sort_keys=True) for answer in answers}) == 1
        assert len(servers[1].root.get("/teams")["items"]) == 3


def test_every_run_is_claimed_once_however_many_servers_are_asked(postgres: Cluster) -> None:
    url = create_postgres(postgres)
    databases = [Database(url), Database(url)]
    owners = ("ada", "bob", "eve")

    def prepare(connection: Connection) -> None:
        for name in owners:
            making.user(connection, name)
        making.environment(connection)
        for number in range(30):
            making.run(connection, owners[number % 3], now=float(number))

    databases[0].write_now(prepare)

    def claim_all(number: int) -> list[tuple[str, str]]:
        claimed, empty = [], 0
        while empty < 3:
            database = databases[number % 2]
            row = database.write_now(queue.claim_run, f"host-{number}", time.time(), 60.0, 5)
            claimed += [] if row is None else [(row.id, row.owner)]
            empty = empty + 1 if row is None else 0
        return claimed

    with ThreadPoolExecutor(8) as pool:
        claimed = [each for found in pool.map(claim_all, range(8)) for each in found]
    assert len({run_id for run_id, _ in claimed}) == len(claimed)
    assert Counter(owner for _, owner in claimed) == dict.fromkeys(owners, 5)  # the most of each at once
    attempts = databases[1].read_now(lambda connection: connection.execute(select(func.max(runs.c.attempt))))
    assert attempts.scalar_one() == 1
    for database in databases:
        database.close()


def test_a_server_that_was_paused_finds_its_lease_taken_and_changes_nothing(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "IDLE_MILLISECONDS", 300)
    url = create_postgres(postgres)
    one, other = Database(url), Database(url)
    names: list[str] = []

    def work(connection: Connection, server: str) -> str | None:
        if leases.hold(connection, "work", server, 0.1) is None:
            return None
        making.user(connection, server)
        if server == "one" and not names:  # the first time, it is paused here
            names.append(server)
            deadline = time.monotonic() + LATEST_SECONDS
            while other.write_now(work, "other") is None:
                assert time.monotonic() < deadline
            other.write_now(leases.hold, "work", "other", 60.0)
        return server

    async def play() -> str | None:
        return await one.write(work, "one")

    assert asyncio.run(play()) is None
    assert one.read_now(lambda connection: connection.execute(select(users.c.name)).scalars().all()) == [
        "other"
    ]

    # Work that is longer than a transaction shows its term at the end.
    lease = one.write_now(leases.hold, "sync", "one", 2.0)
    assert lease is not None
    assert one.write_now(leases.is_held, lease)
    wait_for(lambda: other.write_now(leases.hold, "sync", "other", 60.0))
    assert not one.write_now(leases.is_held, lease)
    assert one.write_now(leases.ask_holder, "sync")
    assert one.write_now(leases.release, lease) is False
    for database in (one, other):
        database.close()


@pytest.fixture
def closing_time() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def close(platform: Platform) -> None:
    asyncio.run(platform.close())


def test_servers_that_do_not_belong_together_are_refused_in_one_sentence(
    tmp_path: Path, postgres: Cluster, closing_time: ExitStack
) -> None:
    url = create_postgres(postgres)
    settings = settings_in(tmp_path / "a", database=url, port=1)
    first = Platform(settings)
    closing_time.callback(close, first)
    with pytest.raises(ConfigError, match=r"secret\.key is missing, but the database has secrets"):
        Platform(settings_in(tmp_path / "b", database=url, port=1))
    (tmp_path / "c" / "data").mkdir(parents=True)
    (tmp_path / "c" / "data" / "secret.key").write_bytes(new_key())
    with pytest.raises(ConfigError, match="sealed with another key"):
        Platform(settings_in(tmp_path / "c", database=url, port=1))
    with pytest.raises(ConfigError, match="clock is 60 s ahead of the database's"):
        check_clock(first.database, time.time() + 60)

    file = tmp_path / "shared" / "proctor.db"
    write_sqlite(file)
    alone = Platform(settings_in(tmp_path / "d", database=sqlite_url(file), port=1))
    closing_time.callback(close, alone)
    with pytest.raises(ConfigError, match=r"already uses .*shared; stop it"):
        Platform(settings_in(tmp_path / "e", database=sqlite_url(file), port=1))


def test_two_servers_that_start_at_once_on_an_empty_database_migrate_it_once(
    tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = postgres.fresh(), tmp_path / "shared.key"
    key.write_bytes(new_key())
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(key))
    with ThreadPoolExecutor(2) as pool:
        settings = [settings_in(tmp_path / name, database=url, port=1) for name in "ab"]
        opened = list(pool.map(open_server, settings))
    assert sorted(each.first_token is None for each in opened) == [False, True]
    for each in opened:
        close(each.platform)


def test_an_older_server_goes_on_beside_a_newer_one_unless_the_schema_forbids_it(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "proctor.db"))
    migrate(database)

    def pretend(connection: Connection, oldest: str) -> None:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9998'")
        named = server_settings.c.name == OLDEST_RELEASE
        connection.execute(update(server_settings).where(named).values(value=oldest))

    database.write_now(pretend, "0017")
    migrate(database)
    database.write_now(pretend, "9998")
    with pytest.raises(ConfigError, match="belongs to a newer version of Proctor: its schema 9998 serves"):
        migrate(database)
    database.close()


def test_a_server_that_ends_loses_no_request_of_a_load_balancer(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, port=free_port(), drain_seconds=1.5)
    write_sqlite(settings.data / "proctor.db")
    opened = open_server(settings)
    answers: list[tuple[int, str]] = []

    def ask_on() -> None:
        """As a load balancer does: on a connection that is kept, until it is told to go elsewhere."""
        connection = http.client.HTTPConnection("127.0.0.1", settings.port, timeout=LATEST_SECONDS)
        while True:
            connection.request("GET", f"{BASE}/ready")
            response = connection.getresponse()
            response.read()
            answers.append((response.status, response.headers.get("connection", "")))
            if response.status == 503:
                return

    with app_for(opened.platform) as app, ThreadPoolExecutor(2) as pool:
        running = contextmanager(run_in_thread)(opened.platform, create_http_server(opened.platform, app))
        with running:
            asked = [pool.submit(ask_on) for _ in range(2)]
            while not answers:
                time.sleep(0.01)
        for each in asked:
            each.result()
    assert {status for status, _ in answers} == {200, 503}
    assert {told for status, told in answers if status == 503} == {"close"}
