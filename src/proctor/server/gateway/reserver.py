"""Reserves the worst case of each call, and waits if only other calls' reservations are in the way.

Calls that arrive within a few milliseconds are reserved in one transaction, in the order of their arrival: a
transaction costs almost the same for one call as for fifty. A call that does
not fit beside the calls under way waits for them to end, for a bounded time; a call that would not fit
without them is refused at once. Leases are renewed for as long as this process lives. Knows nothing of HTTP
or providers.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from sqlalchemy import Connection

from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.ledger import reservations
from proctor.server.ledger.reservations import LEASE_SECONDS, Grants, Reservation
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log
from proctor.wires.errors import GatewayRefusedError, Refusal

WAIT_SECONDS = 120.0
"""How long a call waits for the money that other calls have reserved."""
BATCH_SECONDS = 0.006
POLL_SECONDS = 1.0
"""How soon a release by another server on the same database is noticed."""
RENEW_SECONDS = LEASE_SECONDS / 3
STILL_RESERVED = Refusal(
    429,
    "reserved",
    "Other calls under way have reserved the rest of the money; try again when they have ended.",
    5.0,
)


class Pending(msgspec.Struct, eq=False):
    """A reservation that a call is waiting for."""

    wanted: Reservation
    granted: asyncio.Future[None]
    until: float


class Reserver:
    """The reservations of one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._holder = secrets.token_hex(10)
        self._pending: list[Pending] = []
        self._live: set[str] = set()
        self._releasing: list[str] = []
        self._news = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    def reserve(self, wanted: Reservation) -> asyncio.Future[None]:
        """Done once the amount is reserved. Raises PaymentError if there is not enough money, and
        GatewayRefusedError if calls under way held it for too long. Cancel it to stop waiting."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pending = Pending(wanted, granted, time.monotonic() + WAIT_SECONDS)
        self._pending.append(pending)
        granted.add_done_callback(lambda _: self._drop_cancelled(pending))
        self._wake()
        return granted

    def release(self, call_id: str) -> None:
        """Release a call that was not answered and costs nothing. Does nothing if it was booked."""
        if call_id in self._live:
            self._live.discard(call_id)
            self._releasing.append(call_id)
            self._wake()

    def forget(self, call_id: str) -> None:
        """Stop tracking a call that is being booked: booking releases it."""
        self._live.discard(call_id)

    def notice(self) -> None:
        """Money was released or added: try again for the calls that wait."""
        self._news.set()

    async def close(self) -> None:
        for task in (self._working, self._renewing):
            await cancel_task(task)
        with suppress(DatabaseAwayError):  # their leases expire
            await self._database.write(reservations.release_all, self._holder)

    def renew_all(self) -> None:
        """Renew every lease, after a time in which the database could not; called in a thread."""
        self._database.write_now(reservations.renew_all, self._holder, time.time())

    def _wake(self) -> None:
        self._news.set()
        if self._working is None:
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._pending or self._releasing:
                await asyncio.sleep(BATCH_SECONDS)
                self._news.clear()
                await self._try_all()
                self._refuse_late()
                if self._pending and not self._releasing:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), POLL_SECONDS)
        finally:
            self._working = None

    async def _try_all(self) -> None:
        batch, (released, self._releasing) = list(self._pending), (self._releasing, [])
        wanted = [each.wanted for each in batch]
        self._live.update(each.id for each in wanted)
        try:
            grants = await self._database.write(
                release_and_reserve, released, wanted, self._holder, time.time()
            )
        except Exception as error:
            if isinstance(error, DatabaseAwayError):
                self._releasing = [*released, *self._releasing]
            else:
                log.error("%d calls could not be reserved", len(batch), exc_info=error)
            for each in batch:
                self._live.discard(each.wanted.id)
                self._settle(each, error)
            return
        for each in batch:
            if each.wanted.id in grants.granted:
                self._settle(each, None)
            else:
                self._live.discard(each.wanted.id)
                if refusal := grants.refused.get(each.wanted.id):
                    self._settle(each, refusal)
        if grants.granted and self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    def _drop_cancelled(self, pending: Pending) -> None:
        if pending.granted.cancelled():
            with suppress(ValueError):
                self._pending.remove(pending)
            self.release(pending.wanted.id)  # a transaction that is under way may grant it

    def _settle(self, pending: Pending, error: Exception | None) -> None:
        with suppress(ValueError):
            self._pending.remove(pending)
        if pending.granted.done():  # the caller was cancelled
            self.release(pending.wanted.id)
        elif error is None:
            pending.granted.set_result(None)
        else:
            pending.granted.set_exception(error)

    def _refuse_late(self) -> None:
        now = time.monotonic()
        for each in [each for each in self._pending if each.until <= now]:
            self._settle(each, GatewayRefusedError(STILL_RESERVED))

    async def _renew(self) -> None:
        try:
            while self._live:
                await asyncio.sleep(RENEW_SECONDS)
                try:
                    await self._database.write(reservations.renew, sorted(self._live), time.time())
                except DatabaseAwayError:
                    continue
                except Exception:
                    log.exception("reservations could not be renewed; trying again in %g s", RENEW_SECONDS)
        finally:
            self._renewing = None


def release_and_reserve(
    connection: Connection, released: Sequence[str], wanted: Sequence[Reservation], holder: str, now: float
) -> Grants:
    if released:
        reservations.release(connection, released)
    return reservations.reserve(connection, wanted, holder, now) if wanted else Grants()
