"""Workers in processes of this machine, each joined to the run by a socket pair.

Knows nothing of what they play.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import time
from pathlib import Path

from proctor.errors import EnvError
from proctor.support.processes import describe_exit, end_group, python_command
from proctor.workers.backend import WorkerExit
from proctor.workers.frames import StartWorker

KILLING_SECONDS = 10.0
LOOK_SECONDS = 0.02


class LocalBackend:
    """This machine."""

    starts_with_some = False

    async def __aenter__(self) -> LocalBackend:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def create_process(self, number: int, log_file: Path) -> LocalProcess:
        return LocalProcess(number, log_file)


class LocalProcess:
    """A child process of the run."""

    def __init__(self, number: int, log_file: Path) -> None:
        self.number = number
        self.log_file = log_file
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return "process not started" if self.process is None else f"process {self.process.pid}"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        try:
            with theirs, self.log_file.open("ab") as output:
                self.process = subprocess.Popen(
                    python_command("proctor.workers.process", str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is for the run, which stops its workers
                )
        except OSError as error:
            ours.close()
            raise EnvError(f"Worker process {self.number} cannot be started: {error}.") from error
        return await asyncio.open_connection(sock=ours)

    def localize(self, start: StartWorker) -> StartWorker:
        return start

    @property
    def is_over(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    async def wait_for_end(self, seconds: float) -> WorkerExit:
        if self.process is None:
            return WorkerExit("was never started", by_itself=False)
        for patience in (seconds, KILLING_SECONDS):
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if (code := self.process.poll()) is not None:
                    return WorkerExit(describe_exit(code), by_itself=code >= 0)
                await asyncio.sleep(LOOK_SECONDS)
            self.kill()
        return WorkerExit(describe_exit(-signal.SIGKILL), by_itself=False)  # the kernel has not reaped it yet

    def kill(self) -> None:
        if self.process is not None:
            end_group(self.process.pid)
