"""Run a rollout server's script as `python SCRIPT` would, and end it when what started it is gone.

    python THIS_FILE PARENT_PID SCRIPT

Runs in the script's own Python, where Proctor may not be: only the standard library is imported.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

LOOK_SECONDS = 1.0


def end_with_parent(parent: int) -> None:
    """Kill this process and what it started once its parent is gone, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    del sys.argv[:2]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120 - fast to start
    runpy.run_path(sys.argv[0], run_name="__main__")
