"""Books every answered request before its answer is forwarded, many in one transaction.

What `book` returns is done once the call is in the database. Calls that arrive within a few milliseconds are
written together, because a transaction costs the same for one call as for fifty; what their payers may still
spend is read in the same transaction. Knows nothing of HTTP or providers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from proctor.config.prices import Price
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.gateway.models import Models
from proctor.server.gateway.reserver import Reserver
from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.server.ledger.price_overrides import load_prices
from proctor.server.ledger.records import Standing, find_standing
from proctor.server.singleflight import SingleFlight
from proctor.support.logs import log

BATCH_SECONDS = 0.012
KNOWN_SECONDS = 1.0
"""How long a standing is cached while nothing is booked against it."""
MOST_KNOWN = 4096
PRICES_SECONDS = 10.0
"""How soon a price that was set at another server of the same database takes effect."""
TRIES = 3

PayerKey = tuple[str, str | None]
"""A user, and the run that calls on their behalf, if any."""


class BookedBatch(msgspec.Struct, frozen=True):
    """What a batch's transaction read."""

    standings: Mapping[PayerKey, Standing]
    prices: Mapping[str, Price] | None = None


class UsageMeter:
    """Writes calls, and knows what their payers may still spend."""

    def __init__(self, database: Database, models: Models, reserver: Reserver) -> None:
        self._database = database
        self._models = models
        self._reserver = reserver
        self._waiting: list[tuple[LedgerCall, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._known: dict[PayerKey, tuple[float, Standing]] = {}
        self._lookups = SingleFlight[PayerKey, Standing]()
        self._prices_until = 0.0
        self._is_closing = False
        self.on_booked: list[Callable[[LedgerCall], None]] = []

    def book(self, call: LedgerCall) -> asyncio.Future[None]:
        """Done once the call is in the database. It is written even if no caller waits for it."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, kept))
        if call.is_reserved:
            self._reserver.forget(call.id)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return kept

    async def standing(self, user: str, run_id: str | None) -> Standing:
        payer = (user, run_id)
        known = self._known.get(payer)
        if known is None or known[0] < time.monotonic():
            return await self._lookups.ask(payer, lambda: self._look_up(payer))
        return known[1]

    def forget(self) -> None:
        """Forget all standings: a balance was raised."""
        self._known.clear()
        self._reserver.notice()

    async def close(self) -> None:
        self._is_closing = True
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def _look_up(self, payer: PayerKey) -> Standing:
        found = await self._database.read(find_standing, *payer)
        self._keep(payer, found)
        return found

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(BATCH_SECONDS)
                batch, self._waiting = self._waiting, []
                await self._write([call for call, _ in batch], [kept for _, kept in batch])
        finally:
            self._writing = None

    async def _write(self, calls: Sequence[LedgerCall], kept: Sequence[asyncio.Future[None]]) -> None:
        due = time.monotonic() > self._prices_until
        unsure = {payer for call in calls if self._is_limited(payer := (call.user, call.run_id))}
        for left in reversed(range(TRIES)):
            try:
                is_first_try = left == TRIES - 1
                booked = await self._database.write(
                    write_batch, calls, unsure, due, is_first_try=is_first_try
                )
                break
            except DatabaseAwayError as error:
                self._postpone(calls, kept, error)
                return
            except Exception as error:
                if left:
                    continue
                if len(calls) > 1 and not isinstance(error, OperationalError):
                    for call, each in zip(calls, kept, strict=True):  # one that is at fault harms no other
                        await self._write([call], [each])
                    return
                log.error("%d calls could not be booked", len(calls), exc_info=error)
                for each in kept:
                    if not each.done():
                        each.set_exception(error)
                return
        self._finish(booked, calls)
        for each in kept:
            if not each.done():
                each.set_result(None)

    def _postpone(
        self, calls: Sequence[LedgerCall], kept: Sequence[asyncio.Future[None]], error: Exception
    ) -> None:
        """The callers have waited long enough, but the calls were made: they are booked once the database is
        back, for as long as this server runs."""
        for each in kept:
            if not each.done():
                each.set_exception(error)
        if self._is_closing:
            log.error("%d calls could not be booked: the database was away until the end", len(calls))
        else:
            self._waiting = [*zip(calls, kept, strict=True), *self._waiting]

    def _finish(self, booked: BookedBatch, calls: Sequence[LedgerCall]) -> None:
        for notify in self.on_booked:
            for call in calls:
                notify(call)
        if booked.prices is not None:
            self._models.reprice(booked.prices)
            self._prices_until = time.monotonic() + PRICES_SECONDS
        for payer, found in booked.standings.items():
            self._keep(payer, found)
        if any(call.is_reserved for call in calls):
            self._reserver.notice()

    def _is_limited(self, payer: PayerKey) -> bool:
        known = self._known.get(payer)
        return known is None or known[1].is_limited

    def _keep(self, payer: PayerKey, found: Standing) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known[payer] = (time.monotonic() + KNOWN_SECONDS, found)


def write_batch(
    connection: Connection,
    calls: Sequence[LedgerCall],
    unsure: set[PayerKey],
    with_prices: bool,
    *,
    is_first_try: bool,
) -> BookedBatch:
    add_calls(connection, calls, is_first_try=is_first_try)
    found = {payer: find_standing(connection, *payer) for payer in sorted(unsure, key=str)}
    return BookedBatch(found, load_prices(connection) if with_prices else None)
