"""Leases in the database: what only one of several servers does at a time.

A lease is held for a transaction, which locks it, or for longer work, which ends with a transaction that
checks its term: each holder has another. So a server that was paused and wakes up after its lease has passed
to another changes nothing. Times are those of the database, the same for all servers. SQLite has one server,
which always holds them. Knows nothing of the work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.tables import leases
from proctor.support.cancellation import cancel_task

RENEWALS = 3
"""A lease is renewed so often before it would end."""


class ServerLease(msgspec.Struct, frozen=True):
    """What a holder shows in the transaction that ends its work."""

    name: str
    holder: str
    term: int


def read_clock(connection: Connection) -> float:
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def hold(connection: Connection, name: str, holder: str, seconds: float) -> ServerLease | None:
    """Take or renew a lease until this transaction ends, and for some seconds; None if another server has it,
    or is about to."""
    if connection.dialect.name == "sqlite":
        return ServerLease(name, holder, 0)
    known = select(leases).where(leases.c.name == name)
    row = connection.execute(known.with_for_update(skip_locked=True)).one_or_none()
    if row is None:
        return None if connection.execute(known).first() else begin(connection, name, holder, seconds)
    now = read_clock(connection)
    if row.holder != holder and row.until > now:
        return None
    term = row.term + (row.holder != holder)
    values = {"holder": holder, "term": term, "until": now + seconds, "is_wanted": False}
    connection.execute(update(leases).where(leases.c.name == name).values(values))
    return ServerLease(name, holder, term)


def begin(connection: Connection, name: str, holder: str, seconds: float) -> ServerLease | None:
    """The first time."""
    until = read_clock(connection) + seconds
    values = {"name": name, "holder": holder, "term": 1, "until": until, "is_wanted": False}
    try:
        with connection.begin_nested():
            connection.execute(insert(leases).values(values))
    except IntegrityError:
        return None
    return ServerLease(name, holder, 1)


def is_held(connection: Connection, lease: ServerLease) -> bool:
    """Whether the lease is still ours; locks it until this transaction ends."""
    if connection.dialect.name == "sqlite":
        return True
    query = select(leases.c.term).where(leases.c.name == lease.name, leases.c.holder == lease.holder)
    return connection.execute(query.with_for_update()).scalar() == lease.term


def ask_holder(connection: Connection, name: str) -> bool:
    """Ask the holder of a lease to do the work once more; False if it has no holder."""
    held = (leases.c.name == name) & (leases.c.until > read_clock(connection))
    return bool(connection.execute(update(leases).where(held).values(is_wanted=True)).rowcount)


def renew(connection: Connection, lease: ServerLease, seconds: float) -> None:
    if is_held(connection, lease):
        until = read_clock(connection) + seconds
        connection.execute(update(leases).where(leases.c.name == lease.name).values(until=until))


def release(connection: Connection, lease: ServerLease) -> bool:
    """End a lease; returns whether the work was requested again meanwhile."""
    if connection.dialect.name == "sqlite" or not is_held(connection, lease):
        return False
    wanted = connection.execute(select(leases.c.is_wanted).where(leases.c.name == lease.name)).scalar_one()
    connection.execute(update(leases).where(leases.c.name == lease.name).values(until=0.0, is_wanted=False))
    return bool(wanted)


def release_all(connection: Connection, holder: str) -> None:
    """When a server ends, the next need not wait."""
    connection.execute(update(leases).where(leases.c.holder == holder).values(until=0.0))


@asynccontextmanager
async def renewing(database: Database, lease: ServerLease, seconds: float) -> AsyncIterator[None]:
    """Renew a lease while the block runs."""

    async def renew_on() -> None:
        while True:
            await asyncio.sleep(seconds / RENEWALS)
            with suppress(DatabaseAwayError):
                await database.write(renew, lease, seconds)

    renewals = asyncio.create_task(renew_on())
    try:
        yield
    finally:
        await cancel_task(renewals)
