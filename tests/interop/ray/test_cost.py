"""What a run on a cluster costs beside the same run in worker processes of one machine. Shown with `-s`."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import pytest

from tests.interop.ray.conftest import Finished, RayCluster
from tests.interop.ray.machines import cpu_seconds, model_on, note

pytestmark = pytest.mark.interop

PAIRS = 5
ROLLOUTS = 6_000
HERE = ("--on", "here")
THERE = ("--on", "ray")
MOST_TRIES = 3
"""A noisy neighbor may spoil a measurement of wall time, but not three."""


def play(cluster: RayCluster, place: tuple[str, ...], rollouts: int, *words: str, url: str = "") -> Finished:
    arguments = json.dumps({"tasks": rollouts, **(json.loads(words[0]) if words else {})})
    size = ("-n", str(rollouts), "-r", "1", "-a", arguments)
    ran = cluster.play(*place, *size, *words[1:], url=url).finish(300)
    ran.check_whole(rollouts)
    return ran


def test_a_rollout_elsewhere_costs_at_most_a_quarter_more_than_in_a_process_here(cluster: RayCluster) -> None:
    if cpu_seconds(cluster.first) is None:
        pytest.skip("this kernel does not count the CPU of a group of processes")

    def cost(place: tuple[str, ...], rollouts: int) -> float:
        before = cpu_seconds(cluster.first)
        play(cluster, (*place, "-w", "2", "-c", "128"), rollouts)
        time.sleep(1)  # what Ray does after a run belongs to it
        after = cpu_seconds(cluster.first)
        assert before is not None
        assert after is not None
        return after - before

    idle = {place: min(cost(place, 2) for _ in range(3)) for place in (HERE, THERE)}
    pairs = [
        [(cost(place, ROLLOUTS) - idle[place]) / ROLLOUTS * 1000 for place in (HERE, THERE)]
        for _ in range(PAIRS)
    ]
    ratio = statistics.median(there / here for here, there in pairs)
    here, there = (statistics.median(side) for side in zip(*pairs, strict=True))
    note(f"marginal CPU: {there:.3f} ms on Ray, {here:.3f} ms with -w 2, {ratio:.2f} × (pairs {pairs})")
    assert ratio <= 1.25


def test_two_rollouts_take_at_most_three_times_as_long(cluster: RayCluster) -> None:
    walls = {
        place: min(play(cluster, (*place, "-w", "2"), 2).seconds for _ in range(MOST_TRIES))
        for place in (HERE, THERE)
    }
    note(f"two rollouts: {walls[THERE]:.2f} s on Ray, {walls[HERE]:.2f} s with -w 2")
    assert walls[THERE] <= 3 * walls[HERE]


def test_two_nodes_of_one_core_do_at_least_85_percent_of_twice_as_much(cluster: RayCluster) -> None:
    arguments = '{"work": 0.02}'
    with model_on(cluster.first, "--answer", "I say so", "--latency-ms", "1000") as url:
        best = 0.0
        for _ in range(MOST_TRIES):
            one = play(cluster, (*THERE, "-w", "1", "-c", "16"), 320, arguments, url=url).pace
            two = play(cluster, (*THERE, "-w", "2", "-c", "32"), 640, arguments, url=url).pace
            best = max(best, two / one / 2)
            note(f"one node {one:.1f} rollouts/s, two nodes {two:.1f}: {two / one / 2:.0%} of twice")
            if best >= 0.85:
                break
    assert best >= 0.85


def test_100_000_rollouts_with_a_node_killed_midway_are_all_played_once(cluster: RayCluster) -> None:
    playing = cluster.play(
        *THERE, "-w", "2", "-c", "256", "-n", "100000", "-r", "1", "-a", '{"tasks": 100000}'
    )
    playing.wait_for_rows(10_000, 300)
    early = read_memory(playing.process.pid)
    playing.wait_for_rows(50_000, 600)
    cluster.second.kill_everything()
    playing.wait_for_rows(90_000, 900)
    late = read_memory(playing.process.pid)

    ran = playing.finish(300)

    ran.check_whole(100_000)
    note(f"100,000 rollouts in {ran.seconds:.0f} s; driver {early:.0f} MB at 10,000, {late:.0f} MB at 90,000")
    assert late < early + 60


def read_memory(pid: int) -> float:
    """Megabytes that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
