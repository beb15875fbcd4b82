"""How a command ends: the code it leaves with, and leaving for good."""

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
EXIT_STOPPED = 5
EXIT_TIMED_OUT = 6
EXIT_INTERRUPTED = 130


def exit_code(result: Result | None, min_coverage: float, interrupted: bool) -> int:
    """What one run means for the caller; no result at all is a failure."""
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
    """What a run on a server means for the caller; one that has not ended means nothing bad yet."""
    codes = {"failed": EXIT_FAILED, "stopped": EXIT_STOPPED, "timed_out": EXIT_TIMED_OUT}
    if run.status != "finished":
        return codes.get(run.status, 0)
    coverage = hosted_coverage(run)
    return EXIT_FAILED if coverage is None or coverage < min_coverage else 0


def hosted_coverage(run: RunInfo) -> float | None:
    """From the report, which knows what was left out on purpose; else from the counts."""
    if run.summary is not None and isinstance(run.summary.get("coverage"), (int, float)):
        return float(run.summary["coverage"])
    planned = run.progress.planned
    return run.progress.scored / planned if planned else None


def exit_process(code: int) -> None:
    """Exit, without waiting for threads that are stuck in somebody's code."""
    stuck = [thread for thread in threading.enumerate() if not thread.daemon]
    if len(stuck) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
