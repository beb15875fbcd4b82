"""Rows for tests of what costs money: a user with an account, and runs of theirs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from proctor.api.people import NewUser
from proctor.server.db.tables import runs
from proctor.server.people.records import add_user

START = 1_000
"""What ada has."""


def add_run(connection: Connection, run_id: str, **changes: Any) -> None:
    row: dict[str, Any] = {
        "id": run_id,
        "kind": "hosted",
        "name": "",
        "owner": "ada",
        "environment": "ada/sums",
        "model": "m",
        "settings": {},
        "permissions": {},
        "status": "running",
        "metadata": {},
        "created_at": 1.0,
    }
    zeros = ("attempt", "crashes", "rows_at_crash", "last_batch", "last_seq", "settled", "scored", "failed")
    row |= dict.fromkeys((*zeros, "reward_sum", "input_tokens", "output_tokens"), 0) | changes
    connection.execute(insert(runs).values(row))


def set_up(connection: Connection) -> None:
    add_user(connection, NewUser(name="ada"), START)
    for name in ("run-a", "run-b", "run-c"):
        add_run(connection, name)
