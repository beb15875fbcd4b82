"""Requests to a server's hub: push, find, read, download, change. Knows nothing of packing or of
terminals."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from proctor.api.common import IDEMPOTENCY_HEADER, Page, Problem
from proctor.api.hub import (
    Collaborator,
    EnvironmentChange,
    EnvironmentInfo,
    FileText,
    Fork,
    PushForm,
    PushResult,
    TaskInfo,
    Version,
)
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.errors import ConfigError

PUSH_SECONDS = 600.0
CHECK_POLL_SECONDS = 1.0
CHECK_SECONDS = 1800.0
LATEST = "latest"
TASKS_A_PAGE = 1000


class EnvironmentReference(msgspec.Struct, frozen=True):
    """`owner/name`, or `owner/name@version`."""

    slug: str
    version: str = LATEST

    @property
    def path(self) -> str:
        return f"/environments/{self.slug}"

    @property
    def version_path(self) -> str:
        return f"{self.path}/versions/{self.version}"

    @property
    def has_version(self) -> bool:
        return self.version != LATEST


def parse_reference(word: str) -> EnvironmentReference:
    slug, _, version = word.partition("@")
    owner, slash, name = slug.partition("/")
    if not slash or not owner or not name or "/" in name or "/" in version:
        raise ConfigError(f"{word!r} is not an environment on a hub; write owner/name or owner/name@version.")
    return EnvironmentReference(slug, version or LATEST)


async def push(server: ServerConnection, form: PushForm, wheel: Path, source: Path) -> PushResult:
    """Push a version once, however often it must be sent."""

    def body() -> aiohttp.FormData:
        made = aiohttp.FormData(default_to_multipart=True)
        made.add_field("form", msgspec.json.encode(form).decode(), content_type="application/json")
        for name, path in (("wheel", wheel), ("source", source)):
            made.add_field(name, path.open("rb"), filename=path.name, content_type="application/octet-stream")
        return made

    headers = {IDEMPOTENCY_HEADER: secrets.token_hex(16)}
    answer = await server.ask("POST", "/environments", body=body, headers=headers, seconds=PUSH_SECONDS)
    return decode_answer(answer, PushResult)


async def wait_for_check(server: ServerConnection, slug: str, version: str) -> Version:
    """Wait for the check of a version."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            while True:
                version_info = await read_version(server, EnvironmentReference(slug, version))
                if version_info.check.status not in ("pending", "running"):
                    return version_info
                await asyncio.sleep(CHECK_POLL_SECONDS)
    except TimeoutError:
        message = f"The check of {slug} {version} did not finish in {CHECK_SECONDS:g} s; is a host running?"
        raise ServerError(Problem("check_timeout", message)) from None


async def list_environments(server: ServerConnection, **wanted: Any) -> Page[EnvironmentInfo]:
    return await server.get("/environments", Page[EnvironmentInfo], **wanted)


async def read_environment(server: ServerConnection, wanted: EnvironmentReference) -> EnvironmentInfo:
    return await server.get(wanted.path, EnvironmentInfo)


async def list_versions(server: ServerConnection, wanted: EnvironmentReference) -> list[Version]:
    return (await server.get(f"{wanted.path}/versions", Page[Version])).items


async def list_known_versions(server: ServerConnection, wanted: EnvironmentReference) -> list[Version]:
    """Its versions; empty if the environment does not exist yet."""
    try:
        return await list_versions(server, wanted)
    except ServerError as error:
        if error.status == 404:
            return []
        raise


async def read_version(server: ServerConnection, wanted: EnvironmentReference) -> Version:
    return await server.get(wanted.version_path, Version)


async def list_tasks(
    server: ServerConnection, wanted: EnvironmentReference, slug: str | None = None
) -> list[TaskInfo]:
    """All tasks of a version that the server lists, or the one of a slug."""
    path = f"{wanted.version_path}/tasks"
    return [task async for task in server.iterate_pages(path, Page[TaskInfo], slug=slug, limit=TASKS_A_PAGE)]


async def read_file(
    server: ServerConnection, wanted: EnvironmentReference, path: str, max_bytes: int
) -> FileText:
    return await server.get(f"{wanted.version_path}/files", FileText, path=path, max_bytes=max_bytes)


async def download_source(
    server: ServerConnection, wanted: EnvironmentReference, version: Version, target: Path
) -> None:
    """The whole source of a version, verified against the hash that the server reported."""
    digest = hashlib.sha256()
    exact = f"{wanted.path}/versions/{version.version}/source"
    async with server.open_file(exact) as got:
        with target.open("wb") as file:
            async for chunk in got.content.iter_chunked(2**20):
                digest.update(chunk)
                file.write(chunk)
    if digest.hexdigest() != version.source_sha256:
        raise ServerError(Problem("damaged", f"{wanted.slug} arrived damaged; try again."))


async def change_environment(
    server: ServerConnection, wanted: EnvironmentReference, changes: EnvironmentChange
) -> EnvironmentInfo:
    return await server.patch(wanted.path, changes, EnvironmentInfo)


async def fork(server: ServerConnection, wanted: EnvironmentReference, team: str | None) -> EnvironmentInfo:
    order = Fork(team=team, version=wanted.version if wanted.has_version else None)
    return await server.post(f"{wanted.path}/fork", order, EnvironmentInfo)


async def delete(server: ServerConnection, wanted: EnvironmentReference) -> None:
    """One version if one is named, otherwise the environment with all of them."""
    await server.delete(wanted.version_path if wanted.has_version else wanted.path)


async def list_collaborators(server: ServerConnection, wanted: EnvironmentReference) -> list[Collaborator]:
    return (await server.get(f"{wanted.path}/collaborators", Page[Collaborator])).items


async def share(
    server: ServerConnection, wanted: EnvironmentReference, collaborator: Collaborator
) -> Collaborator:
    return await server.put(f"{wanted.path}/collaborators", collaborator, Collaborator)


async def unshare(server: ServerConnection, wanted: EnvironmentReference, name: str) -> None:
    await server.delete(f"{wanted.path}/collaborators/{name}")
