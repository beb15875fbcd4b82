"""Runs over HTTP, for users: start one, follow it, read it, stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from litestar import Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Response, Stream
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.runs import Events, NewRun, ResumeRequest, RowOrder, RunInfo, StopRequest, TaskResult
from proctor.run import ENDED
from proctor.server.gateway.outbound import check_endpoint_url
from proctor.server.names import LINES, check_text
from proctor.server.paging import build_page, check_limit, decode_cursor, encode_cursor
from proctor.server.people.tokens import Caller
from proctor.server.people.watch import Check
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, ConflictError, ForbiddenError, InvalidError
from proctor.server.quotas import check_pending, check_storage
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    check_tables,
    run_idempotent,
)
from proctor.server.runs import event_log as story
from proctor.server.runs import queue, records, rows, submission, task_rows
from proctor.server.runs.causes import build_cause

ROWS_AT_ONCE = 200
LONGEST_REASON = 2_000


@post("/runs", summary="Start a hosted run")
async def add_run(
    request: HttpRequest, data: JSONBody[NewRun], caller: CallerDependency, platform: PlatformDependency
) -> RunInfo:
    caller.need("runs:write")
    if caller.kind != "user":
        raise ForbiddenError("A run cannot start runs.")
    check_tables(data)
    submission.check_new_run(data)
    own = data.settings.get("api_base_url")
    if own is not None:
        await check_endpoint_url(str(own), platform.settings.allowed_endpoint_hosts)
    route = platform.models.resolve(data.model)

    def work(connection: Connection) -> RunInfo:
        check_pending(connection, caller.user, platform.settings.quotas)
        check_storage(connection, caller.user, platform.settings.quotas)
        run_id = submission.submit(connection, caller, platform.vault, data, route)
        return records.build_run_info(connection, queue.find_run(connection, run_id))

    return await run_idempotent(request, platform, caller, work, RunInfo)


@post("/runs/{run_id:str}/resume", summary="Resume a run that has ended", status_code=200)
async def resume_run(
    run_id: FromPath[str],
    data: JSONBody[ResumeRequest],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> RunInfo:
    caller.need("runs:write")
    submission.check_limits(data.timeout_minutes, data.max_cost_usd)
    ended = await platform.database.read(records.need_visible_run, caller, run_id, to_change=True)
    own = ended.settings.get("api_base_url")
    if own is not None:  # the allowed hosts may have changed
        await check_endpoint_url(str(own), platform.settings.allowed_endpoint_hosts)

    def work(connection: Connection, run_id: str) -> RunInfo:
        row = records.need_visible_run(connection, caller, run_id, to_change=True)
        submission.check_resumable(connection, row)
        check_pending(connection, row.owner, platform.settings.quotas)
        check_storage(connection, row.owner, platform.settings.quotas)
        queue.resume(connection, run_id, time.time(), data)
        submission.hold_cost(connection, run_id, platform.models.resolve(row.model))
        return records.build_run_info(connection, queue.find_run(connection, run_id))

    resumed = await platform.runs.change(work, run_id)
    platform.meter.forget()  # it may have more to spend than before
    return resumed


@get("/runs", summary="Runs you may see, newest first")
async def list_runs(
    caller: CallerDependency,
    platform: PlatformDependency,
    environment: FromQuery[str | None] = None,
    status: FromQuery[str | None] = None,
    model: FromQuery[str | None] = None,
    owner: FromQuery[str | None] = None,
    team: FromQuery[str | None] = None,
    kind: FromQuery[str | None] = None,
    name: FromQuery[str | None] = None,
    limit: FromQuery[int] = 20,
    cursor: FromQuery[str | None] = None,
) -> Page[RunInfo]:
    caller.need("runs:read")
    wanted = records.RunQuery(
        environment=environment, status=status, model=model, owner=owner, team=team, kind=kind, name=name
    )
    place = decode_cursor(cursor, float, str)
    before = None if place is None else (place[0], place[1])
    found = await platform.database.read(records.list_runs, caller, wanted, before, check_limit(limit) + 1)
    return build_page(found, limit, lambda run: (run.created_at, run.id))


@get("/runs/{run_id:str}", summary="One run, with its report once it has ended")
async def get_run(run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency) -> RunInfo:
    caller.need("runs:read")

    def work(connection: Connection) -> RunInfo:
        return records.build_run_info(connection, records.need_visible_run(connection, caller, run_id))

    told = await platform.database.read(work)
    if told.status in ENDED and told.summary is None:
        return await platform.runs.read_summarised(run_id)
    return told


@post("/runs/{run_id:str}/stop", summary="Stop a run; finished rollouts are kept", status_code=200)
async def stop_run(
    run_id: FromPath[str], data: JSONBody[StopRequest], caller: CallerDependency, platform: PlatformDependency
) -> RunInfo:
    caller.need("runs:write")
    check_text(data.reason, "reason", longest=LONGEST_REASON, allowed=LINES)
    row = await platform.database.read(records.need_visible_run, caller, run_id, to_change=True)
    if row.kind != "hosted":
        raise ConflictError(f"{run_id} is played elsewhere; stop it there.", code="not_hosted")
    reason = f": {data.reason}" if data.reason else ""
    await platform.runs.stop(
        run_id, build_cause("stopped_by_user", f"{caller.user} stopped the run{reason}.")
    )
    return await read_run_info(platform, run_id)


@delete("/runs/{run_id:str}", summary="Delete a run that has ended, with its rows and its event log")
async def delete_run(run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency) -> None:
    caller.need("runs:write")
    await platform.database.read(records.need_visible_run, caller, run_id, to_change=True)
    await platform.database.write(records.remove_run, run_id)
    platform.runs.feed.wake(run_id)


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
        records.need_visible_run(connection, caller, run_id)
        return story.read_event_page(connection, run_id, after, check_limit(limit))

    return await platform.database.read(work)


@get(
    "/runs/{run_id:str}/events/stream",
    summary="Events after a number as they come, as server-sent events; `event: end` is the last",
)
async def stream_events(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    after: FromQuery[int | None] = None,
) -> Stream:
    caller.need("runs:read")
    row = await platform.database.read(records.need_visible_run, caller, run_id)
    first = min(
        parse_start_seq(request, after), row.last_seq
    )  # a number in the future waits for the next event
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

    def cut_off(_: ApiError) -> None:  # the next request is told why
        cut.set()
        platform.runs.beside(feed.rouse(run_id))

    with platform.watch.watched(caller, still_reads(platform, run_id), cut_off):
        async with aclosing(feed.follow(run_id, after, cut.is_set)) as frames:
            async for frame in frames:
                yield frame


def still_reads(platform: Platform, run_id: str) -> Check:
    """Raises for who may no longer read a run."""

    async def check(now: Caller) -> None:
        now.need("runs:read")
        await platform.database.read(records.need_visible_run, now, run_id)

    return check


def counted_stream(
    platform: Platform, caller: Caller, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """A stream that counts towards its reader's limit, and is refused beyond it."""
    reader = caller.run_id or caller.user
    platform.streams.check(reader)

    async def counted() -> AsyncGenerator[bytes, None]:
        with platform.streams.taking(reader):  # only now: a stream that never starts never ends
            async with aclosing(pieces) as told:
                async for piece in told:
                    yield piece

    return counted()


def parse_start_seq(request: HttpRequest, after: int | None) -> int:
    """Where to continue: as requested, or as a reconnecting browser says."""
    if after is not None:
        return after
    last = request.headers.get("last-event-id", "0")
    if not last.isdecimal():
        raise InvalidError("Last-Event-ID is not a number of this stream.")
    return int(last)


# Its rows


@get("/runs/{run_id:str}/rows", summary="Rollouts as they were stored, in full")
async def list_rows(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
    failed: FromQuery[bool] = False,
    task: FromQuery[str | None] = None,
    order: FromQuery[RowOrder] = "arrival",
) -> Page[msgspec.Raw]:
    caller.need("runs:read")
    in_task_order = order == "task"
    place = decode_cursor(cursor, *((int, int, str, int) if in_task_order else (int,)))
    after = 0 if place is None else place[0]

    def work(connection: Connection) -> Page[msgspec.Raw]:
        records.need_visible_run(connection, caller, run_id)
        if in_task_order:
            sorted_rows, more = task_rows.read_rows_by_task(
                connection, run_id, place, check_limit(limit), failed=failed, task=task
            )
            items = [msgspec.Raw(raw) for _, raw in sorted_rows]
            return Page(items, encode_cursor(*sorted_rows[-1][0]) if more else None)
        found = rows.read_rows(connection, run_id, after, check_limit(limit), failed=failed, task=task)
        last = found[-1][0] if found else after
        more = bool(found) and rows.has_more(connection, run_id, last, failed=failed, task=task)
        return Page([msgspec.Raw(raw) for _, raw in found], encode_cursor(last) if more else None)

    return await platform.database.read(work)


@get("/runs/{run_id:str}/tasks", summary="Its tasks in order, each with the mean and spread of its rewards")
async def list_task_results(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
    task: FromQuery[str | None] = None,
) -> Page[TaskResult]:
    caller.need("runs:read")
    place = decode_cursor(cursor, int, int, str)

    def work(connection: Connection) -> Page[TaskResult]:
        records.need_visible_run(connection, caller, run_id)
        found, more = task_rows.list_task_results(connection, run_id, place, check_limit(limit), task)
        return Page([result for _, result in found], encode_cursor(*found[-1][0]) if more else None)

    return await platform.database.read(work)


@get("/runs/{run_id:str}/results.jsonl", summary="All rows, one per line")
async def export_rows(
    run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Stream:
    caller.need("runs:read")
    await platform.database.read(records.need_visible_run, caller, run_id)
    told = counted_stream(platform, caller, rows_while_allowed(platform, caller, run_id))
    return Stream(told, media_type="application/x-ndjson")


async def rows_while_allowed(platform: Platform, caller: Caller, run_id: str) -> AsyncGenerator[bytes, None]:
    """All rows, broken off where their reader may no longer read them: a part must not look whole."""
    refusals: list[ApiError] = []
    with platform.watch.watched(caller, still_reads(platform, run_id), refusals.append):
        async with aclosing(iterate_rows(platform, run_id)) as pieces:
            async for piece in pieces:
                if refusals:
                    raise refusals[0]
                yield piece


async def iterate_rows(
    platform: PlatformDependency, run_id: str, *, settled: bool = False
) -> AsyncGenerator[bytes, None]:
    after = 0
    while found := await platform.database.read(rows.read_rows, run_id, after, ROWS_AT_ONCE, settled=settled):
        after = found[-1][0]
        yield b"".join(raw + b"\n" for _, raw in found)


@get("/runs/{run_id:str}/metadata.json", summary="What was run and how, as in a run folder")
async def export_metadata(
    run_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Response[bytes]:
    caller.need("runs:read")
    row = await platform.database.read(records.need_visible_run, caller, run_id)
    told = {**row.metadata, "run_id": row.id, "status": row.status}
    return Response(msgspec.json.encode(told), media_type="application/json")


router = Router(
    "",
    route_handlers=[
        add_run,
        resume_run,
        list_runs,
        get_run,
        stop_run,
        delete_run,
        list_events,
        stream_events,
        list_rows,
        list_task_results,
        export_rows,
        export_metadata,
    ],
    tags=["runs"],
)
