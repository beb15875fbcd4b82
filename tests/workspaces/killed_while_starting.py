"""Run by a test: start sandboxes, each from a process that is killed a moment later.

    python killed_while_starting.py FOLDER MARK ROUNDS

Whatever is left of them has MARK on its command line.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from proctor.isolation.sandbox import SandboxLauncher
from proctor.isolation.streams import Streams
from proctor.support.threads import Threads
from proctor.workspaces.folder import AGENT, RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec

SILENT = Streams(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
STARTING_SECONDS = 0.03
"""Longer than it takes to start one."""


async def start(folder: RolloutFolder, mark: str) -> None:
    launcher = SandboxLauncher(folder.sandbox_config(AGENT))
    started = await launcher.start(["sh", "-c", "sleep 600", mark], SILENT, {})
    await started.wait()


def main() -> None:
    within, mark, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    folder = RolloutFolder(WorkspaceSpec("killed"), (), Threads(), within=within)
    folder.make()
    for _ in range(rounds):
        pid = os.fork()
        if pid == 0:
            asyncio.run(start(folder, mark))
            os._exit(0)
        time.sleep(random.uniform(0, STARTING_SECONDS))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    folder.remove()


if __name__ == "__main__":
    main()
