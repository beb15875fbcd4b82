"""Child processes: launch a fresh Python, end a process group, end with a parent, describe how one exited.

Knows nothing of what they are for.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
LAST_WORDS = 3
"""Lines quoted from the output of a dead process."""
LONGEST_WORD = 300

FATAL = "Fatal Python error"
CURRENT = "Current thread"
"""After this line, a crash lists where it happened, innermost first."""

LAUNCH = (
    "import importlib, json, sys; module, path, root = json.loads(sys.argv[2]); "
    "root in sys.path or sys.path.insert(0, root); sys.path += path; "
    "main = importlib.import_module(module).main; sys.path[:] = path; main()"
)
"""Finds modules where this process does; files in the working directory must not shadow a library's."""
ROOT = str(Path(__file__).parents[1])


def python_command(module: str, argument: str) -> list[str]:
    """The command line of a process that runs `main()` of a module; the argument is its sys.argv[1]."""
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return [sys.executable, "-P", "-c", LAUNCH, argument, json.dumps([module, path, ROOT])]


def end_group(leader: int) -> None:
    """Kill a process group: its leader and all that it left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread ends that started it; Linux only."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def summarize_output(lines: Sequence[str]) -> str:
    """The end of a process's output, on one line."""
    words = select_last_lines([line.strip() for line in lines if line.strip()])
    return " / ".join(word if len(word) <= LONGEST_WORD else f"…{word[-LONGEST_WORD:]}" for word in words)


def select_last_lines(lines: Sequence[str]) -> Sequence[str]:
    """The last lines; for a crash, its cause and where the crashing thread was."""
    fatal = next((index for index, line in enumerate(lines) if line.startswith(FATAL)), None)
    if fatal is None:
        return lines[-LAST_WORDS:]
    thread = next((index for index, line in enumerate(lines) if line.startswith(CURRENT)), fatal)
    return [lines[fatal], *lines[thread + 1 : thread + LAST_WORDS]]
