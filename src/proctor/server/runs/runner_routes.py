"""Runs over HTTP, for those that play them: the process of a run, its host, uploads from elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any

import msgspec
from litestar import Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Response, Stream
from sqlalchemy import Connection

from proctor.api.bounds import LARGEST_METADATA, MEGABYTE
from proctor.api.common import Page, is_slug
from proctor.api.people import Token
from proctor.api.rows import RolloutRow
from proctor.api.runner import (
    BaselineScore,
    ClaimRequest,
    Ending,
    HostAttemptId,
    HostToken,
    Lease,
    LeftoverRuns,
    LostRun,
    NewHost,
    PlacedAttempts,
    Report,
    ReportReply,
    RunAssignment,
)
from proctor.api.runs import NewUpload, RunInfo, UploadEnd
from proctor.comparison.scores import RunScores, TaskScores
from proctor.reading.decision_handlers import read_run_scores
from proctor.server import quotas
from proctor.server.audit.changes import AuditDependency
from proctor.server.names import check_name
from proctor.server.openapi.described import BINARY, describe
from proctor.server.people.records import list_host_tokens, need_team
from proctor.server.people.tokens import ENROL_SECONDS, OWN_HOST, Caller, find_user_caller, make_token
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
from proctor.server.runs.streams import counted_stream, name_reader
from proctor.server.settings import Settings
from proctor.server.storage.downloads import send_file

TASKS_AT_ONCE = 500
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
    await platform.runs.handle_end(run_id)


@get(
    "/runner/results.jsonl",
    summary="The settled rows of the run, to resume from",
    media_type="application/x-ndjson",
    opt=describe(response=RolloutRow),
)
async def export_own_rows(caller: CallerDependency, platform: PlatformDependency) -> Stream:
    stream = counted_stream(platform, caller, iterate_rows(platform, need_own_run(caller), settled=True))
    return Stream(stream, media_type="application/x-ndjson")


@get(
    "/runner/baseline.jsonl",
    summary="The scores of the run that this one is compared with while it is played",
    media_type="application/x-ndjson",
    opt=describe(response=BaselineScore),
)
async def export_baseline(caller: CallerDependency, platform: PlatformDependency) -> Stream:
    """Scores alone: what was said in the baseline is for its readers, not for this run's environment."""
    run_id = need_own_run(caller)
    row = await platform.database.read(queue.find_run, run_id)
    baseline = row.settings.get("until_decided")
    if not isinstance(baseline, str):
        raise NotFoundError(f"{run_id} is compared with no other run.")
    owner = await platform.database.read(find_user_caller, row.owner)
    async with platform.reads.turn(name_reader(caller)):
        reader = await platform.reading.library(owner).open(baseline)
        scores = await read_run_scores(reader)
    stream = counted_stream(platform, caller, iterate_baseline(scores))
    return Stream(stream, media_type="application/x-ndjson")


async def iterate_baseline(scores: RunScores) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(scores.tasks), TASKS_AT_ONCE):
        tasks = scores.tasks[start : start + TASKS_AT_ONCE]
        yield b"".join(msgspec.json.encode(line) + b"\n" for task in tasks for line in list_lines(task))


def list_lines(task: TaskScores) -> Iterator[BaselineScore]:
    for number, reward in zip(task.rollouts, task.rewards, strict=True):
        yield BaselineScore(
            example_id=task.id, rollout=number, outcome="scored", reward=reward, task_hash=task.hash
        )


# The host


def need_host(caller: Caller) -> None:
    if caller.kind != "host":
        raise ForbiddenError("Only hosts may do this; an admin creates their tokens.")


def need_host_or_delegate(caller: Caller) -> None:
    if caller.kind != "delegate":
        need_host(caller)


def holder(caller: Caller, host: str) -> str:
    """The holder of a run: a host process, identified by its token, so that no host reports for another's
    runs."""
    return f"{host}@{caller.token_id}"


def need_holder(caller: Caller, host: str, run_id: str, attempt: int) -> str | None:
    """The holder that the caller may speak for; None if the token itself is of that attempt."""
    if caller.kind != "delegate":
        need_host(caller)
        return holder(caller, host)
    if (caller.run_id, caller.attempt) != (run_id, attempt):
        raise ForbiddenError("This token stands for the host of another attempt.")
    return None


@post("/hosts", summary="Add a host that plays runs; returns its token")
async def add_host(
    request: HttpRequest,
    data: JSONBody[NewHost],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
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

    return await run_idempotent(
        request, platform, caller, audit.of(caller, "host.add", data.name, work), HostToken
    )


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
    order = await platform.runs.claim(holder(caller, data.host), data.delegate)
    return Response(order, status_code=200 if order else 204)


@post("/hosts/runs/{run_id:str}/heartbeat", summary="Renew the lease of a run", status_code=200, opt=LENIENT)
async def heartbeat(
    run_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    host: FromQuery[str],
    attempt: FromQuery[int],
) -> Lease:
    who = need_holder(caller, host, run_id, attempt)
    seconds = platform.settings.lease_seconds
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
    who = need_holder(caller, host, run_id, attempt)
    most = platform.settings.most_crashes
    clean = await platform.runs.redact_loss(run_id, attempt, data)
    if await platform.runs.change(queue.report_lost, run_id, clean, time.time(), most, who, attempt):
        await platform.runs.handle_end(run_id)


@post(
    "/hosts/leftovers", summary="Which of these runs' folders a host can remove", status_code=200, opt=LENIENT
)
async def list_leftovers(
    data: JSONBody[LeftoverRuns], caller: CallerDependency, platform: PlatformDependency
) -> LeftoverRuns:
    need_host_or_delegate(caller)
    return LeftoverRuns(await platform.database.read(queue.find_abandoned, data.runs[:MOST_LEFTOVERS]))


@post(
    "/hosts/attempts",
    summary="Which of these attempts, placed on other machines, are over",
    status_code=200,
    opt=LENIENT,
)
async def list_attempts_over(
    data: JSONBody[PlacedAttempts], caller: CallerDependency, platform: PlatformDependency
) -> PlacedAttempts:
    need_host(caller)
    asked = [(each.run_id, each.attempt) for each in data.attempts[:MOST_LEFTOVERS]]
    over = await platform.database.read(queue.find_attempts_over, asked)
    return PlacedAttempts([HostAttemptId(*each) for each in over])


@get(
    "/hosts/wheels/{sha256:str}",
    summary="The wheel of a version",
    operation_id="read_wheel_for_host",
    media_type=BINARY,
)
async def read_wheel(
    request: HttpRequest, sha256: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Stream:
    need_host_or_delegate(caller)
    if not await platform.database.read(records.has_wheel, sha256, caller.run_id):
        raise NotFoundError(f"There is no wheel {sha256!r}.")
    return await send_file(platform, request, sha256, f"{sha256}.whl")


# Uploads


@post("/uploads", summary="Add or continue a run that is played elsewhere")
async def add_upload(
    request: HttpRequest,
    data: JSONBody[NewUpload],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    caller.need("runs:write")
    refuse_runs(caller)
    check_upload(data)

    def work(connection: Connection) -> RunInfo:
        if data.team is not None:
            need_team(connection, caller, data.team)
        quotas.check_storage(connection, caller.user, platform.settings.quotas)
        return records.add_upload(connection, caller, data)

    added = audit.of(caller, "run.upload", lambda made: made.id, work)
    return await run_idempotent(request, platform, caller, added, RunInfo)


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
    return await platform.runs.read_summarized(run_id)


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
    report_router = Router(
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
        report_router,
        described,
        export_own_rows,
        export_baseline,
        add_host,
        list_hosts,
        claim_run,
        heartbeat,
        report_lost,
        list_leftovers,
        list_attempts_over,
        read_wheel,
    ]
    return Router("", route_handlers=routes, tags=["playing"])
