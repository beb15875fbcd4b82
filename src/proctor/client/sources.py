"""Sources and submissions on a server: one function per request. Knows nothing of git."""

from __future__ import annotations

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
)
from proctor.client import datasets
from proctor.client.connection import ServerConnection, decode_answer
from proctor.datasets.references import DatasetReference

FETCH_SECONDS = 400.0
"""Longer than a server spends on one fetch, so that it can say why it gave up."""


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


async def submit(server: ServerConnection, new: NewSubmission, file: Path, key: str) -> RunInfo:
    """Start a run; pushes its dataset first, if the server does not have that version."""
    wanted = new.dataset
    reference = DatasetReference(wanted.owner, wanted.name, wanted.sha256)
    if await datasets.find_version(server, reference) is None:
        upload = datasets.DatasetUpload(path=file, sha256=wanted.sha256, format=wanted.format)
        await datasets.push_dataset(server, wanted.owner, wanted.name, upload)
    headers = {IDEMPOTENCY_HEADER: key}
    body = msgspec.json.encode(new)
    answer = await server.ask("POST", "/submissions", body=body, headers=headers, seconds=FETCH_SECONDS)
    return decode_answer(answer, RunInfo)
