"""What was deleted takes no space."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from proctor.server.db import space
from proctor.server.db.database import Database, sqlite_url
from tests.server.serving import Served

MEGABYTE = 2**20


def test_deleting_a_run_gives_its_space_back(served: Served) -> None:
    ada = served.user("ada")
    run_id = ada.post("/uploads", {"client_run_id": "r", "environment": "e", "model": "m"})["id"]
    rows = [
        {
            "example_id": task,
            "rollout": 0,
            "outcome": "scored",
            "reward": 1.0,
            "info": {"noise": os.urandom(100_000).hex()},
        }
        for task in range(40)
    ]
    ada("POST", f"/uploads/{run_id}/reports", data=json.dumps({"batch": 1, "rows": rows}).encode())
    before = occupied(served.platform.data)
    assert before > 4 * MEGABYTE

    ada.ok("DELETE", f"/runs/{run_id}")

    clock = threading.Event()
    for _ in range(500):
        if occupied(served.platform.data) < before - 3 * MEGABYTE:
            return
        clock.wait(0.02)
    raise AssertionError(f"it still takes {occupied(served.platform.data):,} bytes of {before:,}")


def occupied(data: Path) -> int:
    return sum(file.stat().st_size for file in data.glob("proctor.db*"))


def test_a_database_of_an_earlier_version_shrinks_too_unless_rewriting_it_took_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "proctor.db"
    with sqlite3.connect(file) as old:
        old.execute("CREATE TABLE t (x)")
    old.close()
    database = Database(sqlite_url(file))

    monkeypatch.setattr(space, "MOST_CONVERTED_BYTES", 0)
    database.prepare_space()
    assert auto_vacuum(file) == 0
    monkeypatch.undo()
    database.prepare_space()
    assert auto_vacuum(file) == space.INCREMENTAL
    database.close()


def auto_vacuum(file: Path) -> int:
    connection = sqlite3.connect(file)
    try:
        return space.read_pragma(connection, "auto_vacuum")
    finally:
        connection.close()
