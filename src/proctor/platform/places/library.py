"""The hub's environments as they are served: from the virtual environment that a run of theirs would have.

Knows nothing of HTTP, nor of what is played there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, select

from proctor.hosting.venvs import Venvs
from proctor.logs import log
from proctor.platform.blobs import Blobs
from proctor.platform.db.database import Database
from proctor.platform.db.tables import versions
from proctor.platform.hub.records import resolve
from proctor.platform.people.tokens import Caller
from proctor.platform.places.backend import Program
from proctor.platform.places.sessions import Published


class HubLibrary:
    """What is published here, ready to be served."""

    def __init__(self, database: Database, blobs: Blobs, venvs: Venvs) -> None:
        self._database = database
        self._blobs = blobs
        self._venvs = venvs

    def find(self, connection: Connection, caller: Caller, slug: str) -> Published:
        environment, version = resolve(connection, caller, slug)
        return Published(id=version.id, slug=f"{environment.owner}/{environment.name}@{version.version}")

    async def program(self, published: Published, port: int) -> Program:
        version = await self._database.read(row_of, published.id)

        def say(line: str) -> None:
            log.info("%s: %s", published.slug, line)

        wheel = self._blobs.path(version.wheel_sha256)
        venv = await self._venvs.ready(wheel, version.wheel_name, version.lock, say)
        name = published.slug.partition("/")[2].partition("@")[0]
        serve = (str(venv.python), "-P", "-m", "proctor", "serve", name, "--host", "127.0.0.1")
        return Program(
            words=(*serve, "-p", str(port)), port=port, variables=venv.variables, mounts=venv.paths
        )


def row_of(connection: Connection, version_id: str) -> Row[Any]:
    return connection.execute(select(versions).where(versions.c.id == version_id)).one()


def venvs_of(data: Path, *, allow_no_sandbox: bool) -> Venvs:
    """Those of the server's own host: what it has built is built for both."""
    return Venvs(data / "host" / "venvs", hidden=(data,), allow_no_sandbox=allow_no_sandbox)
