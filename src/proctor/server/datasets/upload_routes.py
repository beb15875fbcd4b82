"""Uploads of datasets over HTTP: a file in parts, continued where a connection broke."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from litestar import Router, delete, get, patch, post
from litestar.exceptions import ClientException
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.datasets import DatasetPushResult, DatasetUploadInfo, NewDatasetUpload
from proctor.server.audit.changes import AuditDependency
from proctor.server.datasets import uploads
from proctor.server.datasets.push import check_push
from proctor.server.datasets.routes import check_length, publish_blob
from proctor.server.openapi.described import BINARY, describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, ConflictError, InvalidError
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.settings import Settings

UPLOAD = "/dataset-uploads/{upload_id:str}"


@post("/datasets/{owner:str}/{name:str}/uploads", summary="Begin to send a file in parts")
async def begin_dataset_upload(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    data: JSONBody[NewDatasetUpload],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> DatasetUploadInfo:
    caller.need("environments:write")
    check_push(uploads.describe_push(owner, name, uploads.UNKNOWN_HASH, data))
    check_length(data.size, platform.settings.largest_dataset)
    now = time.time()
    await platform.uploads.remove_old(now)

    def work(connection: Connection) -> DatasetUploadInfo:
        uploads.remove_old(connection, now)
        row = uploads.add_upload(connection, caller, owner, name, data, platform.settings.quotas)
        return uploads.describe_upload(row, 0)

    return await run_idempotent(request, platform, caller, work, DatasetUploadInfo)


@get("/dataset-uploads", summary="Your uploads that are not finished")
async def list_dataset_uploads(
    caller: CallerDependency, platform: PlatformDependency
) -> Page[DatasetUploadInfo]:
    rows = await platform.database.read(uploads.list_uploads, caller)
    return Page([uploads.describe_upload(row, await platform.uploads.received(row.id)) for row in rows])


@get(UPLOAD, summary="How much of an upload has arrived")
async def read_dataset_upload(
    upload_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> DatasetUploadInfo:
    return await describe_progress(platform, caller, upload_id)


async def describe_progress(platform: Platform, caller: Caller, upload_id: str) -> DatasetUploadInfo:
    row = await platform.database.read(uploads.need_upload, caller, upload_id)
    return uploads.describe_upload(row, await platform.uploads.received(row.id))


@patch(
    UPLOAD,
    summary="Send the next part, which begins at `offset`; what arrives of a part that breaks off is kept",
    opt=describe(body=bytes, body_type=BINARY),
)
async def send_dataset_part(
    request: HttpRequest,
    upload_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    offset: FromQuery[int],
) -> DatasetUploadInfo:
    turn = platform.uploads.turn(upload_id)
    if turn.locked():
        raise ConflictError("Another part of this upload is arriving; wait for it.", code="in_use")
    async with turn:
        row = await platform.database.read(uploads.need_upload, caller, upload_id)
        try:
            with platform.uploads.alone(row.id):
                await platform.uploads.append(row.id, offset, row.size, request.stream())
        except ClientException as error:  # the client went away
            raise InvalidError("The part broke off; continue after what has arrived.") from error
        finally:
            if not await platform.database.write(uploads.touch_upload, row.id):
                await platform.uploads.remove(row.id)  # it was cancelled at another server
    return await describe_progress(platform, caller, upload_id)


@post(f"{UPLOAD}/finish", summary="Make a file that has arrived a version of its dataset")
async def finish_dataset_upload(
    request: HttpRequest,
    upload_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> DatasetPushResult:
    async with platform.uploads.turn(upload_id), AsyncExitStack() as stack:
        try:
            row = await platform.database.read(uploads.need_upload, caller, upload_id)
        except ApiError as unknown:  # it may have been finished by this very request, sent again
            return await run_idempotent(request, platform, caller, raising(unknown), DatasetPushResult)
        stack.enter_context(platform.uploads.alone(row.id))
        received = await platform.uploads.received(row.id)
        if received != row.size:
            raise ConflictError(
                f"{received:,} of {row.size:,} bytes have arrived; send the rest.",
                code="upload_incomplete",
                received=received,
            )
        async with platform.uploads.whole(row.id) as file:
            scan = await platform.inspector.count(row.person, file, row.format)
            if scan.problem or not scan.total:
                problem = scan.problem or "The file has no rows."
                raise InvalidError(problem, code="unreadable_rows", field="file")
            blob = await platform.blobs.adopt(file)
        push = uploads.describe_push(row.owner, row.name, blob.sha256, row, scan.total, scan.columns)

        async def write(publish: Callable[[Connection], DatasetPushResult]) -> DatasetPushResult:
            def work(connection: Connection) -> DatasetPushResult:
                uploads.remove_upload(connection, row.id)  # first: the file needs the room it reserved
                return publish(connection)

            return await run_idempotent(request, platform, caller, work, DatasetPushResult)

        made = await publish_blob(platform, caller, audit, push, blob, write)
        await platform.uploads.remove(row.id)
    return made


def raising(error: Exception) -> Callable[[Connection], DatasetPushResult]:
    def work(_: Connection) -> DatasetPushResult:
        raise error

    return work


@delete(UPLOAD, summary="Cancel an upload", status_code=204)
async def cancel_dataset_upload(
    upload_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    async with platform.uploads.turn(upload_id):  # an arriving part takes room until its end
        row = await platform.database.read(uploads.need_upload, caller, upload_id)
        with platform.uploads.alone(row.id):
            await platform.database.write(uploads.remove_upload, row.id)
            await platform.uploads.remove(row.id)


def create_uploads_router(settings: Settings) -> Router:
    parts = Router("", route_handlers=[send_dataset_part], request_max_body_size=settings.largest_dataset)
    others = [
        begin_dataset_upload,
        list_dataset_uploads,
        read_dataset_upload,
        finish_dataset_upload,
        cancel_dataset_upload,
    ]
    return Router("", route_handlers=[parts, *others], tags=["datasets"])
