"""Limits per user: pending runs, stored bytes, open streams.

An error names the limit that was reached, and the operator's setting that raises it. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, func, select

from proctor.api.bounds import MEGABYTE
from proctor.server.db.tables import dataset_versions, runs, versions
from proctor.server.problems import QuotaError, TooManyError
from proctor.server.settings import Quotas


def check_pending(connection: Connection, owner: str, quotas: Quotas) -> None:
    """Refuse another run of a user whose queue is full."""
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
    said = select(func.coalesce(func.sum(runs.c.row_bytes + runs.c.log_bytes), 0))
    data = select(func.coalesce(func.sum(dataset_versions.c.size), 0))
    of_versions = connection.execute(pushed.where(versions.c.pushed_by == user)).scalar_one()
    of_runs = connection.execute(said.where(runs.c.owner == user)).scalar_one()
    of_datasets = connection.execute(data.where(dataset_versions.c.pushed_by == user)).scalar_one()
    return int(of_versions) + int(of_datasets) + int(of_runs)


def check_storage(connection: Connection, user: str, quotas: Quotas, more: int = 1) -> None:
    """Refuse to store this many more bytes for a user who has no room for them."""
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
