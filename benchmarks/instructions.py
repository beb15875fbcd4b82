"""Instructions per rollout beside the floor: unlike CPU time, they do not depend on how busy the machine is.

Needs valgrind. The figure is the slope between a short run and a longer one, which leaves out starting up.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.children import HERE, cost_of, evaluate_command, mock_endpoint

FEW, MANY = 400, 1_600
COUNTED = re.compile(r"Collected : (\d+)")


def measured(cwd: Path) -> Iterator[tuple[str, str, str]]:
    """Instructions per single-turn rollout, and per call of the floor."""
    if shutil.which("valgrind") is None:
        yield "instructions per single-turn rollout", "not measured: valgrind is not installed", "≤ 1.5 ×"
        return
    with mock_endpoint(cwd) as url:
        floor = slope(lambda count: floor_command(url, count), cwd)
        ours = slope(lambda count: rollout_command(url, count), cwd)
    yield (
        "instructions per single-turn rollout, c=128, scored, traced, written",
        f"{ours / floor:.2f} × floor ({ours:,.0f}; floor {floor:,.0f})",
        "≤ 1.5 ×",
    )


def slope(command: Callable[[int], Sequence[str | Path]], cwd: Path) -> float:
    """Instructions that one more call or rollout takes."""
    few, many = (count_instructions(command(count), cwd) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def count_instructions(command: Sequence[str | Path], cwd: Path) -> int:
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    counted = COUNTED.search(cost_of(*valgrind, *command, cwd=cwd).output)
    if counted is None:
        raise RuntimeError(f"valgrind did not count the instructions of {' '.join(map(str, command))}")
    return int(counted[1])


def floor_command(url: str, calls: int) -> Sequence[str | Path]:
    return sys.executable, HERE / "raw_limit.py", url, str(calls), "128"


def rollout_command(url: str, rollouts: int) -> Sequence[str | Path]:
    flags = ("-n", str(rollouts // 4), "-r", "4", "-c", "128", "-w", "1", "-s")
    return sys.executable, *evaluate_command(url, *flags)
