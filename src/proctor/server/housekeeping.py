"""Delete what a server no longer needs: answers to old creates, dead tokens, reservations of crashed servers,
old entries of the audit log, uploads that nobody continued, files without a version.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from sqlalchemy import Connection, delete, or_, select

from proctor.run import ENDED
from proctor.server.announcements import delete_old_announcements
from proctor.server.audit.records import delete_old
from proctor.server.datasets import uploads
from proctor.server.datasets.upload_parts import UploadParts
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.leases import hold
from proctor.server.db.tables import (
    browser_sessions,
    commit_marks,
    creations,
    login_codes,
    reservations,
    runs,
    tokens,
)
from proctor.server.registry import has_other_release
from proctor.server.runs.archive import archive_ended_runs
from proctor.server.sandboxes.records import end_forgotten_sandboxes
from proctor.server.sources.syncs import end_forgotten_syncs
from proctor.server.storage.blobs import Blobs
from proctor.server.storage.contract import StorageAwayError
from proctor.server.storage.garbage import collect_garbage
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

EVERY_SECONDS = 3600.0
SPARE_SECONDS = 60.0
DAY = 86_400.0
CREATES_KEPT_DAYS = 7
"""No client repeats a create after this long."""
TOKENS_KEPT_DAYS = 30
"""For this long, the answer is that a token has expired or was revoked, not that it is unknown."""


class Housekeeping:
    """Cleans up once an hour, and soon after something large was deleted."""

    def __init__(self, database: Database, blobs: Blobs, uploads: UploadParts, holder: str) -> None:
        self._database = database
        self._blobs = blobs
        self._uploads = uploads
        self._holder = holder
        self._wanted = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep())

    def wake(self) -> None:
        """Something large was deleted."""
        self._wanted.set()

    async def close(self) -> None:
        await cancel_task(self._keeping)

    async def _keep(self) -> None:
        while True:
            try:
                is_ours = await self._database.write(clean_up_alone, self._holder, time.time())
                await self._uploads.remove_old(time.time())
                await self._database.give_back_space()
                if is_ours:
                    await self._tidy_store()
            except DatabaseAwayError:
                continue  # the log says so already
            except StorageAwayError as error:
                log.warning("could not clean up the store; trying again in an hour: %s", error)
            except Exception:
                log.exception("could not clean up; trying again in an hour")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), EVERY_SECONDS)
            self._wanted.clear()

    async def _tidy_store(self) -> None:
        """Two servers would do it twice, and harm nothing."""
        await collect_garbage(self._database, self._blobs.store)
        if not self._blobs.is_on_this_disk and not await self._database.read(has_other_release):
            await archive_ended_runs(self._database, self._blobs, time.time())


def clean_up_alone(connection: Connection, holder: str, now: float) -> bool:
    """On one of the servers, in each hour; tells whether it is this one."""
    is_ours = hold(connection, "housekeeping", holder, EVERY_SECONDS - SPARE_SECONDS) is not None
    if is_ours:
        delete_expired(connection, now)
    return is_ours


def delete_expired(connection: Connection, now: float) -> None:
    connection.execute(delete(creations).where(creations.c.at < now - CREATES_KEPT_DAYS * DAY))
    connection.execute(delete(commit_marks).where(commit_marks.c.at < now - DAY))
    connection.execute(delete(reservations).where(reservations.c.expires_at < now))
    connection.execute(delete(browser_sessions).where(browser_sessions.c.expires_at < now))
    connection.execute(delete(login_codes).where(login_codes.c.expires_at < now - DAY))
    uploads.remove_old(connection, now)
    delete_old(connection, now)
    delete_old_announcements(connection, now)
    end_forgotten_sandboxes(connection, now)
    end_forgotten_syncs(connection, now)
    long_ago = now - TOKENS_KEPT_DAYS * DAY
    over = or_(tokens.c.expires_at < long_ago, tokens.c.revoked_at < long_ago)
    ended = select(runs.c.id).where(runs.c.status.in_(ENDED), runs.c.ended_at < now - DAY)
    connection.execute(delete(tokens).where(or_(over, tokens.c.run_id.in_(ended))))
