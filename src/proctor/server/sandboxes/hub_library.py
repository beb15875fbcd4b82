"""Serve the hub's environments, each from the same virtual environment as its runs.

A process beside the server builds them. Knows nothing of HTTP, nor of what is played there.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from proctor.runner.build import BuildRequest, build_in_process
from proctor.runner.supervisor import forwarded_variables
from proctor.runner.venvs import Venv
from proctor.server.db.database import Database
from proctor.server.db.tables import versions
from proctor.server.hub.records import resolve_version
from proctor.server.hub.run_policy import need_may_run
from proctor.server.people.tokens import Caller
from proctor.server.sandboxes.backend import ServedProgram
from proctor.server.sandboxes.sessions import PublishedVersion
from proctor.server.settings import Settings
from proctor.server.storage.blobs import Blobs
from proctor.support.logs import log


class VenvSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where virtual environments are kept and how they are built."""

    cache: Path
    hidden: tuple[Path, ...]
    direct_hosts: tuple[str, ...] = ()
    allow_no_sandbox: bool = False


class HubLibrary:
    """The environments on the hub, ready to be served."""

    def __init__(self, database: Database, blobs: Blobs, source: VenvSource) -> None:
        self._database = database
        self._blobs = blobs
        self._source = source
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By owner: packages that take forever to install block only their owner."""

    def find(self, connection: Connection, caller: Caller, slug: str) -> PublishedVersion:
        environment, version = resolve_version(connection, caller, slug)
        need_may_run(connection, caller, environment)
        return PublishedVersion(
            id=version.id, slug=f"{environment.owner}/{environment.name}@{version.version}"
        )

    async def program(self, published: PublishedVersion, port: int) -> ServedProgram:
        version = await self._database.read(find_version_row, published.id)
        venv = await self._venv(published, version)
        name = published.slug.partition("/")[2].partition("@")[0]
        serve = (str(venv.python), "-P", "-m", "proctor", "serve", name, "--host", "127.0.0.1")
        return ServedProgram(
            command=(*serve, "-p", str(port)), port=port, variables=venv.variables, mounts=venv.paths
        )

    async def _venv(self, published: PublishedVersion, version: Row[Any]) -> Venv:
        async with self._blobs.local(version.wheel_sha256) as wheel:
            return await self._build(published, version, wheel)

    async def _build(self, published: PublishedVersion, version: Row[Any], wheel: Path) -> Venv:
        source = self._source
        request = BuildRequest(
            cache=source.cache,
            wheel=wheel,
            wheel_name=version.wheel_name,
            lock=version.lock,
            hidden=source.hidden,
            direct_hosts=source.direct_hosts,
            allow_no_sandbox=source.allow_no_sandbox,
        )

        def log_line(line: str) -> None:
            log.info("%s: %s", published.slug, line)

        async with self._turns[published.slug.partition("/")[0]]:
            found = await request.venvs.find(request.wheel, request.lock)
            return found or await build_in_process(request, forwarded_variables(os.environ), log_line)


def find_version_row(connection: Connection, version_id: str) -> Row[Any]:
    return connection.execute(select(versions).where(versions.c.id == version_id)).one()


def venv_source(settings: Settings) -> VenvSource:
    """The cache of the server's own host, so that both share what is built."""
    return VenvSource(
        cache=settings.data / "host" / "venvs",
        hidden=(settings.data,),
        direct_hosts=settings.direct_hosts,
        allow_no_sandbox=settings.allow_no_sandbox,
    )
