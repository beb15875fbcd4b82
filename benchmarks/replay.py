"""The reply cache beside asking: a call that it answers, and a whole evaluation that is replayed.

The floor of asking is one chat call with nothing around it (`raw_limit.py`) to the mock endpoint. A call is
what the cache saves; a replayed rollout is still played, scored, traced and written.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.children import HERE, cost_of, evaluate, mock_endpoint

PAIRS = 9
CALLS = 10_000
LATENCY_MS, AT_ONCE = 50, 64
ROLLOUTS = 3_200


def measured(cwd: Path) -> Iterator[tuple[str, str, str]]:
    yield from cached_call(cwd)
    yield from replayed_evaluation(cwd)


def cached_call(cwd: Path) -> Iterator[tuple[str, str, str]]:
    """CPU of both in turns, so that both see the same machine."""
    ratios, ours, floors = [], [], []
    with mock_endpoint(cwd) as url:
        for number in range(PAIRS):
            floor = cost_of(sys.executable, HERE / "raw_limit.py", url, str(CALLS), "128", cwd=cwd)
            folder = cwd / f"calls-{number}"
            cached = cost_of(sys.executable, HERE / "cached_calls.py", folder, str(CALLS), cwd=cwd)
            floors.append(float(floor.output.split()[0]))
            ours.append(float(cached.output.split()[0]))
            ratios.append(floors[-1] / ours[-1])
    yield (
        "CPU of a call that the reply cache answers, beside the floor of asking",
        (
            f"{statistics.median(ratios):.0f} × less ({statistics.median(ours):.3f} ms; "
            f"floor {statistics.median(floors):.3f} ms)"
        ),
        "≥ 10 × less",
    )


def replayed_evaluation(cwd: Path) -> Iterator[tuple[str, str, str]]:
    """The wall time of an evaluation beyond that of a single rollout, asked and replayed."""
    few = ("-n", 1, "-r", 1, "-c", AT_ONCE, "-s", "--cache", cwd / "cache")
    many = ("-n", ROLLOUTS // 4, "-r", 4, "-c", AT_ONCE, "-s", "--cache", cwd / "cache")
    with mock_endpoint(cwd, latency_ms=LATENCY_MS) as url:
        evaluate(url, cwd, *few)
        asked = evaluate(url, cwd, *many).wall_seconds
        idle = statistics.median(evaluate(url, cwd, *few).wall_seconds for _ in range(3))
        replays = [evaluate(url, cwd, *many).wall_seconds - idle for _ in range(5)]
    replayed = statistics.median(replays)
    yield (
        f"replay of {ROLLOUTS:,} rollouts, model latency {LATENCY_MS} ms, c={AT_ONCE}",
        f"{(asked - idle) / replayed:.1f} × faster ({replayed:.2f} s; asked {asked - idle:.2f} s)",
        "none: the rollouts' own work remains",
    )
