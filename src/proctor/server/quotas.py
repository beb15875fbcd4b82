"""Limits per user: pending runs, stored bytes, open streams, what is computed at once.

An error names the limit that was reached, and the operator's setting that raises it. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from sqlalchemy import Connection, func, select

from proctor.api.bounds import MEGABYTE
from proctor.server.db.locks import lock_text
from proctor.server.db.tables import dataset_versions, runs, users, versions
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
    runs."""
    pushed = select(func.coalesce(func.sum(versions.c.wheel_size + versions.c.source_size), 0))
    used = select(func.coalesce(func.sum(runs.c.row_bytes + runs.c.log_bytes), 0))
    data = select(func.coalesce(func.sum(dataset_versions.c.size), 0))
    of_versions = connection.execute(pushed.where(versions.c.pushed_by == user)).scalar_one()
    of_runs = connection.execute(used.where(runs.c.owner == user)).scalar_one()
    of_datasets = connection.execute(data.where(dataset_versions.c.pushed_by == user)).scalar_one()
    return int(of_versions) + int(of_datasets) + int(of_runs)


def check_storage(connection: Connection, user: str, quotas: Quotas, more: int = 1) -> None:
    """Refuse to store this many more bytes for a user who has no room for them. What is known to be stored
    is added one after the other, so that two pushes do not fill the same room."""
    if more > 1:
        lock_text(connection, f"storage of {user}")
    stored, most = stored_bytes(connection, user), quotas.user_storage_mb * MEGABYTE
    if stored + more > most:
        raise QuotaError(
            f"{user} stores {stored / MEGABYTE:,.0f} MB of versions, datasets and runs, and this would "
            f"exceed the limit of {quotas.user_storage_mb:,} MB per user; delete some, or ask the "
            f"operator for more (--user-storage-mb).",
            stored_bytes=stored,
            most_bytes=most,
        )


class Shares:
    """How many of something each caller has under way."""

    def __init__(self, most: int, refusal: str) -> None:
        self.most = most
        self._refusal = refusal
        self._taken: Counter[str] = Counter()

    def check(self, caller: str) -> None:
        if self._taken[caller] >= self.most:
            raise TooManyError(self._refusal.format(most=self.most), limit=self.most)

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


class ReaderTurns:
    """What one reader has under way and waiting."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(READS_AT_ONCE)
        self.waiting = 0


class ReadTurns:
    """Reads that are computed: a few at once for each reader, and the others wait, so that a reader with
    many requests delays only themselves."""

    def __init__(self) -> None:
        self._readers: WeakValueDictionary[str, ReaderTurns] = WeakValueDictionary()

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
        try:
            yield
        finally:
            mine.free.release()
