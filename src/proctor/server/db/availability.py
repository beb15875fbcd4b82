"""Whether the database answers, and a way to wait until it does.

A database that restarts costs its callers time, and nothing else: callers that lost a connection wait here,
all for one task that probes it until it answers. The log gets one line when it goes away and one when it is
back. Knows nothing of transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from proctor.api.common import DATABASE_AWAY
from proctor.errors import ProctorError
from proctor.support.logs import log

PATIENCE_SECONDS = 45.0
"""How long a caller waits for a database that is away; shorter than clients wait for an answer."""
SILENT_SECONDS = 5.0
"""A database that takes longer than this is asked whether it still answers."""
LOOK_SECONDS = 0.25
LOST_STATES = frozenset({"57P01", "57P02", "57P03", "57P05", "53300"})
"""PostgreSQL shuts down, crashed, starts, closed an idle session, or has no connection left."""
CONNECTION_STATES = "08"


class DatabaseAwayError(ProctorError):
    """The database did not answer for as long as a caller waits for it."""


class Availability:
    """The state of one database, as its callers find it."""

    def __init__(self, connect: Callable[[], None]) -> None:
        self._connect = connect
        self._threads = ThreadPoolExecutor(2, "database-look")
        self._looking: dict[Callable[[], None], asyncio.Future[str | None]] = {}
        self._returning: asyncio.Task[None] | None = None
        self._is_closing = False
        self.reason: str | None = None
        """Why the database is away; None while it answers."""
        self.on_return: list[Callable[[], None]] = []
        """Called, in a thread, after connections were lost and before anyone else uses new ones. If one
        raises, the database still counts as away."""

    async def look(self) -> str | None:
        """Why the database does not answer now; None if it does."""
        return self.reason or await self._look(self._connect)

    async def wait(self, seconds: float) -> None:
        """Return once the database answers again, which the caller has doubts about. Raises
        DatabaseAwayError if that takes too long."""
        if seconds <= 0 or self._is_closing:
            raise DatabaseAwayError(DATABASE_AWAY)
        if self._returning is None or self._returning.done():
            self._returning = asyncio.create_task(self._wait_for_return())
        await asyncio.wait({self._returning}, timeout=seconds)
        if not self._returning.done() or self._is_closing:
            raise DatabaseAwayError(DATABASE_AWAY)

    def stop_waiting(self) -> None:
        """From now on, no caller waits for a database that is away: the server ends."""
        self._is_closing = True
        if self._returning is not None:
            self._returning.cancel()

    def close(self) -> None:
        self._threads.shutdown(wait=False)

    async def _wait_for_return(self) -> None:
        since = time.monotonic()
        while (reason := await self._look(self._return)) is not None:
            if self.reason is None:
                log.warning("the database does not answer (%s); requests wait until it does", reason)
            self.reason = reason
            await asyncio.sleep(LOOK_SECONDS)
        if self.reason is not None:
            log.warning("the database answers again, after %.1f s", time.monotonic() - since)
        self.reason = None

    async def _look(self, reach: Callable[[], None]) -> str | None:
        """One look at a time: a database that is silent holds one thread, however many ask."""
        looking = self._looking.get(reach)
        if looking is None:
            loop = asyncio.get_running_loop()
            looking = self._looking[reach] = loop.run_in_executor(self._threads, describe_failure, reach)
            looking.add_done_callback(lambda _: self._looking.pop(reach, None))
        await asyncio.wait({looking}, timeout=SILENT_SECONDS)
        return looking.result() if looking.done() else f"no answer within {SILENT_SECONDS:g} s"

    def _return(self) -> None:
        self._connect()
        for each in self.on_return:
            each()


def describe_failure(reach: Callable[[], None]) -> str | None:
    try:
        reach()
    except (SQLAlchemyError, ProctorError) as error:
        return describe_database_error(error)
    return None


def is_connection_lost(error: BaseException) -> bool:
    """Whether an error means that the database went away, and not that a statement is at fault."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    is_of_connection = type(error).__name__ in ("OperationalError", "InterfaceError")
    state = getattr(error.orig, "sqlstate", None)
    return is_of_connection and (state is None or state in LOST_STATES or state.startswith(CONNECTION_STATES))


def describe_database_error(error: BaseException) -> str:
    """What went wrong with a database, in one line."""
    message = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(message.split())
