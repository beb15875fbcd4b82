"""Runs over HTTP, for those that play them: the process of a run, its host, uploads from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from litestar import Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import File, Response, Stream
from sqlalchemy import Connection

from proctor.api.bounds import LARGEST_METADATA, MEGABYTE
from proctor.api.common import Page, is_slug
from proctor.api.people import Token
from proctor.api.rows import RolloutRow
from proctor.api.runs import (
    ClaimRequest,
    Ending,
    HostToken,
    Lease,
    LeftoverRuns,
    LostRun,
    NewHost,
    NewUpload,
    Report,
    ReportReply,
    RunAssignment,
    RunInfo,
    UploadEnd,
)
from proctor.server import quotas
from proctor.server.names import check_name
from proctor.server.openapi.described import BINARY, describe
from proctor.server.people.records import list_host_tokens, need_team
from proctor.server.people.tokens import ENROL_SECONDS, OWN_HOST, Caller, make_token
from proctor.server.problems import ConflictError, ForbiddenError, InvalidError, NotFoundError
from proctor.server.request_fields import LENIENT
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    check_tables,
    run_idempotent,
)
from proctor.server.runs import queue, records, reports
from proctor.server.runs.routes import iterate_rows
from proctor.server.runs.streams import counted_stream
from proctor.server.settings import Settings

MOST_LEFTOVERS = 1_000
"""Looked up at once; a host asks again for the rest."""
LARGEST_WITH_METADATA = LARGEST_METADATA + MEGABYTE

# The process of a run


def need_own_run(caller: Caller) -> str:
    if caller.kind != "run" or caller.run_id is None:
        raise ForbiddenError("Only the process of a run may do this.")
    return caller.run_id


@post(
    "/runner/reports",
    summary="Report rows and log lines of the run",
    status_code=200,
    opt={**LENIENT, **describe(body=Report)},
)
async def take_report(
    request: HttpRequest, caller: CallerDependency, platform: PlatformDependency
) -> ReportReply:
    run_id = need_own_run(caller)
    with platform.reports.taking(run_id):
        return await platform.runs.take_report(run_id, caller.attempt, await request.body())


@post("/runner/end", summary="Report the end of the run", status_code=204, opt=LENIENT)
async def take_ending(data: JSONBody[Ending], caller: CallerDependency, platform: PlatformDependency) -> None:
    run_id = need_own_run(caller)
    check_tables(data)
    most = platform.settings.most_crashes
    clean = await platform.runs.redact_ending(run_id, caller.attempt, data)
    await platform.runs.change(reports.take_ending, run_id, caller.attempt, clean, time.time(), most)
    await platform.runs.ended(run_id)


@get(
    "/runner/results.jsonl",
    summary="The settled rows of the run, to resume from",
    media_type="application/x-ndjson",
    opt=describe(response=RolloutRow),
)
async def export_own_rows(caller: CallerDependency, platform: PlatformDependency) -> Stream:
    told = counted_stream(platform, caller, iterate_rows(platform, need_own_run(caller), settled=True))
    return Stream(told, media_type="application/x-ndjson")


# The host


def need_host(caller: Caller) -> None:
    if caller.kind != "host":
        raise ForbiddenError("Only hosts may do this; an admin creates their tokens.")


def holder(caller: Caller, host: str) -> str:
    """The holder of a run: a host process, identified by its token, so that no host reports for another's
    runs."""
    return f"{host}@{caller.token_id}"


@post("/hosts", summary="Add a host that plays runs; returns its token")
async def add_host(
    request: HttpRequest, data: JSONBody[NewHost], caller: CallerDependency, platform: PlatformDependency
) -> HostToken:
    caller.need_admin()

    if not is_slug(data.name) or data.name.startswith(OWN_HOST):
        raise InvalidError(
            f"{data.name!r} is not a valid name of a host; use lowercase letters, digits and hyphens, "
            f"without the prefix {OWN_HOST!r} of the servers' own hosts.",
            field="name",
        )

    def work(connection: Connection) -> HostToken:
        end = time.time() + ENROL_SECONDS
        made = make_token(connection, kind="host", user=None, name=data.name, scopes=[], expires_at=end)
        return HostToken(data.name, made.secret)

    return await run_idempotent(request, platform, caller, work, HostToken)


@get("/hosts", summary="Tokens of hosts that play runs, including the server's own")
async def list_hosts(caller: CallerDependency, platform: PlatformDependency) -> Page[Token]:
    caller.need_admin()
    return Page(await platform.database.read(list_host_tokens))


@post(
    "/hosts/claims",
    summary="Claim the next run to play; 204 if there is none",
    status_code=200,
    opt={**LENIENT, **describe(nothing=True)},
)
async def claim_run(
    data: JSONBody[ClaimRequest], caller: CallerDependency, platform: PlatformDependency
) -> Response[RunAssignment | None]:
    need_host(caller)
    check_name(data.host, "host")
    order = await platform.runs.claim(holder(caller, data.host))
    return Response(order, status_code=200 if order else 204)


@post("/hosts/runs/{run_id:str}/heartbeat", summary="Renew the lease of a run", status_code=200, opt=LENIENT)
async def heartbeat(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    host: FromQuery[str],
    attempt: FromQuery[int],
) -> Lease:
    need_host(caller)
    seconds = platform.settings.lease_seconds
    who = holder(caller, host)
    return await platform.database.write(queue.renew_lease, run_id, who, attempt, time.time(), seconds)


@post(
    "/hosts/runs/{run_id:str}/lost",
    summary="Report that the process of a run is gone",
    status_code=204,
    opt=LENIENT,
)
async def report_lost(
    run_id: FromPath[str],
    data: JSONBody[LostRun],
    caller: CallerDependency,
    platform: PlatformDependency,
    host: FromQuery[str],
    attempt: FromQuery[int],
) -> None:
    need_host(caller)
    most = platform.settings.most_crashes
    clean = await platform.runs.redact_loss(run_id, attempt, data)
    who = (holder(caller, host), attempt)
    if await platform.runs.change(queue.report_lost, run_id, clean, time.time(), most, who):
        await platform.runs.ended(run_id)


@post(
    "/hosts/leftovers", summary="Which of these runs' folders a host can remove", status_code=200, opt=LENIENT
)
async def list_leftovers(
    data: JSONBody[LeftoverRuns], caller: CallerDependency, platform: PlatformDependency
) -> LeftoverRuns:
    need_host(caller)
    return LeftoverRuns(await platform.database.read(queue.find_abandoned, data.runs[:MOST_LEFTOVERS]))


@get(
    "/hosts/wheels/{sha256:str}",
    summary="The wheel of a version",
    operation_id="read_wheel_for_host",
    media_type=BINARY,
)
async def read_wheel(sha256: FromPath[str], caller: CallerDependency, platform: PlatformDependency) -> File:
    need_host(caller)
    if not platform.blobs.has(sha256):
        raise NotFoundError(f"There is no wheel {sha256!r}.")
    return File(platform.blobs.path(sha256), media_type="application/octet-stream")


# Uploads


@post("/uploads", summary="Add or continue a run that is played elsewhere")
async def add_upload(
    request: HttpRequest, data: JSONBody[NewUpload], caller: CallerDependency, platform: PlatformDependency
) -> RunInfo:
    caller.need("runs:write")
    refuse_runs(caller)
    check_upload(data)

    def work(connection: Connection) -> RunInfo:
        if data.team is not None:
            need_team(connection, caller, data.team)
        quotas.check_storage(connection, caller.user, platform.settings.quotas)
        return records.add_upload(connection, caller, data)

    return await run_idempotent(request, platform, caller, work, RunInfo)


@post(
    "/uploads/{run_id:str}/reports",
    summary="Report rows and log lines of an uploaded run",
    status_code=200,
    opt=describe(body=Report),
)
async def upload_report(
    run_id: FromPath[str], request: HttpRequest, caller: CallerDependency, platform: PlatformDependency
) -> ReportReply:
    owner = await need_upload(run_id, caller, platform)
    await platform.database.read(quotas.check_storage, owner, platform.settings.quotas)
    with platform.reports.taking(caller.user):
        return await platform.runs.take_report(run_id, None, await request.body())


@post("/uploads/{run_id:str}/end", summary="Report the end of an uploaded run", status_code=200)
async def end_upload(
    run_id: FromPath[str], data: JSONBody[UploadEnd], caller: CallerDependency, platform: PlatformDependency
) -> RunInfo:
    await need_upload(run_id, caller, platform)
    check_tables(data)
    await platform.runs.change(records.end_upload, run_id, data)
    return await platform.runs.read_summarised(run_id)


async def need_upload(run_id: str, caller: Caller, platform: PlatformDependency) -> str:
    """An uploaded run that the caller may add to; returns its owner."""
    caller.need("runs:write")
    row = await platform.database.read(records.need_visible_run, caller, run_id, to_change=True)
    if row.kind != "local":
        raise ConflictError(f"{run_id} is a hosted run; only its own process may add to it.", code="hosted")
    return str(row.owner)


def check_upload(new: NewUpload) -> None:
    for field in ("client_run_id", "environment", "model", "name"):
        check_name(getattr(new, field), field)
    check_tables(new)
    if not isinstance(new.metadata.get("config") or {}, Mapping):
        raise InvalidError("config in the metadata must be an object of settings.", field="metadata")


def refuse_runs(caller: Caller) -> None:
    if caller.kind != "user":
        raise ForbiddenError("A run's token cannot upload runs.")


def playing(settings: Settings) -> Router:
    said = Router(
        "",
        route_handlers=[take_report, upload_report],
        request_max_body_size=settings.largest_report,
    )
    described = Router(
        "",
        route_handlers=[take_ending, add_upload, end_upload],
        request_max_body_size=LARGEST_WITH_METADATA,
    )
    routes: list[Callable[..., Any] | Any] = [
        said,
        described,
        export_own_rows,
        add_host,
        list_hosts,
        claim_run,
        heartbeat,
        report_lost,
        list_leftovers,
        read_wheel,
    ]
    return Router("", route_handlers=routes, tags=["playing"])
