"""A server as an office uses it: an admin, the owner and a member of a team, and a stranger.

`root` is the admin; `lena` owns the environment `lena/sums` and the team `robots`, whose member is `mo`;
`sid` has nothing to do with either. Names that people gave are hostile where they may be.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, update

from proctor.server.db.tables import tokens
from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.server.people.tokens import make_token
from proctor.server.runs import queue
from proctor.trace import Usage
from tests.server.db.filling import REGISTRY
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

HOSTILE = '<img src=x onerror="window.harmed=1">{{7*7}}'
DAY = 86_400.0


class Office(NamedTuple):
    server: Served
    people: dict[str, Api]
    pending: str
    """A run of lena's that waits."""

    @property
    def url(self) -> str:
        return self.server.url

    def play(self, host: str = "gpu-1") -> None:
        """A host takes the run that waits."""
        self.server.platform.database.write_now(take, self.pending, host)
        self.server.platform.loop.call_soon_threadsafe(self.server.platform.reading.feed.wake, self.pending)


@contextmanager
def opened_office(folder: Path) -> Iterator[Office]:
    registry = folder / "endpoints.toml"
    registry.write_text(REGISTRY)
    with serving(settings_in(folder, endpoints=registry, runs_per_user=1)) as server:
        yield fill_office(server)


def fill_office(server: Served) -> Office:
    people = {"root": server.root} | {name: server.user(name) for name in ("lena", "mo", "sid")}
    lena = people["lena"]
    write = server.platform.database.write_now
    lena.post("/teams", {"name": "robots"})
    lena.ok("PUT", "/teams/robots/members", {"user": "mo"})
    write(making.environment, "lena", "sums")
    lena.post("/tokens", {"name": HOSTILE})
    lena.post("/secrets", {"name": "SHARED_KEY", "value": "never-shown-1", "description": HOSTILE})
    lena.post("/environments/lena/sums/variables", {"name": "REGION", "value": HOSTILE})
    server.root.post("/grants", {"owner": "lena", "amount_usd": 20, "note": HOSTILE})
    write(add_calls, list_calls(time.time()))
    pending = write(
        making.run,
        "lena",
        name=HOSTILE,
        environment="lena/sums",
        environment_id="env-lena-sums",
        version_id="ver-lena-sums",
    )
    return Office(server, people, pending)


def list_calls(now: float) -> list[LedgerCall]:
    return [
        LedgerCall(
            id=f"call-{number}",
            at=now - (number % 12) * DAY,
            owner="lena",
            user="lena",
            run_id="run-old" if number % 3 else None,
            model="parrot" if number % 2 else "strong",
            provider="scripted",
            usage=Usage(1000 * number, 200),
            cost=10_000 * number,
        )
        for number in range(1, 25)
    ]


def take(connection: Connection, run_id: str, name: str) -> None:
    now = time.time()
    host = make_token(connection, kind="host", user=None, name=name, scopes=[], expires_at=now + DAY).token.id
    connection.execute(update(tokens).where(tokens.c.id == host).values(last_used_at=now))
    queue.start_attempt(connection, queue.find_run(connection, run_id), f"{name}@{host}", now, DAY)
