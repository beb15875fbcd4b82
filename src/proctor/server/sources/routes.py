"""Sources over HTTP: add, list, sync, remove; and the webhooks of the servers they are on."""

from __future__ import annotations

from typing import Any

from litestar import Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection, Row, select

from proctor.api.common import Page
from proctor.api.people import Scope
from proctor.api.sources import AddedSource, NewSource, SourceInfo, SyncRequest
from proctor.server.db.tables import sources
from proctor.server.openapi.described import describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError, UnauthenticatedError
from proctor.server.request_fields import LENIENT
from proctor.server.requests import SIGNED, CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.sources import records
from proctor.server.sources.addresses import check_source_url
from proctor.server.sources.credentials import open_credentials

SIGNATURE_HEADERS = ("x-hub-signature-256", "x-gitea-signature")
TOKEN_HEADER = "x-gitlab-token"


def need_person(caller: Caller, scope: Scope) -> None:
    caller.need(scope)
    if caller.kind != "user":
        raise ForbiddenError("A run cannot use sources.")


@post("/sources", summary="Add a git repository to take rollouts from")
async def add_source(
    request: HttpRequest, data: JSONBody[NewSource], caller: CallerDependency, platform: PlatformDependency
) -> AddedSource:
    need_person(caller, "environments:write")
    found = await check_source_url(data, platform.settings)

    def work(connection: Connection) -> AddedSource:
        row, secret = records.add_source(connection, platform.vault, caller, data, found)
        return AddedSource(source=records.describe_source(row, platform.settings.url), webhook_secret=secret)

    return await run_idempotent(request, platform, caller, work, AddedSource)


@get("/sources", summary="Sources of yours and your teams")
async def list_sources(
    caller: CallerDependency, platform: PlatformDependency, repository: FromQuery[str | None] = None
) -> Page[SourceInfo]:
    need_person(caller, "environments:read")
    found = await platform.database.read(records.list_sources, caller, repository)
    return Page([records.describe_source(row, platform.settings.url) for row in found])


@get("/sources/{source_id:str}", summary="One source")
async def get_source(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> SourceInfo:
    need_person(caller, "environments:read")
    row = await platform.database.read(records.need_source, caller, source_id)
    return records.describe_source(row, platform.settings.url)


@post("/sources/{source_id:str}/sync", summary="Fetch a source's newest commit now", status_code=200)
async def sync_source(
    source_id: FromPath[str],
    data: JSONBody[SyncRequest],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> SourceInfo:
    need_person(caller, "runs:write")
    row = await platform.database.read(records.need_source, caller, source_id)
    await platform.fetcher.sync(row, data.branch)
    return records.describe_source(
        await platform.database.read(records.need_source, caller, row.id), platform.settings.url
    )


@delete("/sources/{source_id:str}", summary="Remove a source; what was built from it stays", status_code=204)
async def remove_source(
    source_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    need_person(caller, "environments:write")
    row = await platform.database.read(records.need_source, caller, source_id)
    await platform.database.write(records.remove_source, row.id)


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
    route_handlers=[add_source, list_sources, get_source, sync_source, remove_source, take_webhook],
    tags=["sources"],
)
