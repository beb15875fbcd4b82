"""The hub over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from litestar import Response, Router, delete, get, patch, post, put
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_202_ACCEPTED, HTTP_204_NO_CONTENT
from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from proctor.api.common import Page
from proctor.api.field_problems import decode_query
from proctor.api.hub import (
    LARGEST_TASKS,
    CheckAssignment,
    CheckResult,
    Collaborator,
    EnvironmentChange,
    EnvironmentFacets,
    EnvironmentInfo,
    FileText,
    Fork,
    PushForm,
    PushResult,
    TaskInfo,
    Version,
)
from proctor.server.audit.changes import AuditDependency, name_changes
from proctor.server.hub import catalog, checks, records, tasks
from proctor.server.hub.access import need_environment
from proctor.server.hub.announcements import change_and_announce
from proctor.server.hub.push import check_may_push, publish, read_push
from proctor.server.hub.push_form import PushReceiver, ReceivedPush
from proctor.server.hub.sources import read_path
from proctor.server.openapi.described import BINARY, OPEN, describe
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, InvalidError, NotFoundError
from proctor.server.quotas import check_storage
from proctor.server.request_fields import LENIENT, with_query
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    SlugDependency,
    check_tables,
    join_slug,
    need_length,
    run_idempotent,
)
from proctor.server.settings import Settings
from proctor.server.storage.downloads import send_file
from proctor.server.storage.records import refer_to_files

MOST_TEXT = 2**20
TEXT_BYTES = 100_000
ENVIRONMENT = "/environments/{owner:str}/{name:str}"
VERSION = ENVIRONMENT + "/versions/{version:str}"


# Pushing


@post(
    "/environments",
    summary="Push a version: multipart/form-data of `form` (a PushForm as JSON), `wheel` and `source`",
    status_code=HTTP_201_CREATED,
    opt=describe(body=PushForm, body_type="multipart/form-data"),
)
async def push(
    request: HttpRequest, caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> PushResult:
    caller.need("environments:write")
    expected = need_length(request.headers)
    most = min(expected, platform.settings.largest_push)
    arrivals = PushReceiver(request, platform.blobs, most)

    async def check(form: PushForm, wheel_name: str) -> None:
        new_name = await platform.database.read(check_may_push, caller, form, wheel_name)
        await platform.database.read(check_storage, caller.user, platform.settings.quotas)
        if new_name is not None:
            await platform.main_index.check(new_name)

    async with AsyncExitStack() as stack:
        stack.enter_context(platform.arriving.taking(caller.user, expected))
        stack.push_async_callback(lambda: platform.blobs.remove_unused(arrivals.kept))
        received = await arrivals.receive(check)
        ready = await read_push(received, platform.blobs)

        def work(connection: Connection) -> PushResult:
            refer_to_files(connection, arrivals.kept)
            size = received.wheel.size + received.source.size
            check_storage(connection, caller.user, platform.settings.quotas, size)
            return publish(connection, caller, ready)

        try:
            result = await run_idempotent(
                request,
                platform,
                caller,
                audit.of(caller, "environment.push", name_pushed, work),
                PushResult,
                content=encode_push(received),
            )
        except IntegrityError as error:
            raise ConflictError("Another push published it at the same moment; push again.") from error
        return result


def name_pushed(result: PushResult) -> str | None:
    """What a push changed, if it did."""
    made = result.environment
    return f"{made.owner}/{made.name}@{result.version.version}" if result.created else None


def encode_push(received: ReceivedPush) -> bytes:
    return msgspec.json.encode((received.form, received.wheel_name, received.wheel, received.source))


# Finding and reading


@get(
    "/environments",
    summary="Environments you may read",
    opt={**OPEN, **with_query(catalog.EnvironmentQuery)},
)
async def list_environments(
    request: HttpRequest, caller: CallerDependency, platform: PlatformDependency
) -> Page[EnvironmentInfo]:
    wanted = decode_query(request.query_params.multi_items(), catalog.EnvironmentQuery)
    return await platform.database.read(catalog.list_environments, caller, wanted)


@get(
    "/environments/facets",
    summary="What they can be narrowed to, with how many environments each value has",
    opt=OPEN,
)
async def read_environment_facets(
    caller: CallerDependency,
    platform: PlatformDependency,
    search: FromQuery[str | None] = None,
    mine: FromQuery[bool] = False,
) -> EnvironmentFacets:
    wanted = catalog.EnvironmentQuery(search=search, mine=mine)
    return await platform.database.read(catalog.count_facets, caller, wanted)


@get(ENVIRONMENT, summary="One environment, with its newest version", opt=OPEN)
async def read_environment(
    environment: SlugDependency, caller: CallerDependency, platform: PlatformDependency
) -> EnvironmentInfo:
    return await platform.database.read(records.describe_environment, caller, environment)


@get(f"{ENVIRONMENT}/versions", summary="Its versions, the newest first", opt=OPEN)
async def list_versions(
    environment: SlugDependency, caller: CallerDependency, platform: PlatformDependency
) -> Page[Version]:
    def work(connection: Connection) -> list[Version]:
        row = need_environment(connection, caller, environment)
        return [records.describe_version(each) for each in records.versions_of(connection, [row.id])]

    return Page(await platform.database.read(work))


async def find_version(
    environment: SlugDependency,
    version: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Row[Any]:
    _, row = await platform.database.read(records.resolve_version, caller, f"{environment}@{version}")
    return row


VersionDependency = NamedDependency[Row[Any]]
"""The version that the path names, if the caller may read it."""


@get(VERSION, summary="One version, by its number, `latest`, or a prefix of its content hash", opt=OPEN)
async def read_version(version_row: VersionDependency) -> Version:
    return records.describe_version(version_row)


@get(f"{VERSION}/files", summary="A file of its source, or the content of a folder", opt=OPEN)
async def read_files(
    version_row: VersionDependency,
    platform: PlatformDependency,
    path: FromQuery[str] = "",
    max_bytes: FromQuery[int] = TEXT_BYTES,
) -> FileText:
    if not 1 <= max_bytes <= MOST_TEXT:
        raise InvalidError(f"max_bytes must be between 1 and {MOST_TEXT}.", field="max_bytes")
    try:
        async with platform.blobs.local(version_row.source_sha256) as source:
            return await asyncio.to_thread(read_path, source, version_row.files, path, max_bytes)
    except FileNotFoundError as error:
        raise NotFoundError("This version was just deleted.") from error


@get(f"{VERSION}/tasks", summary="Its tasks, as its check found them")
async def list_tasks(
    environment: SlugDependency,
    version: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    slug: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
) -> Page[TaskInfo]:
    wanted = tasks.TaskListing(slug=slug, limit=limit, cursor=cursor)

    def work(connection: Connection) -> Page[TaskInfo]:
        _, row = records.resolve_version(connection, caller, f"{environment}@{version}")
        return tasks.list_tasks(connection, row, wanted)

    return await platform.database.read(work)


@get(f"{VERSION}/source", summary="Its source, as .tar.gz", media_type="application/gzip", opt=OPEN)
async def read_source(
    name: FromPath[str], version_row: VersionDependency, request: HttpRequest, platform: PlatformDependency
) -> Stream:
    file_name, sha256 = f"{name}-{version_row.version}.tar.gz", version_row.source_sha256
    return await send_file(platform, request, sha256, file_name, media_type="application/gzip")


@get(f"{VERSION}/wheel", summary="Its wheel", media_type=BINARY, opt=OPEN)
async def read_wheel(
    version_row: VersionDependency, request: HttpRequest, platform: PlatformDependency
) -> Stream:
    return await send_file(platform, request, version_row.wheel_sha256, version_row.wheel_name)


# Changing


@patch(ENVIRONMENT, summary="Change its visibility or description")
async def change_environment(
    environment: SlugDependency,
    data: JSONBody[EnvironmentChange],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> EnvironmentInfo:
    work = audit.of(caller, "environment.change", environment, records.change_environment, name_changes(data))
    changed = await change_and_announce(platform, environment, work, caller, environment, data)
    platform.notifier.notify("sharing")  # who may read its runs
    return changed


@delete(ENVIRONMENT, summary="Delete it with all its versions; runs keep their results")
async def delete_environment(
    environment: SlugDependency,
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    work = audit.of(caller, "environment.delete", environment, records.remove_environment)
    files = await change_and_announce(platform, environment, work, caller, environment)
    await platform.blobs.remove_unused(files)


@delete(VERSION, summary="Delete one version; its number can be pushed again")
async def delete_version(
    environment: SlugDependency,
    version: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    work = audit.of(caller, "version.delete", f"{environment}@{version}", records.remove_version)
    files = await change_and_announce(platform, environment, work, caller, environment, version)
    await platform.blobs.remove_unused(files)


@post(f"{ENVIRONMENT}/fork", summary="Copy a version into your own namespace")
async def fork_environment(
    request: HttpRequest,
    environment: SlugDependency,
    data: JSONBody[Fork],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> EnvironmentInfo:
    caller.need("environments:write")

    def work(connection: Connection) -> EnvironmentInfo:
        check_storage(connection, caller.user, platform.settings.quotas)
        return records.fork_environment(connection, caller, environment, data)

    forked = audit.of(caller, "environment.fork", name_forked, work, {"from": environment})
    return await run_idempotent(request, platform, caller, forked, EnvironmentInfo)


def name_forked(made: EnvironmentInfo) -> str:
    return f"{made.owner}/{made.name}"


@get(f"{ENVIRONMENT}/collaborators", summary="The users and teams with a role on it")
async def list_collaborators(
    environment: SlugDependency, caller: CallerDependency, platform: PlatformDependency
) -> Page[Collaborator]:
    return Page(await platform.database.read(records.list_collaborators, caller, environment))


@put(f"{ENVIRONMENT}/collaborators", summary="Grant a user or a team a role on it")
async def put_collaborator(
    environment: SlugDependency,
    data: JSONBody[Collaborator],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Collaborator:
    details = {"holder": data.name, "role": data.role}
    work = audit.of(caller, "role.set", environment, records.put_collaborator, details)
    changed = await change_and_announce(platform, environment, work, caller, environment, data)
    platform.notifier.notify("sharing")
    return changed


@delete(f"{ENVIRONMENT}/collaborators/{{who:str}}", summary="Revoke a role")
async def delete_collaborator(
    environment: SlugDependency,
    who: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    work = audit.of(caller, "role.remove", environment, records.remove_collaborator, {"holder": who})
    await change_and_announce(platform, environment, work, caller, environment, who)
    platform.notifier.notify("sharing")


# Checks


@post(f"{VERSION}/check", summary="Have it checked again", status_code=HTTP_202_ACCEPTED)
async def check_again(
    environment: SlugDependency,
    version: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Version:
    def work(connection: Connection) -> Version:
        _, row = records.resolve_version(connection, caller, f"{environment}@{version}", "write")
        checks.requeue(connection, row.id)
        return records.describe_version(
            records.resolve_version(connection, caller, f"{environment}@{version}")[1]
        )

    return await change_and_announce(platform, environment, work)


@post(
    "/hosts/checks/claims",
    summary="For hosts: claim a version to check",
    status_code=HTTP_200_OK,
    opt={**LENIENT, **describe(nothing=True)},
)
async def claim_check(
    caller: CallerDependency, platform: PlatformDependency
) -> Response[CheckAssignment | None]:
    need_host(caller)
    order = await platform.database.write(checks.claim_check, caller)
    return Response(order, status_code=HTTP_200_OK if order else HTTP_204_NO_CONTENT)


@post(
    "/hosts/checks/{version_id:str}",
    summary="For hosts: report the result of a check",
    status_code=HTTP_204_NO_CONTENT,
    opt=LENIENT,
    request_max_body_size=2 * LARGEST_TASKS,
)
async def report_check(
    version_id: FromPath[str],
    data: JSONBody[CheckResult],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    need_host(caller)
    check_tables(data)
    await platform.database.write(checks.record_result, caller, version_id, data)


def need_host(caller: Caller) -> None:
    if caller.kind != "host":
        raise ForbiddenError("Only hosts that play runs may do this.")


def create_hub_router(settings: Settings) -> Router:
    pushes = Router("", route_handlers=[push], request_max_body_size=largest_request(settings))
    routes: list[Callable[..., Any] | Any] = [
        pushes,
        list_environments,
        read_environment_facets,
        read_environment,
        list_versions,
        read_version,
        read_files,
        list_tasks,
        read_source,
        read_wheel,
        change_environment,
        delete_environment,
        delete_version,
        fork_environment,
        list_collaborators,
        put_collaborator,
        delete_collaborator,
        check_again,
        claim_check,
        report_check,
    ]
    found: dict[str, Provide | Callable[..., Any]] = {
        "environment": Provide(join_slug, sync_to_thread=False),
        "version_row": Provide(find_version),
    }
    return Router("", route_handlers=routes, dependencies=found, tags=["hub"])


def largest_request(settings: Settings) -> int:
    """Two files and the multipart framing."""
    return 2 * settings.largest_push + settings.largest_body
