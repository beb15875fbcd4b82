"""Measure everything that has a target, and print the table. Takes about five minutes.

python -m benchmarks [NAME …]        only the measures whose name contains one of these words
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import (
    comparison,
    dashboard,
    followers,
    gateway,
    gateway_instructions,
    instructions,
    live_pages,
    replay,
    scaling,
    traces,
    unit_costs,
)
from benchmarks.children import HERE, PROCTOR, cost_of, evaluate, mock_endpoint

Row = tuple[str, str, str]
PAIRS = 9
ROLLOUTS = 10_000
STARTS = 11
PLACED = 4_000
"""Rollouts of a measure over the channel."""


def rollout_cpu(cwd: Path) -> Iterator[Row]:
    """CPU per rollout beside the floor, in turns, so that both see the same machine."""
    with mock_endpoint(cwd) as url:
        idle = statistics.median(
            evaluate(url, cwd, "-n", 1, "-r", 1, "-c", 128, "-s").cpu_seconds for _ in range(3)
        )
        ratios, ours, floors = [], [], []
        for _ in range(PAIRS):
            floor = cost_of(sys.executable, HERE / "raw_limit.py", url, str(ROLLOUTS), "128", cwd=cwd)
            floors.append(float(floor.output.split()[0]))
            run = evaluate(url, cwd, "-n", ROLLOUTS // 4, "-r", 4, "-c", 128, "-s")
            ours.append((run.cpu_seconds - idle) / ROLLOUTS * 1000)
            ratios.append(ours[-1] / floors[-1])
    yield (
        "CPU per single-turn rollout, c=128, scored, traced, written",
        (
            f"{statistics.median(ratios):.2f} × floor "
            f"({statistics.median(ours):.3f} ms; floor {statistics.median(floors):.3f} ms)"
        ),
        "≤ 1.5 ×",
    )


def start_up(cwd: Path) -> Iterator[Row]:
    """The best of several in turns: what a start costs when nothing else is going on."""
    commands: dict[str, tuple[str | Path, ...]] = {
        "bare": (sys.executable, "-c", "pass"),
        "version": (PROCTOR, "--version"),
        "import": (sys.executable, "-c", "import proctor"),
        "help": (PROCTOR, "eval", "run", "--help"),
    }
    costs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, command in commands.items():
            costs[name].append(cost_of(*command, cwd=cwd).cpu_seconds * 1000)
    bare, version, imported, shown = (min(each) for each in costs.values())
    yield (
        "CPU of `proctor --version`",
        f"{version / bare:.1f} × `python -c pass` ({version:.0f} ms; {bare:.0f} ms)",
        "≤ 6 ×",
    )
    yield "CPU of `import proctor`, with the interpreter's start", f"{imported:.0f} ms", "≤ 60 ms"
    yield (
        "CPU of `proctor eval run --help`",
        f"{shown / bare:.1f} × `python -c pass` ({shown:.0f} ms; {bare:.0f} ms)",
        "≤ 12 ×",
    )


def small_run(cwd: Path) -> Iterator[Row]:
    with mock_endpoint(cwd) as url:
        costs = [evaluate(url, cwd, "-n", 2, "-r", 3) for _ in range(5)]
    yield (
        "CPU of a 6-rollout evaluation, all included",
        f"{statistics.median(cost.cpu_seconds for cost in costs):.2f} s",
        "≤ 0.8 s",
    )


def memory_and_resume(cwd: Path) -> Iterator[Row]:
    with mock_endpoint(cwd) as url:
        small = evaluate(url, cwd, "-n", 2_500, "-r", 4, "-c", 128, "-s", "-o", cwd / "small")
        large = evaluate(url, cwd, "-n", 25_000, "-r", 4, "-c", 128, "-s", "-o", cwd / "large")
        yield (
            "peak memory, 100,000 rollouts",
            f"{large.peak_megabytes:.0f} MB ({small.peak_megabytes:.0f} MB at 10,000)",
            "≤ 200 MB, flat from 10,000",
        )
        folder = next((cwd / "large").glob("evals/*/*"))
        resumed = evaluate(url, cwd, "-n", 25_001, "-r", 4, "-c", 128, "-s", "--resume", folder)
        rows = (folder / "results.jsonl").read_text().splitlines()
        first = min(json.loads(row)["timing"]["start_time"] for row in rows[-4:])
        yield (
            "resume of 100,000 finished rows, to the first owed rollout",
            f"{first - resumed.started_at:.2f} s",
            "≤ 2 s",
        )


def in_flight(cwd: Path) -> Iterator[Row]:
    with mock_endpoint(cwd, latency_ms=10_000) as url:
        run = evaluate(url, cwd, "-n", 10_000, "-r", 1, "-c", 5_000, "-s")
    yield (
        "10,000 rollouts, 5,000 in flight, model latency 10 s",
        f"{run.wall_seconds:.1f} s, {run.wall_seconds / 20:.2f} × the ideal 20 s",
        "≤ 1.25 ×",
    )


def placed(cwd: Path) -> Iterator[Row]:
    """A rollout over the channel to a process of its own, beside the same one in process."""
    here: tuple[str, ...] = ("-c", "128", "-s")
    there = (*here, "--runtime", "local")

    def cost(count: int, flags: tuple[str, ...]) -> float:
        words = ("-n", count, "-r", 1 if count == 1 else 4, *flags)
        return evaluate(url, cwd, *words, source="sums.py").cpu_seconds

    with mock_endpoint(cwd) as url:
        firsts = [(cost(1, here), cost(1, there)) for _ in range(5)]
        idle_here, idle_there = (statistics.median(each) for each in zip(*firsts, strict=True))
        pairs = [(cost(PLACED // 4, here), cost(PLACED // 4, there)) for _ in range(PAIRS)]
    marginal = [((one - idle_here) / PLACED, (other - idle_there) / PLACED) for one, other in pairs]
    yield (
        "LocalRuntime: first rollout, beyond the same in process",
        f"{idle_there - idle_here:.2f} s CPU",
        "≤ 1 s",
    )
    inside, outside = (statistics.median(each) * 1000 for each in zip(*marginal, strict=True))
    ratio = statistics.median(other / one for one, other in marginal)
    yield (
        "LocalRuntime: marginal CPU per rollout, c=128",
        f"{ratio:.2f} × in process ({outside:.3f} ms; {inside:.3f} ms)",
        "≤ 3 ×",
    )


MEASURES: dict[str, Callable[[Path], Iterator[Row]]] = {
    "start": start_up,
    "small": small_run,
    "cpu": rollout_cpu,
    "instructions": instructions.measured,
    "memory": memory_and_resume,
    "flight": in_flight,
    "cache": replay.measured,
    "compare": comparison.measured,
    "placed": placed,
    "scaling": scaling.measured,
    "gateway": gateway.measured,
    "gateway-instructions": gateway_instructions.measured,
    "followers": followers.measured,
    "unit_costs": unit_costs.measured,
    "traces": traces.measured,
    "dashboard": dashboard.measured,
    "live pages": live_pages.measured,
}


def main(words: list[str]) -> None:
    print("| measure | measured | target |\n|---|---|---|")
    for name, measure in MEASURES.items():
        if not words or any(word in name for word in words):
            with tempfile.TemporaryDirectory() as folder:
                for row in measure(Path(folder)):
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
