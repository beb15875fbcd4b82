"""How a command ends: its exit code, and exiting the process."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.api.runs import RunInfo
    from proctor.evaluation.evaluate import Result

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_GATE_FAILED = 3
EXIT_INCONCLUSIVE = 4
EXIT_STOPPED = 5
EXIT_TIMED_OUT = 6
EXIT_INTERRUPTED = 130


def exit_code(result: Result | None, min_coverage: float, interrupted: bool) -> int:
    """The exit code of one run; no result is a failure."""
    if interrupted and (result is None or result.run.status != "finished"):
        return EXIT_INTERRUPTED
    if result is None:
        return EXIT_FAILED
    if result.run.status == "stopped":
        return EXIT_STOPPED
    coverage = result.summary.coverage
    if result.run.status != "finished" or coverage is None or coverage < min_coverage:
        return EXIT_FAILED
    return 0


def hosted_exit_code(run: RunInfo, min_coverage: float) -> int:
    """The exit code of a run on a server; 0 while it has not ended."""
    codes = {"failed": EXIT_FAILED, "stopped": EXIT_STOPPED, "timed_out": EXIT_TIMED_OUT}
    if run.status != "finished":
        return codes.get(run.status, 0)
    coverage = hosted_coverage(run)
    return EXIT_FAILED if coverage is None or coverage < min_coverage else 0


def hosted_coverage(run: RunInfo) -> float | None:
    """From the report, which accounts for excluded rollouts; otherwise from the counts."""
    if run.summary is not None and isinstance(run.summary.get("coverage"), (int, float)):
        return float(run.summary["coverage"])
    planned = run.progress.planned
    return run.progress.scored / planned if planned else None


def exit_process(code: int) -> None:
    """Exit without waiting for threads stuck in user code."""
    stuck = [thread for thread in threading.enumerate() if not thread.daemon]
    if len(stuck) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
