"""How much of each component a team needs: a simulation of queues, from measured unit costs.

python -m benchmarks.capacity [USERS …]     a table for each number of users

Requests arrive at random and wait in line at stations: the server processes (one core each, since each is one
event loop), PostgreSQL's cores, the cores of the runner nodes. What a station is asked follows from how many
rollouts are played; how long it takes, from `UnitCosts`. The network, the object store and the servers'
connections have a limit, not a line. Knows nothing of servers: `unit_costs.py` measures, and a test compares
them.
"""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

HOUR = 3_600.0
BUSY = 0.6
"""The share of a component that is planned for; the rest is for bursts and for the loss of one of several."""
GIGABIT = 1e9 / 8
CONNECTIONS = 10_000
"""That one server holds, if its limit of open files allows; a model call in flight is one."""
STORE_REQUESTS = 1_000.0
"""A second that an object store answers: an assumption, not a measurement."""
LIVE_READ_SECONDS = 15.0
"""Between two reads of somebody who looks at a live page."""
HEARTBEAT_SECONDS = 10.0
"""Between two of a run, with leases of half a minute."""


@dataclass(frozen=True)
class UnitCosts:
    """Of a shared virtual machine of two cores with PostgreSQL 15, by `python -m benchmarks.unit_costs`."""

    report_server_ms: float = 5.0
    report_database_ms: float = 1.2
    report_log_bytes: float = 1_000.0
    report_transactions: float = 1.2
    row_server_ms: float = 0.24
    row_database_ms: float = 0.2
    row_log_bytes: float = 1_800.0
    row_stored_bytes: float = 1_600.0
    call_server_ms: float = 0.65
    call_database_ms: float = 0.1
    call_log_bytes: float = 430.0
    call_stored_bytes: float = 210.0
    call_transactions: float = 0.03
    heartbeat_server_ms: float = 2.0
    heartbeat_database_ms: float = 0.8
    read_server_ms: float = 11.0
    read_database_ms: float = 1.0
    delivery_server_ms: float = 0.05
    rollout_runner_ms: float = 0.35

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Workload:
    """What a team does in its busiest hour."""

    users: int
    rollouts_per_user_hour: float = 100.0
    calls_per_rollout: float = 5.0
    """Of which each waits for the model; only what the server does for it is counted."""
    call_seconds: float = 10.0
    call_bytes: float = 20_000.0
    """Request and answer; the server receives and sends both."""
    rollout_runner_seconds: float = 1.0
    """CPU of the environment itself: tools, graders, sandboxes. Yours may take a hundred times this."""
    rollouts_per_run: float = 500.0
    run_seconds: float = 1_800.0
    reports_per_run_second: float = 5.0
    """At most: a run reports what has ended, no more often than this."""
    reading_share: float = 0.1
    """Of users, with a live page open; each reads a list every 15 seconds and follows one run."""
    row_bytes: float = 8_000.0
    """As sent."""

    @property
    def rollouts_per_second(self) -> float:
        return self.users * self.rollouts_per_user_hour / HOUR

    @property
    def runs(self) -> float:
        """At the same time."""
        return max(1.0, self.rollouts_per_second / self.rollouts_per_run * self.run_seconds)

    @property
    def reports_per_second(self) -> float:
        """A run whose rollouts end seldom sends one in each report."""
        return min(self.rollouts_per_second, self.runs * self.reports_per_run_second)

    @property
    def calls_per_second(self) -> float:
        return self.rollouts_per_second * self.calls_per_rollout

    @property
    def calls_in_flight(self) -> float:
        return self.calls_per_second * self.call_seconds

    @property
    def readers(self) -> float:
        return self.users * self.reading_share


@dataclass(frozen=True)
class Cluster:
    """What there is."""

    servers: int
    """Processes of `proctor server`, a core each."""
    database_cores: int
    runner_cores: int
    network_gigabits: float = 10.0
    """Of the servers together."""


@dataclass(frozen=True)
class Demand:
    """Work per second of one kind: how often, and what one takes, in milliseconds of CPU."""

    name: str
    per_second: float
    server_ms: float
    database_ms: float


def list_demands(work: Workload, costs: UnitCosts) -> list[Demand]:
    rows_per_report = work.rollouts_per_second / work.reports_per_second if work.reports_per_second else 0.0
    report = (
        costs.report_server_ms + rows_per_report * costs.row_server_ms,
        costs.report_database_ms + rows_per_report * costs.row_database_ms,
    )
    deliveries = work.readers * work.reports_per_second / work.runs
    return [
        Demand("reports", work.reports_per_second, *report),
        Demand("model calls", work.calls_per_second, costs.call_server_ms, costs.call_database_ms),
        Demand(
            "heartbeats",
            work.runs / HEARTBEAT_SECONDS,
            costs.heartbeat_server_ms,
            costs.heartbeat_database_ms,
        ),
        Demand("reads", work.readers / LIVE_READ_SECONDS, costs.read_server_ms, costs.read_database_ms),
        Demand("deliveries", deliveries, costs.delivery_server_ms, 0.0),
    ]


@dataclass(frozen=True)
class Station:
    """How a component fared."""

    name: str
    count: int | str
    busy: float
    """The share of its time, or of its limit; above 1, its queue grows without end."""
    wait_ms: float = 0.0
    p99_wait_ms: float = 0.0
    is_queue: bool = False


def simulate(
    work: Workload, costs: UnitCosts, cluster: Cluster, seconds: float = 10.0, seed: int = 0
) -> list[Station]:
    """Let requests arrive at random for a while, and see how long they wait at each station."""
    chance = random.Random(seed)
    demands = [each for each in list_demands(work, costs) if each.per_second > 0]
    at_server: list[tuple[float, float]] = []
    at_database: list[tuple[float, float]] = []
    for demand in demands:
        for at in arrivals(chance, demand.per_second, seconds):
            at_server.append((at, chance.expovariate(1000 / demand.server_ms)))
            if demand.database_ms:
                at_database.append((at, chance.expovariate(1000 / demand.database_ms)))
    played = [
        (at, chance.expovariate(1 / (work.rollout_runner_seconds + costs.rollout_runner_ms / 1e3)))
        for at in arrivals(chance, work.rollouts_per_second, seconds)
    ]
    return [
        queue("servers", at_server, cluster.servers, seconds),
        queue("PostgreSQL", at_database, cluster.database_cores, seconds),
        queue("runner nodes", played, cluster.runner_cores, seconds),
        find_network(work, cluster),
        find_connections(work, cluster),
        find_object_store(work),
    ]


def arrivals(chance: random.Random, per_second: float, seconds: float) -> list[float]:
    times, now = [], 0.0
    while per_second > 0 and (now := now + chance.expovariate(per_second)) < seconds:
        times.append(now)
    return times


def queue(name: str, jobs: list[tuple[float, float]], servers: int, seconds: float) -> Station:
    """First come, first served, by whichever server is free first."""
    free = [0.0] * servers
    waits = []
    for at, takes in sorted(jobs):
        start = max(at, heapq.heappop(free))
        waits.append(start - at)
        heapq.heappush(free, start + takes)
    busy = sum(takes for _, takes in jobs) / seconds / servers
    p99 = percentile(waits, 0.99) * 1e3
    return Station(name, servers, busy, mean(waits) * 1e3, p99, is_queue=True)


def find_network(work: Workload, cluster: Cluster) -> Station:
    """Every call passes the servers twice, coming and going."""
    sent = work.calls_per_second * work.call_bytes * 2 + work.rollouts_per_second * work.row_bytes * 2
    gigabits = cluster.network_gigabits
    return Station("network of the servers", f"{gigabits:g} Gbit/s", sent / (gigabits * GIGABIT))


def find_connections(work: Workload, cluster: Cluster) -> Station:
    """Calls in flight, live pages with two streams each, and a connection of every run for its reports."""
    held = work.calls_in_flight + 2 * work.readers + work.runs
    return Station(
        "connections of the servers", cluster.servers, held / cluster.servers / CONNECTIONS, 0.0, 0.0
    )


def find_object_store(work: Workload) -> Station:
    """A wheel, a lock and a dataset for every run that starts, and as many files again that it leaves."""
    asked = work.runs / work.run_seconds * 6
    return Station("object store", f"{STORE_REQUESTS:,.0f} requests/s", asked / STORE_REQUESTS)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def plan(work: Workload, costs: UnitCosts) -> Cluster:
    """The smallest cluster of which no component is busier than planned for, and that can lose a server."""
    demands = list_demands(work, costs)
    server_cores = sum(each.per_second * each.server_ms for each in demands) / 1e3
    database_cores = sum(each.per_second * each.database_ms for each in demands) / 1e3
    runner_cores = work.rollouts_per_second * (work.rollout_runner_seconds + costs.rollout_runner_ms / 1e3)
    needed = math.ceil(server_cores / BUSY)
    return Cluster(
        servers=max(1, needed) if work.users <= 100 else max(2, needed + 1),
        database_cores=max(1, math.ceil(database_cores / BUSY)),
        runner_cores=max(1, math.ceil(runner_cores / BUSY)),
    )


def stored_per_day(work: Workload, costs: UnitCosts) -> float:
    """Bytes, if the busiest hour lasted for eight."""
    one = costs.row_stored_bytes + work.calls_per_rollout * costs.call_stored_bytes
    return work.rollouts_per_second * one * 8 * HOUR


def log_per_second(work: Workload, costs: UnitCosts) -> float:
    reports = work.reports_per_second * costs.report_log_bytes
    calls = work.calls_per_second * costs.call_log_bytes
    return reports + calls + work.rollouts_per_second * costs.row_log_bytes


def transactions_per_second(work: Workload, costs: UnitCosts) -> float:
    reports = work.reports_per_second * costs.report_transactions
    return reports + work.calls_per_second * costs.call_transactions + work.runs / HEARTBEAT_SECONDS


def describe_plan(work: Workload, costs: UnitCosts) -> str:
    """What a team needs, as Markdown."""
    cluster = plan(work, costs)
    one = simulate(work, costs, replace(cluster, servers=1))[0]
    lines = [
        f"{work.rollouts_per_second * HOUR:,.0f} rollouts an hour, {work.runs:,.0f} runs at once,",
        f"{work.calls_per_second:,.0f} model calls a second ({work.calls_in_flight:,.0f} in flight),",
        f"{work.reports_per_second:,.0f} reports a second, {work.readers:,.0f} live pages.",
        f"PostgreSQL: {transactions_per_second(work, costs):,.0f} transactions and",
        f"{log_per_second(work, costs) / 1e6:,.1f} MB of log a second,",
        f"{stored_per_day(work, costs) / 1e9:,.1f} GB stored in a day of eight such hours.",
        f"One server alone would be {one.busy:.0%} busy.",
        "",
        "| component | how many | busy | mean wait | p99 wait |",
        "|---|---|---|---|---|",
    ]
    for each in simulate(work, costs, cluster):
        waits = f"{each.wait_ms:,.1f} ms | {each.p99_wait_ms:,.1f} ms" if each.is_queue else "– | –"
        lines.append(f"| {each.name} | {each.count} | {each.busy:.0%} | {waits} |")
    return "\n".join(lines)


def describe_demands(work: Workload, costs: UnitCosts) -> str:
    """Who asks for the cores of servers and database, as Markdown."""
    lines = ["| caused by | a second | server cores | database cores |", "|---|---|---|---|"]
    for each in sorted(list_demands(work, costs), key=lambda each: -each.per_second * each.server_ms):
        cores = (each.per_second * cost / 1e3 for cost in (each.server_ms, each.database_ms))
        used = " | ".join(f"{core:.2f}" for core in cores)
        lines.append(f"| {each.name} | {each.per_second:,.0f} | {used} |")
    return "\n".join(lines)


if __name__ == "__main__":
    for users in map(int, sys.argv[1:] or ("100", "1000", "10000")):
        print(f"## {users:,} users\n\n{describe_plan(Workload(users), UnitCosts())}\n")
        print(f"{describe_demands(Workload(users), UnitCosts())}\n")
