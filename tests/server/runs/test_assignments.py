"""From a pending run to an order: one that cannot be ordered keeps no other waiting."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from proctor.server.db.database import Database
from proctor.server.db.tables import run_secrets
from proctor.server.runs import assignments, queue
from proctor.server.secrets.vault import open_vault
from proctor.server.settings import Settings
from tests.server.runs import making


def test_a_run_whose_secret_cannot_be_opened_fails_alone(database: Database, tmp_path: Path) -> None:
    def make(connection: Connection) -> tuple[str, str]:
        making.user(connection)
        making.environment(connection)
        bad, good = making.run(connection, now=1.0), making.run(connection, now=2.0)
        connection.execute(run_secrets.insert().values(run_id=bad, name="KEY", sealed=b"damaged"))
        return bad, good

    bad, good = database.write_now(make)
    vault, settings = open_vault(tmp_path, {}), Settings(data=tmp_path)
    assert database.write_now(assignments.claim_assignment, vault, settings, "h1") is None
    order = database.write_now(assignments.claim_assignment, vault, settings, "h1")
    assert order is not None
    assert order.run_id == good
    row = database.read_now(queue.find_run, bad)
    assert (row.status, row.cause["code"]) == ("failed", "internal")
