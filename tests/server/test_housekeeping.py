"""What a server forgets in time, and what it keeps."""

from __future__ import annotations

import time

from sqlalchemy import select, update

from proctor.api.people import NewUser
from proctor.server.db.database import Database
from proctor.server.db.tables import creations, servers, tokens
from proctor.server.housekeeping import DAY, clean_up_alone, delete_expired
from proctor.server.people.records import add_user
from proctor.server.people.tokens import make_token
from proctor.server.registry import enter, has_other_release


def test_old_creates_and_dead_tokens_are_forgotten_and_nothing_else(database: Database) -> None:
    now = time.time()
    database.write_now(add_user, NewUser(name="ada"))
    for name, expires_at in (("dead", now - 40 * DAY), ("expired", now - 2 * DAY), ("alive", None)):
        database.write_now(make_token, user="ada", name=name, scopes=[], expires_at=expires_at)
    kept = {"response": b""}
    rows = [
        {"caller": "ada", "key": key, "at": at, **kept} for key, at in (("old", now - 8 * DAY), ("new", now))
    ]
    database.write_now(lambda connection: connection.execute(creations.insert(), rows))

    database.write_now(delete_expired, now)

    assert set(database.read_now(lambda c: c.execute(select(tokens.c.name)).scalars())) == {
        "expired",
        "alive",
    }
    assert database.read_now(lambda c: c.execute(select(creations.c.key)).scalars().all()) == ["new"]


def test_one_of_several_servers_cleans_up(database: Database) -> None:
    first = database.write_now(clean_up_alone, "server-1", time.time())
    second = database.write_now(clean_up_alone, "server-2", time.time())
    again = database.write_now(clean_up_alone, "server-1", time.time())

    assert (first, second, again) == (True, database.is_sqlite, True)


def test_nothing_is_moved_while_a_server_of_another_release_is_there(database: Database) -> None:
    database.write_now(enter, "new", "folder-1", "http://127.0.0.1:1")
    alone = database.read_now(has_other_release)
    database.write_now(enter, "old", "folder-2", "http://127.0.0.1:2")
    of_old = servers.c.id == "old"

    def become(**values: object) -> bool:
        database.write_now(
            lambda connection: connection.execute(update(servers).where(of_old).values(values))
        )
        return database.read_now(has_other_release)

    assert (alone, become(version="0.0.1"), become(seen_at=0.0)) == (False, True, False)
