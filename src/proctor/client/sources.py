"""Sources and submissions on a server: one function per request. Knows nothing of git."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import msgspec

from proctor.api.common import IDEMPOTENCY_HEADER, Page
from proctor.api.runs import RunInfo
from proctor.api.sources import (
    AddedSource,
    NewSource,
    NewSubmission,
    SourceInfo,
    SubmissionPreview,
    SyncRequest,
    UploadedFile,
)
from proctor.client.connection import ServerConnection, ServerError, decode_answer

FETCH_SECONDS = 400.0
"""Longer than a server spends on one fetch, so that it can say why it gave up."""
CHUNK_BYTES = 2**18
UNKNOWN_FILE = "unknown_data_file"


async def add_source(server: ServerConnection, new: NewSource) -> AddedSource:
    return await server.post("/sources", new, AddedSource)


async def list_sources(server: ServerConnection, repository: str | None = None) -> list[SourceInfo]:
    return (await server.get("/sources", Page[SourceInfo], repository=repository)).items


async def sync_source(server: ServerConnection, source_id: str, branch: str) -> SourceInfo:
    body = msgspec.json.encode(SyncRequest(branch=branch))
    path = f"/sources/{quote(source_id, safe='')}/sync"
    return decode_answer(await server.ask("POST", path, body=body, seconds=FETCH_SECONDS), SourceInfo)


async def remove_source(server: ServerConnection, source_id: str) -> None:
    await server.delete(f"/sources/{quote(source_id, safe='')}")


async def preview(server: ServerConnection, new: NewSubmission) -> SubmissionPreview:
    body = msgspec.json.encode(new)
    answer = await server.ask("POST", "/submissions/preview", body=body, seconds=FETCH_SECONDS)
    return decode_answer(answer, SubmissionPreview)


async def submit(server: ServerConnection, new: NewSubmission, dataset: Path, key: str) -> RunInfo:
    """Start a run; uploads the dataset if the server does not have its content."""
    try:
        return await send(server, new, key)
    except ServerError as error:
        if error.problem.code != UNKNOWN_FILE:
            raise
    await upload(server, dataset, new.dataset.sha256)
    return await send(server, new, key)


async def send(server: ServerConnection, new: NewSubmission, key: str) -> RunInfo:
    headers = {IDEMPOTENCY_HEADER: key}
    body = msgspec.json.encode(new)
    answer = await server.ask("POST", "/submissions", body=body, headers=headers, seconds=FETCH_SECONDS)
    return decode_answer(answer, RunInfo)


async def upload(server: ServerConnection, file: Path, sha256: str) -> UploadedFile:
    path = f"/data-files/{sha256}"
    async with server.open("PUT", path, body=read_chunks(file), seconds=FETCH_SECONDS) as answer:
        return decode_answer(await answer.read(), UploadedFile)


async def read_chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk
