"""Datasets over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from litestar import Router, delete, get, patch, put
from litestar.exceptions import ClientException
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from litestar.status_codes import HTTP_201_CREATED
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from proctor.api.common import Page
from proctor.api.datasets import (
    DatasetChange,
    DatasetFormat,
    DatasetInfo,
    DatasetPreview,
    DatasetPushResult,
    DatasetVersion,
)
from proctor.api.hub import Visibility
from proctor.api.runs import RunInfo
from proctor.server.audit.changes import Audit, AuditDependency, name_changes
from proctor.server.datasets import records
from proctor.server.datasets.access import need_dataset
from proctor.server.datasets.push import DatasetPush, check_push, check_room, parse_columns, publish
from proctor.server.openapi.described import BINARY, OPEN, describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ConflictError, InvalidError, NotFoundError, TooLargeError
from proctor.server.reading.listed_runs import describe_runs
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, need_length
from proctor.server.runs.sharing import readable_runs
from proctor.server.runs.streams import counted_stream, name_reader
from proctor.server.settings import Settings
from proctor.server.storage.blobs import Blob
from proctor.server.storage.downloads import send_file
from proctor.server.storage.records import refer_to_files

WritePush = Callable[[Callable[[Connection], DatasetPushResult]], Awaitable[DatasetPushResult]]
MOST_PREVIEWED = 100
DATASET = "/datasets/{owner:str}/{name:str}"
VERSION = DATASET + "/versions/{sha256:str}"


# Pushing


@put(
    VERSION,
    summary="Push a file, by its SHA-256; sending it again changes nothing",
    status_code=HTTP_201_CREATED,
    opt=describe(body=bytes, body_type=BINARY),
)
async def push_dataset(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
    format: FromQuery[DatasetFormat],  # noqa: A002
    rows: FromQuery[int | None] = None,
    columns: FromQuery[str] = "[]",
    visibility: FromQuery[Visibility | None] = None,
    description: FromQuery[str | None] = None,
) -> DatasetPushResult:
    push = DatasetPush(
        owner=owner,
        name=name,
        sha256=sha256,
        format=format,
        rows=rows,
        columns=parse_columns(columns),
        visibility=visibility,
        description=description,
    )
    check_push(push)
    most, quotas = platform.settings.largest_dataset, platform.settings.quotas
    expected = check_length(need_length(request.headers), most)
    with platform.arriving.taking(caller.user, expected) as arriving:
        await platform.database.read(check_room, caller, push, arriving, quotas)
        try:
            blob = await platform.blobs.receive(request.stream(), expected)
        except ClientException as error:  # the client went away
            raise InvalidError("The push broke off; send it again.") from error
        return await publish_blob(platform, caller, audit, push, blob)


async def publish_blob(
    platform: Platform,
    caller: Caller,
    audit: Audit,
    push: DatasetPush,
    blob: Blob,
    write: WritePush | None = None,
) -> DatasetPushResult:
    """Make a file that has arrived a version, or remove it. `write` runs the transaction, to add to it."""

    def work(connection: Connection) -> DatasetPushResult:
        refer_to_files(connection, [blob.sha256])
        check_room(connection, caller, push, blob.size, platform.settings.quotas)
        return publish(connection, caller, push, blob)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(platform.blobs.remove_unused, [blob.sha256])
        if blob.sha256 != push.sha256:
            raise InvalidError(
                f"The file that arrived has the SHA-256 {blob.sha256}, not {push.sha256}; was it changed "
                f"meanwhile? Push it again.",
                code="content_mismatch",
            )
        try:
            recorded = audit.of(caller, "dataset.push", name_pushed, work)
            return await (platform.database.write(recorded) if write is None else write(recorded))
        except IntegrityError as error:
            raise ConflictError("Another push published it at the same moment; push again.") from error


def name_pushed(result: DatasetPushResult) -> str | None:
    """What a push changed, if it did."""
    made = result.dataset
    return f"{made.owner}/{made.name}" if result.created else None


def check_length(size: int, most: int) -> int:
    """How many bytes are announced; refused before they are sent if they are too many."""
    if size > most:
        raise TooLargeError(
            f"A dataset may have at most {most // 2**20:,} MB, and this one has {size // 2**20:,} MB; "
            f"push it in parts.",
            most_bytes=most,
        )
    return size


# Finding and reading


@get("/datasets", summary="Datasets you may read, those changed last first", opt=OPEN)
async def list_datasets(
    caller: CallerDependency,
    platform: PlatformDependency,
    owner: FromQuery[str | None] = None,
    name: FromQuery[str | None] = None,
    visibility: FromQuery[Visibility | None] = None,
    mine: FromQuery[bool] = False,
    limit: FromQuery[int] = 50,
    cursor: FromQuery[str | None] = None,
) -> Page[DatasetInfo]:
    wanted = records.DatasetQuery(
        owner=owner, name=name, visibility=visibility, mine=mine, limit=limit, cursor=cursor
    )
    return await platform.database.read(records.list_datasets, caller, wanted)


@get(DATASET, summary="One dataset, with its latest version", opt=OPEN)
async def read_dataset(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> DatasetInfo:
    return await platform.database.read(records.describe_dataset, caller, owner, name)


@get(f"{DATASET}/versions", summary="Its versions, those pushed last first", opt=OPEN)
async def list_dataset_versions(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[DatasetVersion]:
    def work(connection: Connection) -> list[DatasetVersion]:
        row = need_dataset(connection, caller, owner, name)
        return [records.describe_version(each) for each in records.versions_of(connection, [row.id])]

    return Page(await platform.database.read(work))


@get(VERSION, summary="One version, by `latest`, its hash or the beginning of its hash", opt=OPEN)
async def read_dataset_version(
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> DatasetVersion:
    _, row = await platform.database.read(records.resolve_version, caller, owner, name, sha256)
    return records.describe_version(row)


@get(f"{VERSION}/content", summary="Its file", media_type=BINARY, opt=OPEN)
async def read_dataset_content(
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Stream:
    dataset, row = await platform.database.read(records.resolve_version, caller, owner, name, sha256)
    counted = partial(counted_stream, platform, caller)
    return await send_file(platform, request, row.sha256, f"{dataset.name}.{row.format}", wrap=counted)


@get(f"{VERSION}/preview", summary="Its first rows, as text", opt=OPEN)
async def preview_dataset(
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    rows: FromQuery[int] = 20,
) -> DatasetPreview:
    if not 1 <= rows <= MOST_PREVIEWED:
        raise InvalidError(f"rows must be between 1 and {MOST_PREVIEWED}.", field="rows")
    _, version = await platform.database.read(records.resolve_version, caller, owner, name, sha256)
    reader = name_reader(caller)
    with platform.previews.taking(reader):
        try:
            async with platform.blobs.local(version.sha256) as file:
                found = await platform.inspector.preview(reader, file, version.format, rows)
        except FileNotFoundError as error:
            raise NotFoundError("This version was just deleted.") from error
    return DatasetPreview(
        columns=found.columns, rows=found.rows, is_whole=found.is_whole, problem=found.problem
    )


@get(f"{DATASET}/runs", summary="The runs that use it and that you may read, those started last first")
async def list_dataset_runs(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[RunInfo]:
    def work(connection: Connection) -> list[RunInfo]:
        dataset = need_dataset(connection, caller, owner, name)
        return describe_runs(
            connection, caller, records.list_runs(connection, dataset.id, readable_runs(connection, caller))
        )

    caller.need("runs:read")
    return Page(await platform.database.read(work))


# Changing


@patch(DATASET, summary="Change its visibility or description")
async def change_dataset(
    owner: FromPath[str],
    name: FromPath[str],
    data: JSONBody[DatasetChange],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> DatasetInfo:
    work = audit.of(caller, "dataset.change", f"{owner}/{name}", records.change_dataset, name_changes(data))
    return await platform.database.write(work, caller, owner, name, data)


@delete(DATASET, summary="Delete it with all its versions; runs keep their results")
async def delete_dataset(
    owner: FromPath[str],
    name: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    work = audit.of(caller, "dataset.delete", f"{owner}/{name}", records.remove_dataset)
    files = await platform.database.write(work, caller, owner, name)
    await platform.blobs.remove_unused(files)


@delete(VERSION, summary="Delete one version")
async def delete_dataset_version(
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    target = f"{owner}/{name}@{sha256}"
    work = audit.of(caller, "version.delete", target, records.remove_version)
    files = await platform.database.write(work, caller, owner, name, sha256)
    await platform.blobs.remove_unused(files)


def create_datasets_router(settings: Settings) -> Router:
    pushes = Router("", route_handlers=[push_dataset], request_max_body_size=settings.largest_dataset)
    reads = [
        list_datasets,
        read_dataset,
        list_dataset_versions,
        read_dataset_version,
        read_dataset_content,
        preview_dataset,
        list_dataset_runs,
        change_dataset,
        delete_dataset,
        delete_dataset_version,
    ]
    return Router("", route_handlers=[pushes, *reads], tags=["datasets"])
