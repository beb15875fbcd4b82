"""Whoever loses a right loses what they have open by it, whichever process took the right away."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from typing import Any

import pytest
from sqlalchemy import Connection, delete, update

from proctor.api.people import Member
from proctor.server.db.tables import members, tokens, users
from proctor.server.people.records import put_member
from proctor.server.problems import NotFoundError
from proctor.server.requests import caller_from_token
from proctor.server.runs import routes
from tests.server.runs import making
from tests.server.serving import Api, Served
from tests.waiting import SECONDS


class Following(threading.Thread):
    """Somebody who reads a run's stream until it ends."""

    def __init__(self, api: Api, run_id: str) -> None:
        super().__init__(daemon=True)
        self.request = urllib.request.Request(api.address(f"/runs/{run_id}/events/stream"))
        self.request.add_header("authorization", f"Bearer {api.token}")
        self.begun = threading.Event()
        self.start()
        assert self.begun.wait(SECONDS)

    def run(self) -> None:
        with urllib.request.urlopen(self.request, timeout=SECONDS) as stream:
            stream.readline()
            self.begun.set()
            self.rest = stream.read()


def team_run(connection: Connection) -> str:
    """A run of ada's team that waits; bob is in the team."""
    making.environment(connection)
    put_member(connection, "lab", Member(user="bob"))
    return making.run(connection, team="lab")


@pytest.mark.parametrize(
    "change",
    [
        update(users).where(users.c.name == "bob").values(disabled_at=1.0),
        update(tokens).where(tokens.c.user == "bob").values(revoked_at=1.0),
        update(tokens).where(tokens.c.user == "bob").values(expires_at=1.0),
        delete(tokens).where(tokens.c.user == "bob"),
        delete(members).where(members.c.user == "bob"),
    ],
    ids=["disabled", "revoked", "expired", "deleted", "left the team"],
)
def test_a_stream_ends_that_its_reader_may_no_longer_read(served_on_both: Served, change: Any) -> None:
    served = served_on_both
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    run_id = served.platform.database.write_now(team_run)
    bobs, adas = Following(bob, run_id), Following(ada, run_id)

    # As another server on the same database would: this one is not told.
    served.platform.database.write_now(lambda connection: connection.execute(change))

    bobs.join(SECONDS)
    assert not bobs.is_alive()
    assert b"event: end" not in bobs.rest
    assert adas.is_alive()
    ada.post(f"/runs/{run_id}/stop", {})
    adas.join(SECONDS)
    assert b"event: end" in adas.rest


@pytest.mark.parametrize("role", ["", "read"], ids=["removed", "only read"])
def test_a_stream_ends_for_who_loses_the_role_that_showed_the_run(served_on_both: Served, role: str) -> None:
    served = served_on_both
    ada, bob = served.user("ada"), served.user("bob")

    def make_run(connection: Connection) -> str:
        making.environment(connection)
        return making.run(connection)

    run_id = served.platform.database.write_now(make_run)
    ada.ok("PUT", "/environments/ada/sums/collaborators", {"name": "bob", "role": "write"})
    bobs = Following(bob, run_id)

    if role:
        ada.ok("PUT", "/environments/ada/sums/collaborators", {"name": "bob", "role": role})
    else:
        ada.ok("DELETE", "/environments/ada/sums/collaborators/bob")

    bobs.join(SECONDS)
    assert not bobs.is_alive()
    assert b"event: end" not in bobs.rest


def test_a_stream_goes_on_for_who_changes_teams_without_losing_the_right(served: Served) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    run_id = served.platform.database.write_now(team_run)
    bobs = Following(bob, run_id)

    bob.post("/teams", {"name": "other"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob", "role": "admin"})
    ada.post(f"/runs/{run_id}/stop", {})

    bobs.join(SECONDS)
    assert b"event: end" in bobs.rest


def test_a_download_breaks_off_that_its_reader_may_no_longer_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "ROWS_AT_ONCE", 1)
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob", "role": "member"})
    described = {"client_run_id": "r", "environment": "e", "model": "m", "name": "n", "team": "lab"}
    run_id = ada.post("/uploads", described)["id"]
    rows = [{"example_id": task, "rollout": 0, "outcome": "scored", "reward": 1.0} for task in range(3)]
    ada.post(f"/uploads/{run_id}/reports", {"batch": 1, "rows": rows})
    platform = served.platform
    left = delete(members).where(members.c.user == "bob")

    async def download() -> bytes:
        caller = await caller_from_token(platform, bob.token)
        pieces = routes.rows_while_allowed(platform, caller, run_id)
        first = await anext(pieces)
        await platform.database.write(lambda connection: connection.execute(left))
        while platform.watch._open:
            await asyncio.sleep(0.02)
        with pytest.raises(NotFoundError):
            await anext(pieces)
        return first

    assert served.call(download).count(b"\n") == 1
    assert ada("GET", f"/runs/{run_id}/results.jsonl").body.count("\n") == 3
