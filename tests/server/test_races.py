"""Two requests at the same moment, on PostgreSQL: each sees what the other did, or waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from proctor.api.datasets import NewDatasetUpload
from proctor.server.datasets.uploads import add_upload
from proctor.server.db.database import Database
from proctor.server.db.tables import members
from proctor.server.people.records import remove_member
from proctor.server.people.tokens import find_user_caller
from proctor.server.problems import ApiError
from proctor.server.settings import Quotas
from tests.server.postgres import Cluster
from tests.server.serving import Served, serving, settings_in
from tests.waiting import SECONDS, wait_for

WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
MEGABYTE = 2**20
Work = Callable[[Connection], object]


@pytest.fixture
def served(tmp_path: Path, postgres: Cluster) -> Iterator[Served]:
    with serving(settings_in(tmp_path, database=postgres.fresh())) as server:
        yield server


def run_both(
    database: Database, first: Callable[[Connection], Any], second: Callable[[Connection], Any]
) -> Any:
    """Begin one transaction, then another, and end the first once the second has ended or waits for it."""
    begun, may_end = threading.Event(), threading.Event()

    def held(connection: Connection) -> None:
        first(connection)
        begun.set()
        assert may_end.wait(SECONDS)

    def has_met(other: Future[Any]) -> bool:
        return other.done() or bool(database.read_now(lambda reader: reader.execute(WAITING).scalar_one()))

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(database.write_now, held)
        assert begun.wait(SECONDS)
        other = threads.submit(database.write_now, second)
        try:
            wait_for(lambda: has_met(other))
        finally:
            may_end.set()
        one.result(SECONDS)
        other.result(SECONDS)


def test_two_admins_who_remove_each_other_leave_the_team_one(served: Served) -> None:
    ada = served.user("ada")
    served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob", "role": "admin"})
    database = served.platform.database

    with pytest.raises(ApiError, match="no admin left"):
        run_both(
            database,
            lambda connection: remove_member(connection, "lab", "bob"),
            lambda connection: remove_member(connection, "lab", "ada"),
        )

    query = select(members.c.user).where(members.c.team == "lab")
    assert database.read_now(lambda connection: list(connection.execute(query).scalars())) == ["ada"]


def test_two_uploads_do_not_reserve_the_same_room(served: Served) -> None:
    served.user("ada")
    quotas = Quotas(user_storage_mb=1)

    def begin(connection: Connection, name: str) -> None:
        caller = find_user_caller(connection, "ada")
        new = NewDatasetUpload(size=MEGABYTE - 100, format="jsonl")
        add_upload(connection, caller, "ada", name, new, quotas)

    with pytest.raises(ApiError, match="exceed the limit of 1 MB"):
        run_both(
            served.platform.database,
            lambda connection: begin(connection, "one"),
            lambda connection: begin(connection, "two"),
        )
