"""Requests to a server about datasets: push, find, read, download. Knows nothing of terminals."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from proctor.api.common import Page, Problem
from proctor.api.datasets import (
    LONGEST_COLUMNS,
    DatasetChange,
    DatasetInfo,
    DatasetPushResult,
    DatasetVersion,
)
from proctor.api.hub import Visibility
from proctor.api.people import Whoami
from proctor.client.connection import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    ServerConnection,
    ServerError,
    decode_answer,
)
from proctor.datasets.cache import DatasetCache
from proctor.datasets.references import DatasetReference
from proctor.errors import ConfigError, describe_os_error
from proctor.support.byte_blocks import BLOCK_BYTES, gather_blocks
from proctor.support.write_behind import WriteBehind

PUSH_SECONDS = 600.0
"""How long the server may be silent: it stores a large file before it answers."""
PREVIEW_BYTES = 2**20


class DatasetUpload(msgspec.Struct, frozen=True, kw_only=True):
    """A file to push, and what is known of it."""

    path: Path
    sha256: str
    format: str
    rows: int | None = None
    columns: tuple[str, ...] = ()
    visibility: Visibility | None = None
    description: str | None = None


def dataset_path(reference: DatasetReference) -> str:
    return f"/datasets/{quote(reference.owner, safe='')}/{quote(reference.name, safe='')}"


def version_path(reference: DatasetReference) -> str:
    return f"{dataset_path(reference)}/versions/{reference.version}"


# Pushing


async def push_dataset(
    server: ServerConnection, owner: str, name: str, upload: DatasetUpload
) -> DatasetPushResult:
    """Push a file; sent again however often, it is one version."""
    size = measure_file(upload.path)
    query = {
        "format": upload.format,
        "rows": upload.rows,
        "columns": encode_columns(upload.columns),
        "visibility": upload.visibility,
        "description": upload.description,
    }
    headers = {
        "content-type": "application/octet-stream",
        "content-length": str(size),
        "expect": "100-continue",  # a refusal comes before the file is sent
    }
    path = version_path(DatasetReference(owner, name, upload.sha256))
    answer = await server.ask(
        "PUT",
        path,
        body=lambda: read_blocks(upload.path, size),
        query=query,
        headers=headers,
        seconds=PUSH_SECONDS,
    )
    return decode_answer(answer, DatasetPushResult)


def measure_file(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {describe_os_error(error)}.") from error


def encode_columns(columns: Sequence[str]) -> str:
    """As many as fit, as JSON; those that no server would take are left out."""
    fitting: list[str] = []
    length = 2
    for column in columns:
        length += len(msgspec.json.encode(column).decode()) + 1
        if length > LONGEST_COLUMNS:
            break
        if column.isprintable() and len(column) <= 200:
            fitting.append(column)
    return msgspec.json.encode(fitting).decode()


async def read_blocks(path: Path, size: int) -> AsyncIterator[bytes]:
    """Exactly this many bytes of a file, with the next block read while the last is sent."""
    file = await asyncio.to_thread(path.open, "rb")
    with file:
        left = size
        reading = asyncio.ensure_future(asyncio.to_thread(file.read, min(BLOCK_BYTES, left)))
        try:
            while left:
                block = await reading
                if not block:
                    raise ConfigError(f"{path} became shorter while it was sent; push it again.")
                left -= len(block)
                reading = asyncio.ensure_future(asyncio.to_thread(file.read, min(BLOCK_BYTES, left)))
                yield block
        finally:
            await asyncio.wait([reading])


# Finding and reading


async def list_datasets(server: ServerConnection, **wanted: Any) -> Page[DatasetInfo]:
    return await server.get("/datasets", Page[DatasetInfo], **wanted)


async def read_dataset(server: ServerConnection, reference: DatasetReference) -> DatasetInfo:
    return await server.get(dataset_path(reference), DatasetInfo)


async def list_versions(server: ServerConnection, reference: DatasetReference) -> list[DatasetVersion]:
    return (await server.get(f"{dataset_path(reference)}/versions", Page[DatasetVersion])).items


async def read_version(server: ServerConnection, reference: DatasetReference) -> DatasetVersion:
    return await server.get(version_path(reference), DatasetVersion)


async def find_version(server: ServerConnection, reference: DatasetReference) -> DatasetVersion | None:
    """The version, or None if there is none, or none for this user."""
    try:
        return await read_version(server, reference)
    except ServerError as error:
        if error.status == 404:
            return None
        raise


async def find_own(server: ServerConnection, name: str) -> DatasetReference | None:
    """A dataset by its bare name: your own, that of the team in use, or that of the only team that has it."""
    page = await list_datasets(server, name=name, mine=True, limit=1000)
    owners = [each.owner for each in page.items]
    if not owners:
        return None
    user = (await server.get("/whoami", Whoami)).user.name
    for preferred in (user, server.context.team):
        if preferred in owners:
            return DatasetReference(str(preferred), name)
    if len(owners) > 1:
        known = ", ".join(f"{owner}/{name}" for owner in sorted(owners))
        raise ConfigError(f"Several of your teams have a dataset {name!r}; name one of them: {known}.")
    return DatasetReference(owners[0], name)


# Downloading


async def download(
    server: ServerConnection, reference: DatasetReference, version: DatasetVersion, target: Path
) -> None:
    """Write a version to a file and verify it; a connection that breaks off is tried again."""
    exact = reference.pin(version.sha256)
    pause = FIRST_PAUSE_SECONDS
    for left in reversed(range(server.tries)):
        try:
            await download_once(server, exact, target)
            return
        except ServerError as error:
            if not left or not error.is_transient:
                raise
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            if not left:
                message = f"{exact.short} could not be downloaded whole ({error}); try again."
                raise ServerError(Problem("unreachable", message)) from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


async def download_once(server: ServerConnection, exact: DatasetReference, target: Path) -> None:
    digest = hashlib.sha256()
    with target.open("wb") as file:

        def add(block: bytes) -> None:
            digest.update(block)
            file.write(block)

        async with server.open_file(f"{version_path(exact)}/content") as got, WriteBehind(add) as blocks:
            async for block in gather_blocks(got.content.iter_any()):
                await blocks.put(block)
    if digest.hexdigest() != exact.version:
        raise ServerError(Problem("damaged", f"{exact.short} arrived damaged; try again."))


async def fetch(
    server: ServerConnection, reference: DatasetReference, cache: DatasetCache
) -> tuple[DatasetVersion, Path]:
    """A version as a file of the cache, downloaded if it is not there."""
    version = await read_version(server, reference)
    found = await asyncio.to_thread(cache.find, version.sha256, version.format)
    if found is None:
        with cache.adding(version.sha256, version.format) as target:
            await download(server, reference, version, target)
        found = cache.path(version.sha256, version.format)
    return version, found


async def read_beginning(
    server: ServerConnection, reference: DatasetReference, target: Path, most: int = PREVIEW_BYTES
) -> bool:
    """Write the beginning of a version to a file, in whole lines. Returns whether that is all of it."""
    data = bytearray()
    async with server.open("GET", f"{version_path(reference)}/content") as got:
        async for chunk in got.content.iter_any():
            data += chunk
            if len(data) > most:
                break
    is_all = len(data) <= most
    if not is_all:
        del data[data.rfind(b"\n", 0, most) + 1 :]
    await asyncio.to_thread(target.write_bytes, bytes(data))
    return is_all


# Changing


async def change_dataset(
    server: ServerConnection, reference: DatasetReference, changes: DatasetChange
) -> DatasetInfo:
    return await server.patch(dataset_path(reference), changes, DatasetInfo)


async def delete_dataset(server: ServerConnection, reference: DatasetReference) -> None:
    """One version if one is named, otherwise the dataset with all of them."""
    await server.delete(version_path(reference) if reference.is_pinned else dataset_path(reference))
