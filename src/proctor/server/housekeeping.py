"""Delete what a server no longer needs: answers to old creates, dead tokens, reservations of crashed servers.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from sqlalchemy import Connection, delete, or_, select

from proctor.run import ENDED
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.tables import (
    browser_sessions,
    commit_marks,
    creations,
    login_codes,
    reservations,
    runs,
    tokens,
)
from proctor.support.logs import log

EVERY_SECONDS = 3600.0
DAY = 86_400.0
CREATES_KEPT_DAYS = 7
"""No client repeats a create after this long."""
TOKENS_KEPT_DAYS = 30
"""For this long you are told that a token has expired or was revoked, not that it is unknown."""


class Housekeeping:
    """Cleans up once an hour, and soon after something large was deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wanted = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep())

    def wake(self) -> None:
        """Something large was deleted."""
        self._wanted.set()

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping

    async def _keep(self) -> None:
        while True:
            try:
                await self._database.write(delete_expired, time.time())
                await self._database.give_back_space()
            except DatabaseAwayError:
                continue  # the log says so already
            except Exception:
                log.exception("could not clean up; trying again in an hour")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), EVERY_SECONDS)
            self._wanted.clear()


def delete_expired(connection: Connection, now: float) -> None:
    connection.execute(delete(creations).where(creations.c.at < now - CREATES_KEPT_DAYS * DAY))
    connection.execute(delete(commit_marks).where(commit_marks.c.at < now - DAY))
    connection.execute(delete(reservations).where(reservations.c.expires_at < now))
    connection.execute(delete(browser_sessions).where(browser_sessions.c.expires_at < now))
    connection.execute(delete(login_codes).where(login_codes.c.expires_at < now - DAY))
    long_ago = now - TOKENS_KEPT_DAYS * DAY
    over = or_(tokens.c.expires_at < long_ago, tokens.c.revoked_at < long_ago)
    ended = select(runs.c.id).where(runs.c.status.in_(ENDED), runs.c.ended_at < now - DAY)
    connection.execute(delete(tokens).where(or_(over, tokens.c.run_id.in_(ended))))
