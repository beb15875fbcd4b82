"""What a server forgets in time, and what it keeps."""

from __future__ import annotations

import time

from sqlalchemy import select

from proctor.api.people import NewUser
from proctor.server.db.database import Database
from proctor.server.db.tables import creations, tokens
from proctor.server.housekeeping import DAY, delete_expired
from proctor.server.people.records import add_user
from proctor.server.people.tokens import make_token


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
