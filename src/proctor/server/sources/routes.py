"""Sources over HTTP: add, list, sync, remove; and the webhooks of the servers they are on."""

from __future__ import annotations

from typing import Any

from litestar import Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection, Row, select

from proctor.api.common import Page
from proctor.api.people import Scope
from proctor.api.sources import (
    AddedSource,
    NewSource,
    SourceCommit,
    SourceContent,
    SourceInfo,
    SourceSync,
    SyncRequest,
)
from proctor.server.audit.changes import AuditDependency
from proctor.server.db.tables import sources
from proctor.server.openapi.described import describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError, InvalidError, UnauthenticatedError
from proctor.server.request_fields import LENIENT
from proctor.server.requests import SIGNED, CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.sources import commits, records, syncs
from proctor.server.sources.addresses import check_source_url
from proctor.server.sources.credentials import open_credentials

SIGNATURE_HEADERS = ("x-hub-signature-256", "x-gitea-signature")
TOKEN_HEADER = "x-gitlab-token"
FULL_COMMIT = 40


def need_person(caller: Caller, scope: Scope) -> None:
    caller.need(scope)
    if caller.kind != "user":
        raise ForbiddenError("A run cannot use sources.")


@post("/sources", summary="Add a git repository to take rollouts from")
async def add_source(
    request: HttpRequest,
    data: JSONBody[NewSource],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> AddedSource:
    need_person(caller, "environments:write")
    found = await check_source_url(data, platform.settings)

    def work(connection: Connection) -> AddedSource:
        row, secret = records.add_source(connection, platform.vault, caller, data, found)
        return AddedSource(source=records.describe_source(row, platform.settings.url), webhook_secret=secret)

    added = audit.of(caller, "source.add", lambda made: f"{made.source.owner}/{made.source.name}", work)
    return await run_idempotent(request, platform, caller, added, AddedSource)


@get("/sources", summary="Sources of yours and your teams")
async def list_sources(
    caller: CallerDependency, platform: PlatformDependency, repository: FromQuery[str | None] = None
) -> Page[SourceInfo]:
    need_person(caller, "environments:read")

    def work(connection: Connection) -> list[SourceInfo]:
        found = records.list_sources(connection, caller, repository)
        running = syncs.find_running(connection, [row.id for row in found])
        url = platform.settings.url
        return [records.describe_source(row, url, running.get(row.id)) for row in found]

    return Page(await platform.database.read(work))


@get("/sources/{source_id:str}", summary="One source")
async def get_source(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> SourceInfo:
    need_person(caller, "environments:read")
    return await read_source(platform, caller, source_id)


async def read_source(platform: Platform, caller: Caller, source_id: str) -> SourceInfo:
    def work(connection: Connection) -> SourceInfo:
        row = records.need_source(connection, caller, source_id)
        running = syncs.find_running(connection, [row.id])
        return records.describe_source(row, platform.settings.url, running.get(row.id))

    return await platform.database.read(work)


@get("/sources/{source_id:str}/syncs", summary="Its last syncs, newest first, each with its log")
async def list_source_syncs(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[SourceSync]:
    need_person(caller, "environments:read")
    row = await platform.database.read(records.need_source, caller, source_id)
    return Page(await platform.database.read(syncs.list_syncs, row.id))


@get("/sources/{source_id:str}/commits", summary="The last commits of the branch that was synced last")
async def list_source_commits(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[SourceCommit]:
    need_person(caller, "environments:read")
    row = await platform.database.read(records.need_source, caller, source_id)
    return Page(list(commits.list_history(row)))


@get(
    "/sources/{source_id:str}/commits/{commit_sha:str}",
    summary="The rollouts and recipes of a commit, which is fetched if need be",
)
async def read_source_commit(
    source_id: FromPath[str],
    commit_sha: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> SourceContent:
    need_person(caller, "runs:write")
    commit = need_full_commit(commit_sha)
    row = await platform.database.read(records.need_source, caller, source_id)
    return await platform.fetcher.read_commit(row, commit)


def need_full_commit(word: str) -> str:
    commit = word.lower()
    if len(commit) != FULL_COMMIT or not set(commit) <= set("0123456789abcdef"):
        raise InvalidError("commit_sha must have all 40 digits.", field="commit_sha")
    return commit


@post("/sources/{source_id:str}/sync", summary="Fetch a source's newest commit now", status_code=200)
async def sync_source(
    source_id: FromPath[str],
    data: JSONBody[SyncRequest],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> SourceInfo:
    need_person(caller, "runs:write")
    row = await platform.database.read(records.need_source, caller, source_id)
    await platform.fetcher.sync(row, data.branch, cause=caller.user)
    return await read_source(platform, caller, row.id)


@delete("/sources/{source_id:str}", summary="Remove a source; what was built from it stays", status_code=204)
async def remove_source(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    need_person(caller, "environments:write")
    row = await platform.database.read(records.need_source, caller, source_id)
    work = audit.of(caller, "source.remove", f"{row.owner}/{row.name}", records.remove_source)
    await platform.database.write(work, row.id)


@post(
    "/sources/{source_id:str}/webhook",
    summary="A push to the repository, signed with the source's secret: fetch it",
    status_code=202,
    opt={**LENIENT, **SIGNED, **describe(is_open=True, body=dict[str, Any])},
)
async def take_webhook(source_id: FromPath[str], request: HttpRequest, platform: PlatformDependency) -> None:
    body = await request.body()
    row = await platform.database.read(find_source, source_id)
    if row is None or not is_signed(platform, row, request, body):  # does not reveal which of the two it is
        raise UnauthenticatedError(
            "The webhook is not signed with the source's secret.", code="bad_signature"
        )
    platform.fetcher.sync_soon(row)


def find_source(connection: Connection, source_id: str) -> Row[Any] | None:
    return connection.execute(select(sources).where(sources.c.id == source_id)).one_or_none()


def is_signed(platform: Platform, row: Row[Any], request: HttpRequest, body: bytes) -> bool:
    signature = next((request.headers[name] for name in SIGNATURE_HEADERS if name in request.headers), "")
    credentials = open_credentials(platform.vault, row.id, row.sealed)
    return credentials.signs(body, signature, request.headers.get(TOKEN_HEADER, ""))


router = Router(
    "",
    route_handlers=[
        add_source,
        list_sources,
        get_source,
        list_source_syncs,
        list_source_commits,
        read_source_commit,
        sync_source,
        remove_source,
        take_webhook,
    ],
    tags=["sources"],
)
