"""The server's own host: a process beside the server, with a token of its own.

Knows nothing of how runs are played, nor of how the process is kept running.
"""

from __future__ import annotations

import asyncio
import os
import time

from sqlalchemy import Connection, delete, func, select, update

from proctor.client.contexts import Context
from proctor.runner.host_key import new_host_key
from proctor.runner.host_settings import HostSettings, HostStartup
from proctor.runner.supervisor import Supervisor
from proctor.server.db.database import Database
from proctor.server.db.tables import tokens, versions
from proctor.server.people.tokens import OWN_HOST, SUPERSEDED_SECONDS, make_token, plays, silent_seconds
from proctor.server.settings import Settings

FORGOTTEN_SECONDS = 7 * 86_400.0
"""A host that was silent for this long is gone."""


class OwnHost:
    """Keeps one host running."""

    def __init__(self, settings: Settings, database: Database, server: str) -> None:
        self._settings = settings
        self._database = database
        self._server = server
        self.supervisor = Supervisor(self._get_startup)
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._settings.runs_at_once:
            self._keeping = asyncio.create_task(self.supervisor.run())

    async def close(self) -> None:
        """End the host while the server still answers: its runs have final reports to send."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
            self._keeping = None

    async def _get_startup(self) -> HostStartup:
        settings = self._settings
        host_key = new_host_key()  # kept in memory only, on both sides
        token = await self._database.write(create_host_token, self._server, host_key)
        return HostStartup(
            context=Context(url=settings.own_url, token=token),
            host_key=host_key,
            parent=os.getpid(),
            settings=HostSettings(
                data=settings.data / "host",
                at_once=settings.runs_at_once,
                limits=settings.limits,
                allow_no_sandbox=settings.allow_no_sandbox,
                direct_hosts=settings.direct_hosts,
                hidden=(settings.data,),
                log_format=settings.log_format,
            ),
        )


def create_host_token(connection: Connection, server: str, host_key: str) -> str:
    """A new token for every host, valid for this host alone, and for as long as that keeps using it. Those of
    earlier hosts of this server expire, except that a host that outlived it may end the runs it has."""
    name = f"{OWN_HOST}{server}"
    own = (tokens.c.kind == "host") & (tokens.c.name == name)
    last_used_at = func.coalesce(tokens.c.last_used_at, tokens.c.created_at)
    connection.execute(delete(tokens).where(own, last_used_at < time.time() - FORGOTTEN_SECONDS))
    # Requeue at once the checks that earlier hosts of this server had claimed.
    earlier = select(tokens.c.id).where(own)
    left = update(versions).where(versions.c.check_status == "running", versions.c.check_host.in_(earlier))
    connection.execute(left.values(check_status="pending", check_lease_until=None, check_host=None))
    soon = time.time() + SUPERSEDED_SECONDS
    for token_id in connection.execute(earlier.where(tokens.c.expires_at > soon)).scalars().all():
        if not plays(connection, token_id):
            connection.execute(update(tokens).where(tokens.c.id == token_id).values(expires_at=soon))
    made = make_token(
        connection,
        kind="host",
        user=None,
        name=name,
        scopes=[],
        expires_at=time.time() + silent_seconds(name),
        host_key=host_key,
    )
    return made.secret
