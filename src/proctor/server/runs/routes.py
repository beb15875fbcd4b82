"""Runs over HTTP, for users: start one, follow it, read it, stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from litestar import Router, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Response, Stream
from sqlalchemy import Connection, Row

from proctor.api.bounds import MEGABYTE
from proctor.api.common import LINK_HEADER, Page, new_id
from proctor.api.rows import RolloutRow
from proctor.api.runs import (
    Events,
    NewRun,
    NewRuns,
    ResumeRequest,
    RowOrder,
    RunCheck,
    RunEvent,
    RunInfo,
    RunSharing,
    RunVisibilityChange,
    StartedRuns,
    StopRequest,
    run_page,
)
from proctor.server.audit.changes import Audit, AuditDependency
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.outbound import check_endpoint_url
from proctor.server.names import LINES, check_text
from proctor.server.openapi.described import describe
from proctor.server.paging import check_limit, decode_cursor, encode_cursor
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, ConflictError, InvalidError
from proctor.server.quotas import check_pending, check_storage
from proctor.server.request_fields import read_json
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    run_idempotent,
)
from proctor.server.runs import (
    checking,
    edits,
    event_log,
    queue,
    records,
    rows,
    sharing,
    submission,
    task_rows,
)
from proctor.server.runs.batch import RunBatch
from proctor.server.runs.causes import build_cause
from proctor.server.runs.checking import check_room, need_starter, need_valid, read_request
from proctor.server.runs.links import read_link
from proctor.server.runs.streams import counted_stream, still_reads

MOST_DIGITS = 18
ROWS_AT_ONCE = 200
LONGEST_REASON = 2_000
LARGEST_BATCH = 16 * MEGABYTE


@post("/runs", summary="Start a hosted run")
async def add_run(
    request: HttpRequest,
    data: JSONBody[NewRun],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    need_starter(caller)
    new, route = await need_valid(platform, data)

    def work(connection: Connection) -> RunInfo:
        return start_run(connection, platform, caller, audit, new, route)

    return await run_idempotent(request, platform, caller, work, RunInfo)


@post(
    "/runs/check",
    summary="What starting a run would do, with all that is wrong with the request; nothing is started",
    status_code=200,
    opt=describe(body=NewRun),
)
async def check_run(request: HttpRequest, caller: CallerDependency, platform: PlatformDependency) -> RunCheck:
    caller.need("runs:read")
    new, misshapen = read_request(await read_json(request))
    return await checking.check_run(platform, caller, new, misshapen)


@post("/runs/batch", summary="Start several hosted runs: all or none", request_max_body_size=LARGEST_BATCH)
async def add_runs(
    request: HttpRequest,
    data: JSONBody[NewRuns],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> StartedRuns:
    need_starter(caller)
    batch = RunBatch(data.runs)
    checked = [await batch.check(index, need_valid(platform, new)) for index, new in enumerate(data.runs)]

    suite = new_id("suite") if len(data.runs) > 1 else None

    def work(connection: Connection) -> StartedRuns:
        """Checks all of them even where one is refused; the refusal then undoes everything."""

        return StartedRuns(
            batch.start_all(
                checked, lambda run: start_run(connection, platform, caller, audit, *run, suite=suite)
            )
        )

    return await run_idempotent(request, platform, caller, work, StartedRuns)


def start_run(
    connection: Connection,
    platform: Platform,
    caller: Caller,
    audit: Audit,
    new: NewRun,
    route: ModelRoute,
    suite: str | None = None,
) -> RunInfo:
    check_room(connection, platform, caller)
    run_id = submission.submit(connection, caller, platform.vault, new, route, suite)
    audit.add(connection, caller, "run.start", run_id, describe_start(new))
    queue.warn_without_host(connection, run_id, time.time())
    return records.build_run_info(connection, queue.find_run(connection, run_id))


def describe_start(new: NewRun) -> dict[str, Any]:
    """What the audit log says about a run that was started: no secrets, not even the names of its own."""
    return {"environment": new.environment, "model": new.model, **({"team": new.team} if new.team else {})}


@post("/runs/{run_id:str}/resume", summary="Resume a run that has ended", status_code=200)
async def resume_run(
    run_id: FromPath[str],
    data: JSONBody[ResumeRequest],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    caller.need("runs:write")
    submission.check_limits(data.timeout_minutes, data.max_cost_usd)
    ended = await platform.database.read(sharing.need_changeable_run, caller, run_id)
    own = ended.settings.get("api_base_url")
    if own is not None:  # the allowed hosts may have changed
        await check_endpoint_url(str(own), platform.settings.allowed_endpoint_hosts)

    def work(connection: Connection, run_id: str) -> RunInfo:
        row = sharing.need_changeable_run(connection, caller, run_id)
        submission.check_resumable(connection, row)
        check_pending(connection, row.owner, platform.settings.quotas)
        check_storage(connection, row.owner, platform.settings.quotas)
        queue.resume(connection, run_id, time.time(), data)
        queue.warn_without_host(connection, run_id, time.time())
        submission.hold_cost(connection, run_id, platform.models.resolve(row.model))
        return records.build_run_info(connection, queue.find_run(connection, run_id))

    resumed = await platform.runs.change(audit.of(caller, "run.resume", run_id, work), run_id)
    platform.meter.forget()  # it may have more to spend than before
    return resumed


async def need_readable(
    request: HttpRequest, platform: Platform, caller: Caller, run_id: str, link: str | None
) -> tuple[Row[Any], sharing.Access]:
    """A run that the caller may read: because of their token, or of a link that was sent with the request."""
    shown = find_link(request, link)
    reader = sharing.as_reader(caller, shown)
    return await platform.database.read(sharing.need_readable_run, reader, run_id, shown)


def find_link(request: HttpRequest, link: str | None) -> str:
    return link or str(request.headers.get(LINK_HEADER, ""))


@post("/runs/{run_id:str}/stop", summary="Stop a run; finished rollouts are kept", status_code=200)
async def stop_run(
    run_id: FromPath[str],
    data: JSONBody[StopRequest],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    caller.need("runs:write")
    check_text(data.reason, "reason", longest=LONGEST_REASON, allowed=LINES)
    row = await platform.database.read(sharing.need_changeable_run, caller, run_id)
    if row.kind != "hosted":
        raise ConflictError(f"{run_id} is played elsewhere; stop it there.", code="not_hosted")
    reason = f": {data.reason}" if data.reason else ""
    await platform.runs.stop(
        run_id,
        build_cause("stopped_by_user", f"{caller.user} stopped the run{reason}."),
        audit.of(caller, "run.stop", run_id, queue.stop),
    )
    return await read_run_info(platform, run_id)


@delete("/runs/{run_id:str}", summary="Delete a run that has ended, with its rows and its event log")
async def delete_run(
    run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    caller.need("runs:write")
    await platform.database.read(sharing.need_changeable_run, caller, run_id)
    await platform.database.write(audit.of(caller, "run.delete", run_id, records.remove_run), run_id)
    platform.housekeeping.wake()
    platform.reading.opened.forget(run_id)
    platform.notifier.notify("run", run_id)


# Its readers


@get("/runs/{run_id:str}/visibility", summary="Who may read a run, and its link if it has one")
async def read_visibility(
    run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> RunSharing:
    caller.need("runs:read")

    def work(connection: Connection) -> RunSharing:
        return describe_sharing(connection, platform, sharing.need_changeable_run(connection, caller, run_id))

    return await platform.database.read(work)


@put("/runs/{run_id:str}/visibility", summary="Share a run, or stop sharing it")
async def change_visibility(
    run_id: FromPath[str],
    data: JSONBody[RunVisibilityChange],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunSharing:
    caller.need("runs:write")

    def work(connection: Connection) -> RunSharing:
        row = sharing.need_changeable_run(connection, caller, run_id)
        edits.add_revision(connection, run_id, time.time())
        sharing.set_visibility(connection, platform.vault, row, data.visibility, new_link=data.new_link)
        return describe_sharing(connection, platform, queue.find_run(connection, run_id))

    details = {"visibility": data.visibility, "new_link": data.new_link}
    changed = await platform.database.write(audit.of(caller, "run.share", run_id, work, details))
    platform.notifier.notify("sharing")
    platform.notifier.notify("run", run_id)
    return changed


def describe_sharing(connection: Connection, platform: Platform, run: Row[Any]) -> RunSharing:
    link = read_link(connection, platform.vault, run.id)
    address = f"{run_page(platform.settings.url, run.id)}?link={link}"
    return RunSharing(visibility=run.visibility, link=None if link is None else address)


async def read_run_info(platform: PlatformDependency, run_id: str) -> RunInfo:
    return await platform.database.read(
        lambda connection: records.build_run_info(connection, queue.find_run(connection, run_id))
    )


# Its event log


@get("/runs/{run_id:str}/events", summary="Events after a number, for polling")
async def list_events(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    after: FromQuery[int] = 0,
    limit: FromQuery[int] = 500,
) -> Events:
    caller.need("runs:read")

    def work(connection: Connection) -> Events:
        sharing.need_readable_run(connection, caller, run_id, with_log=True)
        return event_log.read_event_page(connection, run_id, after, check_limit(limit))

    return await platform.runs.event_logs.read(work)


@get(
    "/runs/{run_id:str}/events/stream",
    summary="Events after a number as they come, as server-sent events; `event: end` is the last",
    media_type="text/event-stream",
    opt=describe(response=RunEvent),
)
async def stream_events(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    after: FromQuery[int | None] = None,
) -> Stream:
    caller.need("runs:read")
    start = parse_start_seq(request, after)

    def work(connection: Connection) -> int:
        row, _ = sharing.need_readable_run(connection, caller, run_id, with_log=True)
        first: int = min(start, row.last_seq)  # a number in the future waits for the next event
        event_log.read_raw_events(connection, run_id, first, 1)  # what is missing still has a status now
        return first

    first = await platform.runs.event_logs.read(work)
    return Stream(
        counted_stream(platform, caller, while_allowed(platform, caller, run_id, first)),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def while_allowed(
    platform: Platform, caller: Caller, run_id: str, after: int
) -> AsyncGenerator[bytes, None]:
    """An event stream, for as long as its reader may read it: tokens are revoked and teams are left in the
    meantime."""
    feed, cut = platform.runs.feed, asyncio.Event()

    def cut_off(_: ApiError) -> None:  # the next request gets the reason
        cut.set()
        platform.runs.beside(feed.rouse(run_id))

    with platform.watch.guard(caller, still_reads(platform, run_id, with_log=True), cut_off):
        async with aclosing(feed.follow(run_id, after, cut.is_set)) as frames:
            async for frame in frames:
                yield frame


def parse_start_seq(request: HttpRequest, after: int | None) -> int:
    """Where to continue: as requested, or as a reconnecting browser says."""
    if after is not None:
        return after
    last = request.headers.get("last-event-id", "0")
    if not last.isdecimal() or len(last) > MOST_DIGITS:  # Python refuses to read thousands of digits
        raise InvalidError("Last-Event-ID is not a number of this stream.")
    return int(last)


# Its rows


@get(
    "/runs/{run_id:str}/rows",
    summary="Rollouts as they were stored, in full",
    opt=describe(response=Page[RolloutRow]),
)
async def list_rows(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
    failed: FromQuery[bool] = False,
    task: FromQuery[str | None] = None,
    order: FromQuery[RowOrder] = "arrival",
    link: FromQuery[str | None] = None,
) -> Page[msgspec.Raw]:
    await need_readable(request, platform, caller, run_id, link)
    in_task_order = order == "task"
    position = decode_cursor(cursor, *((int, int, str, int) if in_task_order else (int,)))
    after = 0 if position is None else position[0]

    read, most = platform.database.read, check_limit(limit)
    if in_task_order:
        in_order, more = await read(
            task_rows.read_rows_by_task, run_id, position, most, failed=failed, task=task
        )
        shown = await rows.unpack_rows(platform.blobs, in_order)
        cursor = encode_cursor(*shown[-1][0]) if more or len(shown) < len(in_order) else None
        return Page([msgspec.Raw(raw) for _, raw in shown], cursor)
    arrived = await read(rows.read_rows, run_id, after, most, failed=failed, task=task)
    found = await rows.unpack_rows(platform.blobs, arrived)
    last = found[-1][0] if found else after
    has_more = bool(found) and await read(rows.has_more, run_id, last, failed=failed, task=task)
    return Page([msgspec.Raw(raw) for _, raw in found], encode_cursor(last) if has_more else None)


@get(
    "/runs/{run_id:str}/results.jsonl",
    summary="All rows, one per line",
    media_type="application/x-ndjson",
    opt=describe(response=RolloutRow),
)
async def export_rows(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    link: FromQuery[str | None] = None,
) -> Stream:
    await need_readable(request, platform, caller, run_id, link)
    pieces = rows_while_allowed(platform, caller, run_id, find_link(request, link))
    stream = counted_stream(platform, caller, pieces)
    return Stream(stream, media_type="application/x-ndjson")


async def rows_while_allowed(
    platform: Platform, caller: Caller, run_id: str, link: str = ""
) -> AsyncGenerator[bytes, None]:
    """All rows, broken off where their reader may no longer read them: a part must not look whole."""
    refusals: list[ApiError] = []
    with platform.watch.guard(caller, still_reads(platform, run_id, link), refusals.append):
        async with aclosing(iterate_rows(platform, run_id)) as pieces:
            async for piece in pieces:
                if refusals:
                    raise refusals[0]
                yield piece


async def iterate_rows(
    platform: PlatformDependency, run_id: str, *, settled: bool = False
) -> AsyncGenerator[bytes, None]:
    after = 0
    read = platform.database.read
    while stored := await read(rows.read_rows, run_id, after, ROWS_AT_ONCE, settled=settled):
        found = await rows.unpack_rows(platform.blobs, stored)
        after = found[-1][0]
        yield b"".join(raw + b"\n" for _, raw in found)


@get(
    "/runs/{run_id:str}/metadata.json",
    summary="What was run and how, as in a run folder",
    opt=describe(response=dict[str, Any]),
)
async def export_metadata(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    link: FromQuery[str | None] = None,
) -> Response[bytes]:
    row, access = await need_readable(request, platform, caller, run_id, link)
    known = sharing.limit_metadata(access, records.with_public_address(row, platform.settings.url))
    metadata = {**known, "run_id": row.id, "status": row.status}
    return Response(msgspec.json.encode(metadata), media_type="application/json")


router = Router(
    "",
    route_handlers=[
        add_run,
        check_run,
        add_runs,
        resume_run,
        stop_run,
        delete_run,
        read_visibility,
        change_visibility,
        list_events,
        stream_events,
        list_rows,
        export_rows,
        export_metadata,
    ],
    tags=["runs"],
)
