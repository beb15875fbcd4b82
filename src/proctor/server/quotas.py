"""Limits per user: pending runs, stored bytes, open streams, what is computed at once.

An error names the limit that was reached, and the operator's setting that raises it. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from ipaddress import ip_address, ip_network
from weakref import WeakValueDictionary

from sqlalchemy import Connection, func, select

from proctor.api.bounds import MEGABYTE
from proctor.server.db.locks import lock_text
from proctor.server.db.tables import dataset_uploads, dataset_versions, runs, users, versions
from proctor.server.problems import QuotaError, TooManyError
from proctor.server.settings import Quotas


def check_pending(connection: Connection, owner: str, quotas: Quotas) -> None:
    """Refuse another run of a user whose queue is full; locks the user, so that the count is exact."""
    connection.execute(select(users.c.id).where(users.c.name == owner).with_for_update(key_share=True))
    waiting = select(func.count()).where(
        runs.c.owner == owner, runs.c.kind == "hosted", runs.c.status == "pending"
    )
    most = quotas.pending_runs_per_user
    if connection.execute(waiting).scalar_one() >= most:
        raise QuotaError(
            f"{owner} has {most} pending runs, which is this server's limit; wait for some to start, "
            f"stop some with `proctor eval stop`, or ask the operator for more (--pending-runs-per-user).",
            limit=most,
        )


def stored_bytes(connection: Connection, user: str) -> int:
    """What is stored for a user: the versions and datasets they pushed, the rows and log lines of their
    runs, and the room that is reserved for files they send in parts."""
    pushed = select(func.coalesce(func.sum(versions.c.wheel_size + versions.c.source_size), 0))
    used = select(func.coalesce(func.sum(runs.c.row_bytes + runs.c.log_bytes), 0))
    data = select(func.coalesce(func.sum(dataset_versions.c.size), 0))
    reserved = select(func.coalesce(func.sum(dataset_uploads.c.size), 0))
    of_versions = connection.execute(pushed.where(versions.c.pushed_by == user)).scalar_one()
    of_runs = connection.execute(used.where(runs.c.owner == user)).scalar_one()
    of_datasets = connection.execute(data.where(dataset_versions.c.pushed_by == user)).scalar_one()
    of_uploads = connection.execute(reserved.where(dataset_uploads.c.person == user)).scalar_one()
    return int(of_versions) + int(of_datasets) + int(of_runs) + int(of_uploads)


def check_storage(connection: Connection, user: str, quotas: Quotas, more: int = 1) -> None:
    """Refuse to store this many more bytes for a user who has no room for them. What is known to be stored
    is added one after the other, so that two pushes do not fill the same room."""
    if more > 1:
        lock_text(connection, f"storage of {user}")
    stored, most = stored_bytes(connection, user), quotas.user_storage_mb * MEGABYTE
    if stored + more > most:
        raise QuotaError(
            f"{user} stores {stored / MEGABYTE:,.0f} MB of versions, datasets, open uploads and runs, and "
            f"this would exceed the limit of {quotas.user_storage_mb:,} MB per user; delete some, or ask the "
            f"operator for more (--user-storage-mb).",
            stored_bytes=stored,
            most_bytes=most,
        )


class ArrivingBytes:
    """What each user is sending to this server in one piece: it is on the disk before it counts as stored."""

    def __init__(self, quotas: Quotas) -> None:
        self._most_mb = quotas.user_storage_mb
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def taking(self, user: str, size: int) -> Iterator[int]:
        """Count a file while it arrives, or refuse it; yields what arrives from the user in all."""
        arriving = self._bytes[user] + size
        if arriving > self._most_mb * MEGABYTE:
            raise QuotaError(
                f"{user} is sending files of {arriving / MEGABYTE:,.0f} MB at once, and the limit is "
                f"{self._most_mb:,} MB per user; wait until some have arrived, or ask the operator for more "
                f"(--user-storage-mb).",
                most_bytes=self._most_mb * MEGABYTE,
            )
        self._bytes[user] = arriving
        try:
            yield arriving
        finally:
            self._bytes[user] -= size
            if not self._bytes[user]:
                del self._bytes[user]


VISITOR = "visitor "
"""Before the address of a reader without a token, where readers are named; no user's name has a space."""


def name_visitor(address: str) -> str:
    """Whoever has one IPv6 address has all of its /64 network."""
    try:
        found = ip_address(address)
    except ValueError:  # a Unix socket has none
        return VISITOR + address
    return VISITOR + str(ip_network((found, 64), strict=False) if found.version == 6 else found)


def is_visitor(reader: str) -> bool:
    return reader.startswith(VISITOR)


MOST_VISITORS = 4
"""All visitors together may have as much under way as this many of them."""


class Shares:
    """How many of something each caller has under way."""

    def __init__(self, most: int, refusal: str) -> None:
        self.most = most
        self._refusal = refusal
        self._taken: Counter[str] = Counter()

    def check(self, caller: str) -> None:
        if self._taken[caller] >= self.most:
            raise TooManyError(self._refusal.format(most=self.most), limit=self.most)
        if is_visitor(caller) and self._of_visitors >= (most := MOST_VISITORS * self.most):
            raise TooManyError(
                f"Visitors who are not logged in have {most} of these under way; try again later, or log in.",
                limit=most,
            )

    @property
    def _of_visitors(self) -> int:
        return sum(count for caller, count in self._taken.items() if is_visitor(caller))

    @property
    def in_all(self) -> int:
        return self._taken.total()

    @contextmanager
    def taking(self, caller: str) -> Iterator[None]:
        """Count one for the caller, or refuse."""
        self.check(caller)
        with self.counting(caller):
            yield

    @contextmanager
    def counting(self, caller: str) -> Iterator[None]:
        """Count one that was admitted already."""
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


def stream_shares(quotas: Quotas) -> Shares:
    return Shares(
        quotas.streams_per_user,
        "You have {most} event streams and downloads open, which is this server's limit; close some, or "
        "ask the operator for more (--streams-per-user).",
    )


REPORTS_AT_ONCE = 4


def report_shares() -> Shares:
    return Shares(REPORTS_AT_ONCE, "{most} reports are being processed; send this one again.")


EXPORTS_AT_ONCE = 4


def export_shares() -> Shares:
    return Shares(EXPORTS_AT_ONCE, "{most} exports of yours are under way; wait until one has ended.")


PREVIEWS_AT_ONCE = 2


def preview_shares() -> Shares:
    return Shares(PREVIEWS_AT_ONCE, "{most} previews of yours are under way; wait until one has ended.")


READS_AT_ONCE = 3
MOST_WAITING_READS = 60
READS_IN_ALL = 16
"""Fewer than the server has threads: whatever else needs one does not wait for reads."""
VISITORS_READS = 8


class ReaderTurns:
    """What one reader has under way and waiting."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(READS_AT_ONCE)
        self.waiting = 0


class ReadTurns:
    """Reads that are computed: a few at once for each reader, and the others wait, so that a reader with
    many requests delays only themselves. In all as many as the server can bear, first come, first served, and
    visitors leave room for users who are logged in."""

    def __init__(self) -> None:
        self._readers: WeakValueDictionary[str, ReaderTurns] = WeakValueDictionary()
        self._visitors = asyncio.Semaphore(VISITORS_READS)
        self._all = asyncio.Semaphore(READS_IN_ALL)

    @asynccontextmanager
    async def turn(self, reader: str, *, is_chunk: bool = False) -> AsyncIterator[None]:
        """Wait for one of the reader's turns. Where too many wait, a request is refused; a chunk of a stream
        waits with them, since streams have a limit of their own."""
        mine = self._readers.get(reader)
        if mine is None:
            mine = self._readers[reader] = ReaderTurns()
        if not is_chunk and mine.waiting >= MOST_WAITING_READS:
            raise TooManyError(
                f"{MOST_WAITING_READS} requests of yours wait to be answered; send this one again when "
                f"others have been.",
                limit=MOST_WAITING_READS,
            )
        mine.waiting += 1
        try:
            await mine.free.acquire()
        finally:
            mine.waiting -= 1
        async with AsyncExitStack() as held:
            held.callback(mine.free.release)
            if is_visitor(reader):
                await held.enter_async_context(self._visitors)
            await held.enter_async_context(self._all)
            yield
