"""Runs for tests of places: a row and a token, as a host would have them, and nobody who plays."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, insert, update

from proctor.api.common import new_id
from proctor.server.db.tables import runs
from proctor.server.people.tokens import make_token
from tests.server.serving import Api, Served

ZEROS = (
    "attempt",
    "crashes",
    "rows_at_crash",
    "last_batch",
    "last_seq",
    "settled",
    "scored",
    "failed",
    "reward_sum",
    "input_tokens",
    "output_tokens",
)


class Run(Api):
    """Requests as one run makes them."""

    def __init__(self, served: Served, run_id: str, token: str) -> None:
        super().__init__(served.url, token)
        self.id = run_id
        self._served = served

    def ends(self) -> None:
        self.change(status="finished")

    def change(self, **values: Any) -> None:
        changed = update(runs).where(runs.c.id == self.id).values(**values)
        self._served.platform.database.write_now(lambda connection: connection.execute(changed))


def a_run(served: Served, *, deadline_at: float | None = None, **permissions: bool) -> Run:
    def work(connection: Connection) -> tuple[str, str]:
        run_id = new_id("run")
        row = {
            **dict.fromkeys(ZEROS, 0),
            "id": run_id,
            "kind": "hosted",
            "name": "",
            "owner": "root",
            "environment": "root/letters",
            "model": "m",
            "settings": {},
            "permissions": permissions,
            "status": "running",
            "metadata": {},
            "created_at": time.time(),
            "deadline_at": deadline_at,
        }
        connection.execute(insert(runs).values(row))
        made = make_token(
            connection,
            kind="run",
            user="root",
            scopes=["inference"],
            expires_at=None,
            run_id=run_id,
            attempt=0,
        )
        return run_id, made.secret

    run_id, token = served.platform.database.write_now(work)
    return Run(served, run_id, token)
