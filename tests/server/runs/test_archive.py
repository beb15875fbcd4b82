"""The rows of runs that have ended are in the store, and are read from there as before."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from proctor.reading.entries import task_key
from proctor.server.db.tables import rollouts, run_segments
from proctor.server.runs import archive
from proctor.server.runs.archive import archive_ended_runs, point_rows, read_rows_to_move
from proctor.server.storage.garbage import GRACE_SECONDS, collect_garbage
from tests.server.serving import Api, Served

LATER = 2 * archive.QUIET_SECONDS


def build_row(task: int, number: int = 0, outcome: str = "scored") -> dict[str, Any]:
    row = {"example_id": task, "rollout": number, "outcome": outcome, "metrics": {}}
    prompt = [{"role": "user", "content": f"question {task} {number} " * 50}]
    return {**row, "prompt": prompt, **({"reward": 1.0} if outcome == "scored" else {})}


def upload(ada: Api, name: str, rows: Sequence[dict[str, Any]]) -> str:
    new = {"client_run_id": name, "environment": "sums", "model": "m", "planned": len(rows)}
    run_id = str(ada.post("/uploads", new)["id"])
    ada.post(f"/uploads/{run_id}/reports", {"batch": 1, "rows": list(rows)})
    ada.post(f"/uploads/{run_id}/end", {"status": "finished", "metadata": {}})
    return run_id


def move(served: Served) -> int:
    moved: int = served.call(
        archive_ended_runs, served.platform.database, served.platform.blobs, time.time() + LATER
    )
    return moved


def stored_bytes(connection: Connection, run_id: str) -> int:
    query = select(func.sum(func.length(rollouts.c.row))).where(rollouts.c.run_id == run_id)
    return int(connection.execute(query).scalar_one())


def read_everything(ada: Api, run_id: str) -> list[Any]:
    """Every way to read rows, page by page."""
    found: list[Any] = [ada("GET", f"/runs/{run_id}/results.jsonl").body]
    for order in ("arrival", "task"):
        cursor = ""
        while cursor is not None:
            page = ada.get(f"/runs/{run_id}/rows?limit=3&order={order}{cursor and '&cursor='}{cursor}")
            found += page["items"]
            cursor = page["next_cursor"]
    found.append(ada.get(f"/runs/{run_id}/rollouts/{task_key(2)}/0/raw"))
    found.append(ada.get(f"/runs/{run_id}")["summary"])
    return found


def test_rows_that_were_moved_are_read_as_before_and_go_with_their_run(
    served_on_both: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_on_both
    monkeypatch.setattr(archive, "SEGMENT_BYTES", 500)  # several segments
    ada = served.user("ada")
    run_id = upload(ada, "one", [build_row(task, number) for task in range(5) for number in range(2)])
    database, store = served.platform.database, served.platform.blobs.store
    before = read_everything(ada, run_id)

    assert move(served) == 1

    assert database.read_now(stored_bytes, run_id) == 0
    assert served.call(count_objects, store) > 1
    assert read_everything(ada, run_id) == before
    assert move(served) == 0
    ada.ok("DELETE", f"/runs/{run_id}")
    served.call(collect_garbage, database, store, time.time() + 3 * GRACE_SECONDS)
    assert served.call(count_objects, store) == 0


def test_a_move_that_dies_or_is_made_by_two_servers_loses_and_doubles_nothing(served_on_both: Served) -> None:
    served = served_on_both
    ada = served.user("ada")
    run_id = upload(ada, "one", [build_row(task) for task in range(5)])
    before = read_everything(ada, run_id)
    database, blobs = served.platform.database, served.platform.blobs
    moved = database.read_now(read_rows_to_move, run_id)
    blob = served.call(blobs.add, b"".join(moved.packed))  # and the server dies
    assert read_everything(ada, run_id) == before

    assert move(served) == 1
    database.write_now(point_rows, run_id, moved, blob)  # another server, later

    assert read_everything(ada, run_id) == before
    assert database.read_now(count_segments) == 1


def test_rows_that_come_after_a_move_are_moved_as_well(served: Served) -> None:
    ada = served.user("ada")
    run_id = upload(ada, "one", [build_row(0), build_row(1, outcome="model_error")])
    move(served)

    ada.post(f"/uploads/{run_id}/reports", {"batch": 2, "rows": [build_row(1)]})
    lines = ada("GET", f"/runs/{run_id}/results.jsonl").body.splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["scored", "scored"]
    ada.post(f"/uploads/{run_id}/end", {"status": "finished", "metadata": {}})

    assert move(served) == 1
    assert served.platform.database.read_now(stored_bytes, run_id) == 0
    assert ada("GET", f"/runs/{run_id}/results.jsonl").body.splitlines() == lines


def count_segments(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(run_segments)).scalar_one())


async def count_objects(store: Any) -> int:
    return sum([len(page) async for page in store.list_objects()])
