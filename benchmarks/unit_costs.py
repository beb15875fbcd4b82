"""Unit costs of hosted runs, measured on a real server and a real PostgreSQL, for `capacity.py`.

python -m benchmarks unit_costs         the table
python -m benchmarks.unit_costs         the same as JSON

Each cost is a slope between a small and a larger amount of the same work, so that what a process does anyway
is not in it, and the least of several tries. CPU is that of the server's process, and of all of PostgreSQL's
together. PostgreSQL runs without fsync and without full pages in its log: a real one's log is larger.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import followers, gateway
from benchmarks.capacity import UnitCosts
from benchmarks.children import evaluate, mock_endpoint
from proctor.client.connection import ServerConnection
from tests.server.postgres import Cluster, cluster

ROUNDS = 4
REPORTS = 50
SMALL, LARGE = 1, 20
"""Rows of a report."""
READS = 50
CALLS = 500
FOLLOWERS = 100
ROLLOUTS = 2_000


@dataclass(frozen=True)
class Spent:
    """What a piece of work took."""

    server: float
    """CPU seconds."""
    database: float
    transactions: float
    log_bytes: float
    stored_bytes: float

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(one - two for one, two in zip(self.values, other.values, strict=True)))

    def per(self, count: float) -> Spent:
        return Spent(*(each / count for each in self.values))

    @property
    def values(self) -> tuple[float, ...]:
        return (self.server, self.database, self.transactions, self.log_bytes, self.stored_bytes)


def least(spent: Sequence[Spent]) -> Spent:
    """The least of each: whatever else the machine does can only add."""
    return Spent(*(min(each) for each in zip(*(one.values for one in spent), strict=True)))


def read_spent(server_pid: int, postgres: Cluster, url: str) -> Spent:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), "
            "pg_database_size(current_database()), pg_current_xact_id()::text::bigint"
        ).fetchone()
    assert row is not None
    log_bytes, stored, transactions = map(float, row)
    return Spent(
        followers.cpu_seconds(server_pid), postgres_cpu_seconds(postgres), transactions, log_bytes, stored
    )


def postgres_cpu_seconds(postgres: Cluster) -> float:
    """Of its first process, of those it has now, and of those that have ended."""
    first = int((postgres.data / "postmaster.pid").read_text().split()[0])
    while True:
        try:
            return sum_cpu_seconds(first)
        except (FileNotFoundError, ProcessLookupError):
            continue  # one of them ended meanwhile


def sum_cpu_seconds(first: int) -> float:
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    fields = Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return ended + sum(map(followers.cpu_seconds, [first, *map(int, children)]))


class Measuring:
    """A server on PostgreSQL with a run that is being played."""

    def __init__(self, postgres: Cluster, url: str, pid: int, root: ServerConnection, run_id: str) -> None:
        self._postgres, self._url, self._pid = postgres, url, pid
        self.root, self.run_id = root, run_id
        self._batch = 0

    async def spend(self, work: Callable[[], Awaitable[None]]) -> Spent:
        before = read_spent(self._pid, self._postgres, self._url)
        await work()
        return read_spent(self._pid, self._postgres, self._url) - before

    async def report(self, run: ServerConnection, rows: int, count: int = REPORTS) -> Spent:
        """One report: the mean of many of so many rows."""

        async def send() -> None:
            for _ in range(count):
                self._batch += 1
                told = [followers.row(f"{self._batch}-{number}") for number in range(rows)]
                await run.post("/runner/reports", {"batch": self._batch, "rows": told}, dict[str, Any])

        return (await self.spend(send)).per(count)


async def measure_server(postgres: Cluster, folder: Path) -> dict[str, float]:
    """Reports, reads and followers. A heartbeat is taken to cost what a report without rows does."""
    url = postgres.fresh()
    async with followers.server(folder, url) as (process, root, run, run_id):
        measuring = Measuring(postgres, url, process.pid, root, run_id)
        await measuring.report(run, LARGE, 20)  # caches are warm from now on
        small = least([await measuring.report(run, SMALL) for _ in range(ROUNDS)])
        large = least([await measuring.report(run, LARGE) for _ in range(ROUNDS)])
        row = (large - small).per(LARGE - SMALL)
        report = small - row.per(1 / SMALL)

        async def read_lists() -> None:
            for _ in range(READS):
                await root.get("/runs?limit=20", dict[str, Any])

        read = least([(await measuring.spend(read_lists)).per(READS) for _ in range(ROUNDS)])
        beat = least([await measuring.report(run, 0) for _ in range(ROUNDS)])
        delivered = await measure_followers(measuring, run)
        return {
            "report_server_ms": report.server * 1e3,
            "report_database_ms": report.database * 1e3,
            "report_log_bytes": report.log_bytes,
            "report_transactions": report.transactions,
            "row_server_ms": row.server * 1e3,
            "row_database_ms": row.database * 1e3,
            "row_log_bytes": row.log_bytes,
            "row_stored_bytes": row.stored_bytes,
            "heartbeat_server_ms": beat.server * 1e3,
            "heartbeat_database_ms": beat.database * 1e3,
            "read_server_ms": read.server * 1e3,
            "read_database_ms": read.database * 1e3,
            "delivery_server_ms": delivered * 1e3,
        }


async def measure_followers(measuring: Measuring, run: ServerConnection) -> float:
    """CPU seconds of the server for one event to one follower."""
    alone = least([await measuring.report(run, SMALL, 30) for _ in range(ROUNDS)])
    heard: list[int] = []
    following = [
        asyncio.create_task(followers.follow(measuring.root, measuring.run_id, heard))
        for _ in range(FOLLOWERS)
    ]
    await asyncio.sleep(4.0)  # until they have what was said before
    watched = least([await measuring.report(run, SMALL, 30) for _ in range(ROUNDS)])
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    return max(0.0, watched.server - alone.server) / FOLLOWERS


def measure_gateway(postgres: Cluster, cwd: Path) -> dict[str, float]:
    url = postgres.fresh()
    with ExitStack() as stack:
        provider = stack.enter_context(mock_endpoint(cwd, latency_ms=20))
        *words, port = gateway.server_words(cwd, provider)
        pid, address = stack.enter_context(gateway.serving(cwd, *words, "--database", url, port))
        token = gateway.log_in(address, cwd)
        asyncio.run(gateway.ask(address, token, CALLS))
        spent = []
        for _ in range(ROUNDS):
            before = read_spent(pid, postgres, url)
            asyncio.run(gateway.ask(address, token, CALLS))
            spent.append((read_spent(pid, postgres, url) - before).per(CALLS))
    call = least(spent)
    return {
        "call_server_ms": call.server * 1e3,
        "call_database_ms": call.database * 1e3,
        "call_log_bytes": call.log_bytes,
        "call_stored_bytes": call.stored_bytes,
        "call_transactions": call.transactions,
    }


def measure_runner(cwd: Path) -> dict[str, float]:
    """CPU of the process that plays, for a rollout of one turn and no tools."""
    with mock_endpoint(cwd) as url:

        def play(tasks: int, rollouts: int) -> float:
            words = ("-n", tasks, "-r", rollouts, "-c", 128, "-s")
            return min(evaluate(url, cwd, *words).cpu_seconds for _ in range(ROUNDS))

        idle, played = play(1, 1), play(ROLLOUTS // 4, 4)
    return {"rollout_runner_ms": (played - idle) / ROLLOUTS * 1e3}


def measure_costs() -> UnitCosts:
    with cluster() as postgres, tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        return UnitCosts(
            **asyncio.run(measure_server(postgres, Path(one))),
            **measure_gateway(postgres, Path(two)),
            **measure_runner(Path(two)),
        )


def measured(_: Path) -> Iterator[tuple[str, str, str]]:
    """For the table: CPU at the server; at PostgreSQL."""
    costs = measure_costs()

    def describe(name: str, more: str) -> str:
        server, database = (getattr(costs, f"{name}_{side}_ms") for side in ("server", "database"))
        return f"{server:.2f} ms; {database:.2f} ms; {more}"

    report = f"{costs.report_transactions:.1f} transactions"
    row = f"{costs.row_stored_bytes:,.0f} bytes stored, {costs.row_log_bytes:,.0f} bytes of log"
    call = f"{costs.call_transactions:.2f} transactions, {costs.call_stored_bytes:,.0f} bytes stored"
    yield "scale: a report of a run, without its rows", describe("report", report), "none"
    yield "scale: a row in it", describe("row", row), "none"
    yield "scale: a model call through the gateway", describe("call", call), "none"
    yield "scale: a read of a list of runs", describe("read", "20 runs"), "none"
    yield "scale: a report's events to one follower", f"{costs.delivery_server_ms * 1e3:.0f} µs", "none"
    yield "scale: a rollout of one turn, where it is played", f"{costs.rollout_runner_ms:.2f} ms", "none"


if __name__ == "__main__":
    print(json.dumps(measure_costs().as_dict(), indent=2))
