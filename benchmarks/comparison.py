"""`proctor eval compare` of two runs of 100,000 rollouts each, multiplied from a run that was played."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.children import PROCTOR, cost_of
from benchmarks.long_runs import play_template, write_long_run

ROLLOUTS = 100_000
TIMES = 3


def measured(cwd: Path) -> Iterator[tuple[str, str, str]]:
    template = play_template(cwd)
    sides = [cwd / name for name in ("baseline", "candidate")]
    for side in sides:
        write_long_run(template, side, ROLLOUTS)
    change_rewards(sides[1])
    costs = [cost_of(PROCTOR, "eval", "compare", *sides, cwd=cwd) for _ in range(TIMES)]
    peak = max(cost.peak_megabytes for cost in costs)
    cpu = statistics.median(cost.cpu_seconds for cost in costs)
    wall = statistics.median(cost.wall_seconds for cost in costs)
    yield (
        f"`proctor eval compare` of two runs of {ROLLOUTS:,} rollouts",
        f"{wall:.1f} s ({cpu:.1f} s CPU), {peak:.0f} MB",
        "≤ 3 s, ≤ 300 MB",
    )


def change_rewards(folder: Path) -> None:
    """Let one rollout in eleven come out otherwise, so that there is something to test. Line by line: what
    this process holds counts as its children's peak."""
    (path,) = folder.rglob("results.jsonl")
    changed = path.with_suffix(".changed")
    with path.open() as rows, changed.open("w") as out:
        for place, line in enumerate(rows):
            if place % 11 == 0:
                row = json.loads(line)
                line = json.dumps({**row, "reward": 1.0 - row["reward"]}) + "\n"
            out.write(line)
    changed.replace(path)
