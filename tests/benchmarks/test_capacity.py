"""The simulation behind docs/scale.md, against queueing theory, its page, and measurements."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import capacity, followers, unit_costs
from benchmarks.capacity import UnitCosts, Workload, describe_demands, describe_plan, plan, queue, simulate
from tests.server.postgres import cluster

PAGE = Path(__file__).parents[2] / "docs/scale.md"
TRIES = 4
FACTOR = 1.6
"""How far a prediction may be from a measurement on a machine that others use meanwhile."""


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (2, 0.7), (8, 0.8)])
def test_requests_wait_as_long_as_theory_says(servers: int, load: float) -> None:
    """Erlang's formula for random arrivals and random service times."""
    chance, takes = random.Random(1), 0.01
    seconds = 40_000 * takes / (load * servers)
    jobs = [
        (at, chance.expovariate(1 / takes))
        for at in capacity.arrivals(chance, load * servers / takes, seconds)
    ]
    station = queue("one", jobs, servers, seconds)
    offered = load * servers
    below = sum(offered**each / math.factorial(each) for each in range(servers))
    top = offered**servers / math.factorial(servers) / (1 - load)
    expected_ms = top / (below + top) * takes / (servers * (1 - load)) * 1e3
    assert station.busy == pytest.approx(load, rel=0.02)
    assert station.wait_ms == pytest.approx(expected_ms, rel=0.15)


def test_what_is_planned_is_enough_and_less_is_not() -> None:
    work, costs = Workload(10_000), UnitCosts()
    enough = plan(work, costs)
    for station in simulate(work, costs, enough):
        assert station.busy < 0.8, station
    starved = replace(enough, servers=1)
    assert (
        simulate(work, costs, starved)[0].p99_wait_ms > 100 * simulate(work, costs, enough)[0].p99_wait_ms + 1
    )


@pytest.mark.parametrize("users", [100, 1_000, 10_000])
def test_the_page_shows_what_the_simulation_says(users: int) -> None:
    page = PAGE.read_text()
    assert describe_plan(Workload(users), UnitCosts()) in page
    if users == 10_000:
        assert describe_demands(Workload(users), UnitCosts()) in page


@pytest.mark.slow
def test_predictions_hold_where_they_can_be_measured(tmp_path: Path) -> None:
    """Costs are measured with reports of 1 and of 20 rows; others, and a server under load, are foretold."""

    async def compare() -> None:
        url = postgres.fresh()
        async with followers.server(tmp_path, url) as (process, root, run, run_id):
            measuring = unit_costs.Measuring(postgres, url, process.pid, root, run_id)
            await measuring.report(run, unit_costs.LARGE, 20)

            async def cost(rows: int) -> unit_costs.Spent:
                return unit_costs.least([await measuring.report(run, rows) for _ in range(TRIES)])

            small, large = await cost(unit_costs.SMALL), await cost(unit_costs.LARGE)
            row = (large - small).per(unit_costs.LARGE - unit_costs.SMALL)
            fixed = small - row
            for rows in (5, 40):
                found = await cost(rows)
                for name in ("server", "database"):
                    expected = getattr(fixed, name) + rows * getattr(row, name)
                    assert expected / FACTOR < getattr(found, name) < expected * FACTOR, (rows, name)

            seconds, per_second = 10.0, 12
            loop = asyncio.get_running_loop()
            began = loop.time()

            async def load() -> None:
                for number in range(int(seconds * per_second)):
                    await asyncio.sleep(max(0.0, began + number / per_second - loop.time()))
                    await measuring.report(run, 5, 1)

            spent = await measuring.spend(load)
            took = loop.time() - began
            costs = UnitCosts(
                report_server_ms=fixed.server * 1e3,
                row_server_ms=row.server * 1e3,
                call_server_ms=1e-6,
                heartbeat_server_ms=1e-6,
            )
            rollouts = seconds * per_second / took * 5
            work = Workload(
                users=1,
                rollouts_per_user_hour=rollouts * 3_600,
                rollouts_per_run=rollouts * 1_800,
                reports_per_run_second=rollouts / 5,
                reading_share=0.0,
            )
            foretold = simulate(work, costs, capacity.Cluster(1, 1, 1))[0].busy
            assert foretold / FACTOR < spent.server / took < foretold * FACTOR

    with cluster() as postgres:
        asyncio.run(compare())
