"""The contract between the pool and what its workers run in: local processes, or processes on a cluster.

Knows nothing of how work is divided.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from proctor.workers.frames import StartWorker


class WorkerExit(msgspec.Struct, frozen=True):
    """How a worker's process ended."""

    how: str
    """As a sentence about it continues: `was killed by SIGKILL`."""
    by_itself: bool
    """It exited; nothing killed it and no machine was lost."""


class WorkerProcess(Protocol):
    """One process for one worker."""

    log_file: Path
    """What it printed outside of the conversation; complete once it has ended."""

    @property
    def name(self) -> str:
        """Which process it is, and where."""
        ...

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Start it and connect to it. ConfigError or EnvError if that cannot be done."""
        ...

    def localize(self, start: StartWorker) -> StartWorker:
        """The same instructions with the paths that hold where it runs."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether it is known to have ended; a connection may stay open after that."""
        ...

    async def wait_for_end(self, seconds: float) -> WorkerExit:
        """How it ended; it is killed if it takes longer than that."""
        ...

    def kill(self) -> None:
        """Kill it and every process it started."""
        ...


class WorkerBackend(Protocol):
    """Creates the processes of workers, on this machine or on others."""

    starts_with_some: bool
    """Play as soon as some of the workers are ready; others may wait for room."""

    def create_process(self, number: int, log_file: Path) -> WorkerProcess: ...


OpenBackend = AbstractAsyncContextManager[WorkerBackend]
