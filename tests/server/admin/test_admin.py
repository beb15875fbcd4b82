"""What only admins see: hosts and what they play, the queue and why it waits, storage, balances."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Connection, update

from proctor.server.admin.work import list_host_work, list_queue
from proctor.server.db.database import Database
from proctor.server.db.tables import runs, tokens, versions
from proctor.server.people.tokens import make_token
from proctor.server.runs import queue
from tests.server.datasets.pushing import ROWS, push_rows
from tests.server.runs import making
from tests.server.serving import Served

ADMIN_ROUTES = ("/users", "/hosts", "/balances", "/audit", "/admin/hosts", "/admin/queue", "/admin/storage")


@pytest.mark.parametrize("path", ADMIN_ROUTES)
def test_these_are_for_admins_only(served: Served, path: str) -> None:
    assert served.user("ada")("GET", path).status == 403
    assert served.nobody("GET", path).status == 401
    assert served.root("GET", path).status == 200


def add_host(connection: Connection, now: float) -> str:
    made = make_token(
        connection, kind="host", user=None, name="gpu-1", scopes=[], expires_at=now + 1000
    ).token.id
    connection.execute(update(tokens).where(tokens.c.id == made).values(last_used_at=now))
    return made


def test_a_host_is_listed_with_the_run_that_it_plays(database: Database) -> None:
    now = time.time()
    database.write_now(making.user)
    database.write_now(making.environment)
    run_id = database.write_now(making.run, name="nightly")
    host = database.write_now(add_host, now)
    database.write_now(
        lambda c: queue.start_attempt(c, queue.find_run(c, run_id), f"gpu-1@{host}", now, 60.0)
    )

    (found,) = database.read_now(list_host_work, now)

    assert (found.name, found.is_connected, found.is_own) == ("gpu-1", True, False)
    assert [(run.id, run.name, run.owner, run.status) for run in found.runs] == [
        (run_id, "nightly", "ada", "running")
    ]
    (silent,) = database.read_now(list_host_work, now + 500)
    assert not silent.is_connected


def test_the_queue_says_why_each_waits(database: Database) -> None:
    now = time.time()
    database.write_now(making.user)
    database.write_now(making.environment)
    first, second = (database.write_now(making.run, now=now + n) for n in range(2))
    database.write_now(lambda c: c.execute(update(versions).values(check_status="pending")))

    waiting = database.read_now(list_queue, now, None)
    assert {item.kind for item in waiting} == {"run", "check"}
    assert all("No host that can play runs is connected" in item.reason for item in waiting)

    host = database.write_now(add_host, now)
    database.write_now(lambda c: queue.start_attempt(c, queue.find_run(c, first), f"gpu-1@{host}", now, 60.0))
    (item,) = [item for item in database.read_now(list_queue, now, 1) if item.kind == "run"]
    assert (item.id, item.user) == (second, "ada")
    assert item.reason.startswith("The server plays at most 1 of one user's runs at once")
    assert item.reason.endswith("ada has 1 under way.")
    (item,) = [item for item in database.read_now(list_queue, now, None) if item.kind == "run"]
    assert item.reason.startswith("Every host is busy")

    database.write_now(lambda c: c.execute(update(runs).values(status="finished")))
    assert [item.kind for item in database.read_now(list_queue, now, None)] == ["check"]


def test_storage_counts_a_shared_file_once_by_kind_and_for_each_of_its_users(
    served_on_both: Served,
) -> None:
    served = served_on_both
    ada, bob = served.user("ada"), served.user("bob")
    for api, name in ((ada, "ada"), (bob, "bob")):
        assert push_rows(api, name, "sums", ROWS).status == 201
    served.platform.database.write_now(making.environment)  # a wheel and a source of one byte each
    run_id = served.platform.database.write_now(making.run)
    served.platform.database.write_now(
        lambda c: c.execute(update(runs).where(runs.c.id == run_id).values(row_bytes=70, log_bytes=30))
    )

    found = served.root.get("/admin/storage")

    assert {kind["kind"]: (kind["count"], kind["bytes"]) for kind in found["kinds"]} == {
        "packages": (1, 2),
        "rows": (1, 70),
        "logs": (1, 30),
        "datasets": (1, len(ROWS)),
    }
    assert found["users"] == [
        {"user": "ada", "bytes": len(ROWS) + 102},
        {"user": "bob", "bytes": len(ROWS)},
    ]
    assert 0 < found["disk_free_bytes"] <= found["disk_bytes"]


def test_balances_are_listed_page_by_page(served: Served) -> None:
    served.user("ada")
    served.root.post("/teams", {"name": "lab"})
    served.root.post("/grants", {"owner": "ada", "amount_usd": 2.5})

    first = served.root.get("/balances?limit=2")
    rest = served.root.get(f"/balances?limit=2&cursor={first['next_cursor']}")

    assert [(each["owner"], each["balance_usd"]) for each in (*first["items"], *rest["items"])] == [
        ("ada", 2.5),
        ("lab", None),
        ("root", None),
    ]
