"""A worker as the run sees it: what it was given, and what it answers.

Knows neither what it runs in (`backend.py`) nor how work is divided.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from proctor.engine.plan import Unit
from proctor.errors import ConfigError, EnvError
from proctor.rollout import Rollout
from proctor.support.processes import FATAL, summarize_output
from proctor.workers.backend import WorkerExit, WorkerProcess
from proctor.workers.frames import FrameWriter, PlayUnit, StartWorker, WorkerFrame, pack_unit

LEAVING_SECONDS = 25.0
LAST_BYTES = 16_384


class WorkerDiedError(EnvError):
    """The process that played a rollout is gone."""


class WorkerHandle:
    """One worker."""

    def __init__(self, number: int, seat: int, process: WorkerProcess, *, is_alone: bool = False) -> None:
        self.number = number
        self.seat = seat
        """Which share of the limits it has; its replacement inherits it."""
        self.is_alone = is_alone
        """Started for one unit, which may kill its worker."""
        self.process = process
        self.is_ready = False
        self.end: Exception | None = None
        """Why nothing more comes from here, if that is so."""
        self.load = 0
        self.last_frame_at = time.monotonic()
        self._units: dict[int, tuple[Unit, asyncio.Future[Sequence[Rollout]]]] = {}
        self._sender: FrameWriter | None = None

    @property
    def name(self) -> str:
        return f"worker {self.number} ({self.process.name})"

    @property
    def is_open(self) -> bool:
        """Whether there is a connection to it."""
        return self._sender is not None

    @property
    def lost(self) -> int:
        """Units that were given to it and did not come back."""
        return sum(1 for _, answer in self._units.values() if not answer.done())

    async def connect(self, start: StartWorker) -> asyncio.StreamReader:
        reader, writer = await self.process.open()
        self.last_frame_at = time.monotonic()
        self._sender = FrameWriter(writer)
        try:
            self._sender.send(self.process.localize(start))
        except Exception as error:
            raise ConfigError(
                f"The settings cannot be sent to a worker process ({type(error).__name__}: {error}); "
                f"leave out -w."
            ) from error
        return reader

    def send(self, frame: WorkerFrame) -> None:
        if self.end is None and self._sender is not None:
            self._sender.send(frame)

    async def play(self, number: int, unit: Unit) -> Sequence[Rollout]:
        if self.end is not None:
            raise self.end
        packed = pack_unit(unit)
        answer: asyncio.Future[Sequence[Rollout]] = asyncio.get_running_loop().create_future()
        self._units[number] = (unit, answer)
        self.load += len(unit)
        try:
            self.send(PlayUnit(number, unit[0].task.id, packed))
            return await answer
        finally:
            self.load -= len(unit)
            del self._units[number]

    def unit(self, number: int) -> Unit | None:
        """The unit with this number, if its caller still waits for it."""
        unit, _ = self._units.get(number, (None, None))
        return unit

    def answer(self, number: int, rollouts: Sequence[Rollout]) -> None:
        _, answer = self._units[number]
        if not answer.done():
            answer.set_result(rollouts)

    def fail(self, error: Exception) -> None:
        """Nothing more comes from here."""
        self.end = self.end or error
        for _, answer in self._units.values():
            if not answer.done():
                answer.set_exception(error)

    def last_words(self) -> str:
        return summarize_output(self._last_lines())

    def crash_lines(self) -> list[str]:
        """The stack that a crash of the process left, if it did: everything else it printed was sent."""
        lines = self._last_lines()
        start = next((index for index, line in enumerate(lines) if line.startswith(FATAL)), len(lines))
        return lines[start:]

    def _last_lines(self) -> list[str]:
        try:
            with self.process.log_file.open("rb") as file:
                file.seek(max(0, self.process.log_file.stat().st_size - LAST_BYTES))
                return file.read().decode(errors="replace").splitlines()
        except OSError:
            return []

    def hang_up(self) -> None:
        """Close the connection, which ends the worker."""
        if self._sender is not None:
            self._sender.close()

    async def leave(self) -> None:
        """Have the worker exit, and wait until it has."""
        self.fail(WorkerDiedError(f"{self.name} was told to exit"))
        self.hang_up()
        # Before it is ready it has opened nothing that would have to be closed.
        await self.wait_for_end(LEAVING_SECONDS if self.is_ready else 0.0)
        self.remove_empty_log()

    async def wait_for_end(self, seconds: float) -> WorkerExit:
        """How it ended; it is killed if it takes longer than that."""
        return await self.process.wait_for_end(seconds)

    def remove_empty_log(self) -> None:
        with suppress(OSError):
            if not self.process.log_file.stat().st_size:
                self.process.log_file.unlink()
