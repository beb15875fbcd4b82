"""Which servers use the database: each records a heartbeat every few seconds.

Knows nothing of what they do.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from proctor import __version__
from proctor.errors import ConfigError
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.leases import read_clock, release_all
from proctor.server.db.tables import servers
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 20.0
"""A server without a heartbeat for this long is gone, or as good as gone."""
FORGOTTEN_SECONDS = 86_400.0
MOST_SKEW_SECONDS = 5.0
"""Between the clocks of a server and of the database: the leases of runs are in seconds."""


class ServerRegistry:
    """The entry of one server process, and those of the others."""

    def __init__(self, database: Database, server: str, url: str) -> None:
        self._database = database
        self._server = server
        self._url = url
        self.id = secrets.token_hex(6)
        """Of this process: after a restart, it is another."""
        self._heartbeats: asyncio.Task[None] | None = None

    async def start(self) -> bool:
        """Register this server; returns whether others are running."""
        others = await self._database.write(enter, self.id, self._server, self._url)
        self._heartbeats = asyncio.create_task(self._send_heartbeats())
        return others

    async def close(self) -> None:
        if self._heartbeats is not None:
            await cancel_task(self._heartbeats)
            with suppress(DatabaseAwayError):
                await self._database.write(leave, self.id)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self._database.write(record_heartbeat, self.id)
            except DatabaseAwayError:
                continue
            except Exception:
                log.exception("could not record this server's heartbeat; trying again")


def enter(connection: Connection, process: str, server: str, url: str) -> bool:
    now = read_clock(connection)
    gone = (servers.c.seen_at < now - FORGOTTEN_SECONDS) | (servers.c.server == server)
    connection.execute(delete(servers).where(gone))
    others = connection.execute(list_live_servers(connection)).first()
    named = {"id": process, "server": server, "url": url, "version": __version__}
    connection.execute(insert(servers).values(**named, started_at=now, seen_at=now))
    return others is not None


def list_live_servers(connection: Connection) -> Select[Any]:
    """As a query: the addresses of the running servers."""
    return select(servers.c.url).where(servers.c.seen_at > read_clock(connection) - SILENT_SECONDS)


def has_other_release(connection: Connection) -> bool:
    """Whether a server of another release is running, which may not find what this one would move."""
    others = list_live_servers(connection).where(servers.c.version != __version__)
    return connection.execute(others.limit(1)).first() is not None


def record_heartbeat(connection: Connection, process: str) -> None:
    connection.execute(update(servers).where(servers.c.id == process).values(seen_at=read_clock(connection)))


def leave(connection: Connection, process: str) -> None:
    connection.execute(delete(servers).where(servers.c.id == process))
    release_all(connection, process)


def check_clock(database: Database, now: float) -> None:
    """Refuse to start beside others with a clock that is wrong: it would end their leases, or never its
    own."""
    skew = now - database.read_now(read_clock)
    if abs(skew) > MOST_SKEW_SECONDS:
        raise ConfigError(
            f"This machine's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the "
            f"database's; synchronize both (NTP), then start the server."
        )
