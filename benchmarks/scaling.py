"""Workers beside one process, and nodes of a cluster beside workers: CPU and pace of rollouts.

The cluster is a real one of Ray's, of two machines in network namespaces; it needs root and Ray.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.children import evaluate, mock_endpoint
from tests.interop.ray.conftest import Playing, lay_out
from tests.interop.ray.machines import Machine, can_have_machines, cpu_seconds, model_on, two_machines

Row = tuple[str, str, str]
PAIRS = 5
ROLLOUTS = 8_000
AT_ONCE = 16
"""Rollouts in flight on each node, where the model takes a second."""


def measured(cwd: Path) -> Iterator[Row]:
    yield from measure_workers(cwd)
    if not can_have_machines():
        yield "Ray: two nodes beside one", "not measured: needs root, iproute2 and Ray", "≥ 85% of twice"
        return
    with (
        two_machines() as (first, second),
        model_on(first, "--latency-ms", "1000", "--answer", "say") as slow,
    ):
        lay_out(first)
        first.start_head()
        second.join(first)
        yield from measure_nodes(first, slow)
        with model_on(first, "--answer", "say") as url:
            yield from measure_cost(first, url)


def measure_workers(cwd: Path) -> Iterator[Row]:
    """In turns, so that both see the same machine."""
    with mock_endpoint(cwd) as url:

        def cost(workers: int, rollouts: int) -> float:
            return evaluate(url, cwd, "-n", rollouts, "-r", 1, "-c", 128, "-s", "-w", workers).cpu_seconds

        idle = {workers: min(cost(workers, 2) for _ in range(3)) for workers in (1, 2)}
        pairs = [
            [(cost(workers, ROLLOUTS) - idle[workers]) / ROLLOUTS * 1000 for workers in (1, 2)]
            for _ in range(PAIRS)
        ]
    ratio = statistics.median(two / one for one, two in pairs)
    one, two = (statistics.median(side) for side in zip(*pairs, strict=True))
    yield "marginal CPU per rollout, -w 2", f"{ratio:.2f} × -w 1 ({two:.3f} ms; {one:.3f} ms)", "≤ 1.3 ×"


def measure_nodes(first: Machine, url: str) -> Iterator[Row]:
    paces = {}
    for nodes in (1, 2):
        words = ("-w", str(nodes), "-c", str(AT_ONCE * nodes), "-n", str(20 * AT_ONCE * nodes), "-r", "1")
        arguments = f'{{"tasks": {20 * AT_ONCE * nodes}, "work": 0.02}}'
        ran = Playing(first, ("-b", url, "--on", "ray", *words, "-a", arguments), f"nodes-{nodes}").finish(
            300
        )
        paces[nodes] = ran.pace
    yield (
        "Ray: rollouts per second on two nodes of one core, model latency 1 s, 20 ms of CPU each",
        f"{paces[2] / paces[1] / 2:.0%} of twice one node ({paces[2]:.1f}; {paces[1]:.1f})",
        "≥ 85%",
    )


def measure_cost(first: Machine, url: str) -> Iterator[Row]:
    if cpu_seconds(first) is None:
        yield "Ray: marginal CPU per rollout", "not measured: the kernel does not count it", "≤ 1.25 ×"
        return
    number = 0

    def cost(place: str, rollouts: int) -> float:
        nonlocal number
        number += 1
        before = cpu_seconds(first) or 0.0
        words = ("-b", url, "--on", place, "-w", "2", "-c", "128", "-n", str(rollouts), "-r", "1")
        Playing(first, (*words, "-a", f'{{"tasks": {rollouts}}}'), f"cost-{number}").finish(300)
        return (cpu_seconds(first) or 0.0) - before

    places = ("here", "ray")
    idle = {place: min(cost(place, 2) for _ in range(3)) for place in places}
    pairs = [
        [(cost(place, ROLLOUTS) - idle[place]) / ROLLOUTS * 1000 for place in places] for _ in range(PAIRS)
    ]
    ratio = statistics.median(there / here for here, there in pairs)
    here, there = (statistics.median(side) for side in zip(*pairs, strict=True))
    yield (
        "Ray: marginal CPU per rollout, two workers, Ray's own included",
        f"{ratio:.2f} × -w 2 ({there:.3f} ms; {here:.3f} ms)",
        "≤ 1.25 ×",
    )
