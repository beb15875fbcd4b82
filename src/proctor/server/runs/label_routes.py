"""Labels over HTTP: read those of a run, and give your own."""

from __future__ import annotations

import time

from litestar import Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.labels import NewLabels, RunLabel, SavedLabels
from proctor.server.announcements import announce
from proctor.server.names import LINES, check_text
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.runs import labels, queue, records, sharing

LONGEST_NOTE = 2_000


@get("/runs/{run_id:str}/labels", summary="What people say about a run's rollouts")
async def list_run_labels(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
    person: FromQuery[str | None] = None,
) -> Page[RunLabel]:
    caller.need("runs:read")
    most = check_limit(limit)
    after = decode_cursor(cursor, str, int, str)

    def work(connection: Connection) -> Page[RunLabel]:
        sharing.need_readable_run(connection, caller, run_id)
        found = labels.list_labels(connection, run_id, after, most + 1, person)
        return build_page(found, most, labels.cursor_of)

    return await platform.database.read(work)


@post("/runs/{run_id:str}/labels", summary="Label rollouts of a run, as yourself", status_code=200)
async def add_run_labels(
    run_id: FromPath[str],
    request: HttpRequest,
    data: JSONBody[NewLabels],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> SavedLabels:
    caller.need("runs:write")
    for index, label in enumerate(data.labels):
        check_text(label.note, f"labels[{index}].note", longest=LONGEST_NOTE, allowed=LINES)

    def work(connection: Connection) -> SavedLabels:
        records.need_visible_run(connection, caller, run_id, to_change=True)
        queue.lock_run(connection, run_id)  # a person's labels that come at once replace each other in turn
        saved = labels.save_labels(connection, run_id, caller.user, data.labels, time.time())
        announce(connection, "labels", run_id)
        return SavedLabels(saved=saved)

    return await run_idempotent(request, platform, caller, work, SavedLabels)


router = Router("", route_handlers=[list_run_labels, add_run_labels], tags=["runs"])
