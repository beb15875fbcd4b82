"""Served environments: a published one, started on the server for one rollout that is played elsewhere.

An EnvironmentLibrary finds environments and prepares their versions. Knows nothing of HTTP.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Row

from proctor.api.sandboxes import NewServedSession, ServedSession
from proctor.runtimes.serving import PORT, TOKEN_VARIABLE, fresh_token
from proctor.server.people.tokens import Caller
from proctor.server.sandboxes import records
from proctor.server.sandboxes.backend import BackendSandbox, SandboxSpec, ServedProgram
from proctor.server.sandboxes.lifecycle import SandboxManager


class PublishedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an environment."""

    id: str
    """Of the version."""
    slug: str
    """owner/name@version"""


class EnvironmentLibrary(Protocol):
    """The environments that may be served."""

    def find(self, connection: Connection, caller: Caller, slug: str) -> PublishedVersion:
        """The version that a name stands for; raises NotFoundError if the caller may not read it."""

    async def program(self, published: PublishedVersion, port: int) -> ServedProgram:
        """`proctor serve` for a version, from its own virtual environment, on a port of the loopback."""


class Sessions:
    """Served environments, which run as sandboxes."""

    def __init__(self, sandboxes: SandboxManager, library: EnvironmentLibrary) -> None:
        self.library = library
        self._sandboxes = sandboxes
        self._tokens: dict[str, str] = {}
        """The token of each session's channel: kept only in memory, because sessions end with the server. A
        session that ends by itself leaves its token here, which opens nothing any more."""

    def find(self, connection: Connection, caller: Caller, slug: str) -> PublishedVersion:
        return self.library.find(connection, caller, slug)

    def add(self, connection: Connection, caller: Caller, new: NewServedSession) -> ServedSession:
        published, limits = self.find(connection, caller, new.environment), self._sandboxes.limits
        row = records.add_record(
            connection,
            caller,
            "session",
            server=self._sandboxes.server,
            backend="bubblewrap",
            spec={"environment": published.slug, "version": published.id, "task": new.task},
            minutes=limits.longest_minutes,
            at_once=limits.at_once,
        )
        return self.describe(row)

    async def begin(self, session: str, published: PublishedVersion) -> None:
        """Start it in the background: the virtual environment may have to be built first."""
        limits, token = self._sandboxes.limits, fresh_token()
        library = self.library

        async def prepare(_: BackendSandbox) -> ServedProgram:
            program = await library.program(published, PORT)
            self._tokens[session] = token
            return msgspec.structs.replace(program, variables={**program.variables, TOKEN_VARIABLE: token})

        spec = SandboxSpec(memory_mb=limits.memory_mb, processes=limits.processes, disk_mb=limits.disk_mb)
        await self._sandboxes.begin(session, "bubblewrap", spec, prepare)

    async def end(self, session: str) -> None:
        self._tokens.pop(session, None)
        await self._sandboxes.end(session, "It was deleted.")

    def describe(self, row: Row[Any]) -> ServedSession:
        return records.build_session(row, self._tokens.get(row.id))
