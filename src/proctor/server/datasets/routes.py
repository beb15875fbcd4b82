"""Datasets over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any, BinaryIO

from litestar import Router, delete, get, patch, put
from litestar.exceptions import ClientException
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from litestar.status_codes import HTTP_201_CREATED
from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from proctor.api.common import Page
from proctor.api.datasets import (
    DatasetChange,
    DatasetFormat,
    DatasetInfo,
    DatasetPushResult,
    DatasetVersion,
)
from proctor.api.hub import Visibility
from proctor.server.blobs import BLOCK_BYTES, Blob
from proctor.server.datasets import records
from proctor.server.datasets.access import need_dataset
from proctor.server.datasets.push import DatasetPush, check_push, check_room, parse_columns, publish
from proctor.server.openapi.described import BINARY, OPEN, describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ConflictError, InvalidError, NotFoundError, TooLargeError
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency
from proctor.server.runs.streams import counted_stream
from proctor.server.settings import Settings
from proctor.server.unused_files import remove_unused_files

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
    expected = check_length(request.headers.get("content-length"), most)
    await platform.database.read(check_room, caller, push, expected, quotas)
    try:
        blob = await platform.blobs.receive(request.stream(), most)
    except ClientException as error:  # the client went away
        raise InvalidError("The push broke off; send it again.") from error
    return await publish_blob(platform, caller, push, blob)


async def publish_blob(
    platform: Platform, caller: Caller, push: DatasetPush, blob: Blob
) -> DatasetPushResult:
    """Make a file that has arrived a version, or remove it."""

    def work(connection: Connection) -> DatasetPushResult:
        if not platform.blobs.has(blob.sha256):
            raise ConflictError("The file of this push was deleted at the same moment; push again.")
        check_room(connection, caller, push, blob.size, platform.settings.quotas)
        return publish(connection, caller, push, blob)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(remove_unused_files, platform, [blob.sha256])
        if blob.sha256 != push.sha256:
            raise InvalidError(
                f"The file that arrived has the SHA-256 {blob.sha256}, not {push.sha256}; was it changed "
                f"meanwhile? Push it again.",
                code="content_mismatch",
            )
        async with platform.publishing:
            try:
                return await platform.database.write(work)
            except IntegrityError as error:
                raise ConflictError("Another push published it at the same moment; push again.") from error


def check_length(header: str | None, most: int) -> int:
    """How many bytes are announced; refused before they are sent if they are too many."""
    size = int(header) if header is not None and header.isdecimal() else 1
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
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Stream:
    dataset, row = await platform.database.read(records.resolve_version, caller, owner, name, sha256)
    file = await asyncio.to_thread(open_content, platform, row)
    return Stream(
        counted_stream(platform, caller, read_blocks(file)),
        media_type=BINARY,
        headers={
            "content-length": str(row.size),
            "etag": f'"{row.sha256}"',
            "content-disposition": f'attachment; filename="{dataset.name}.{row.format}"',
        },
    )


def open_content(platform: Platform, version: Row[Any]) -> BinaryIO:
    """An open file stays readable to its end, also if the version is deleted meanwhile."""
    try:
        return platform.blobs.path(version.sha256).open("rb")
    except FileNotFoundError as error:
        raise NotFoundError("This version was deleted at this moment.") from error


async def read_blocks(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    with file:
        while block := await asyncio.to_thread(file.read, BLOCK_BYTES):
            yield block


# Changing


@patch(DATASET, summary="Change its visibility or description")
async def change_dataset(
    owner: FromPath[str],
    name: FromPath[str],
    data: JSONBody[DatasetChange],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> DatasetInfo:
    return await platform.database.write(records.change_dataset, caller, owner, name, data)


@delete(DATASET, summary="Delete it with all its versions; runs keep their results")
async def delete_dataset(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    files = await platform.database.write(records.remove_dataset, caller, owner, name)
    await remove_unused_files(platform, files)


@delete(VERSION, summary="Delete one version")
async def delete_dataset_version(
    owner: FromPath[str],
    name: FromPath[str],
    sha256: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    files = await platform.database.write(records.remove_version, caller, owner, name, sha256)
    await remove_unused_files(platform, files)


def create_datasets_router(settings: Settings) -> Router:
    pushes = Router("", route_handlers=[push_dataset], request_max_body_size=settings.largest_dataset)
    reads = [
        list_datasets,
        read_dataset,
        list_dataset_versions,
        read_dataset_version,
        read_dataset_content,
        change_dataset,
        delete_dataset,
        delete_dataset_version,
    ]
    return Router("", route_handlers=[pushes, *reads], tags=["datasets"])
