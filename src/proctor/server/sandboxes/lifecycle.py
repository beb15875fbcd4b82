"""Keep places from their making to their end: with their run, by the clock, at their limits, with the server.

Knows nothing of HTTP, or of who may ask for what.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from proctor.api.sandboxes import Backend as BackendName
from proctor.api.sandboxes import Exec, ExecResult, SandboxStatus
from proctor.errors import EnvError, ProctorError
from proctor.server.db.database import Database
from proctor.server.problems import ConflictError
from proctor.server.sandboxes import records
from proctor.server.sandboxes.backend import Backend, BackendSandbox, SandboxSpec, ServedProgram
from proctor.server.sandboxes.bubblewrap import BubblewrapBackend
from proctor.server.sandboxes.docker import DockerBackend
from proctor.server.settings import SandboxLimits
from proctor.support.logs import log
from proctor.support.shield import create_or_undo

SWEEP_SECONDS = 5.0
PATIENCE_SECONDS = 20.0
"""How long a request waits for a place; after that it is told that it is still starting."""
COMMANDS_AT_ONCE = 8
REMEMBERED = 64
MEGABYTE = 2**20
RESTARTED = "The server was started anew."

Prepare = Callable[[BackendSandbox], Awaitable[ServedProgram | None]]
"""What is done in a fresh place before it counts as ready; the program, if any, is served."""


class LiveSandbox:
    """A place that is there, and what goes on in it."""

    def __init__(self, place: BackendSandbox, disk_mb: int) -> None:
        self.place = place
        self.disk_mb = disk_mb
        self.socket: Path | None = None
        """Leads to the port of its program, if it has one."""
        self._gate = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._asked: dict[str, asyncio.Task[ExecResult]] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Held by whatever is done there; what fails there is a refusal, not a fault of the server."""
        async with self._gate:
            try:
                yield
            except EnvError as error:
                raise ConflictError(f"That could not be done there: {error}.", code="place_failed") from error

    async def run(self, asked: Exec, key: str) -> ExecResult:
        """Run a command; one that is asked for again with its key is not run again."""
        if not key:
            return await self._run(asked)
        running = self._asked.get(key)
        if running is None:
            running = self._asked[key] = asyncio.create_task(self._run(asked))
            while len(self._asked) > REMEMBERED:
                self._asked.pop(next(iter(self._asked)))
        return await asyncio.shield(running)

    async def _run(self, asked: Exec) -> ExecResult:
        command = asked.command
        words = ["sh", "-c", command] if isinstance(command, str) else command
        async with self.turn():
            ran = await self.place.run(
                words, stdin=asked.stdin.encode(), variables=asked.variables, seconds=asked.timeout_seconds
            )
        return ExecResult(code=ran.code, output=ran.output)

    async def close(self) -> None:
        for task in self._asked.values():
            task.cancel()
        await self.place.close()


class SandboxManager:
    """All places of one server."""

    def __init__(self, database: Database, folder: Path, limits: SandboxLimits, server: str) -> None:
        self.limits = limits
        self.server = server
        """Which of those on its database."""
        self._database = database
        self.backends: Mapping[BackendName, Backend] = {
            "bubblewrap": BubblewrapBackend(folder / "places", hidden=[folder]),
            "docker": DockerBackend(),
        }
        self._usable: dict[BackendName, str] = {}
        """What hinders each back end; nothing where it works."""
        self._making: dict[str, asyncio.Task[LiveSandbox]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    # With the server

    async def start(self) -> None:
        left = await self._database.write(records.end_all, self.server, RESTARTED)
        for name, backend in self.backends.items():
            if name in left:
                await self._clear(name, backend)
        self._sweeping = asyncio.create_task(self._sweep_on())

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait({self._sweeping})
        await asyncio.gather(*(self.end(place_id, RESTARTED) for place_id in [*self._making]))

    async def _clear(self, name: str, backend: Backend) -> None:
        try:
            await backend.clear()
        except ProctorError as error:
            log.warning("what an earlier server left in %s could not be removed: %s", name, error)

    # One place

    async def choose(self, wished: BackendName | None) -> BackendName:
        """The back end that is wished for, or the first that works here."""
        names: list[BackendName] = [wished] if wished else list(self.backends)
        hindrances = []
        for name in names:
            if name not in self._usable:
                self._usable[name] = await describe_hindrance(self.backends[name])
            if not self._usable[name]:
                return name
            hindrances.append(f"{name}: {self._usable[name]}")
        self._usable.clear()  # the operator may mend it without starting the server anew
        raise ConflictError(
            f"This server can make no sandboxes; tell its operator. {' '.join(hindrances)}", code="no_backend"
        )

    async def make(self, place_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare) -> None:
        """Begin to make a place, and wait a while for it."""
        making = await self.begin(place_id, backend, spec, prepare)
        if making is not None:
            await asyncio.wait({making}, timeout=PATIENCE_SECONDS)

    async def begin(
        self, place_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare
    ) -> asyncio.Task[LiveSandbox] | None:
        """Once, however often this is asked; what has ended is not made again."""
        row = await self._database.read(records.find_row, place_id)
        if row.status == "starting" and place_id not in self._making:
            self._making[place_id] = asyncio.create_task(self._make(place_id, backend, spec, prepare))
        return self._making.get(place_id)

    async def _make(
        self, place_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare
    ) -> LiveSandbox:
        made: LiveSandbox | None = None
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                opening = self.backends[backend].open(spec)
                made = LiveSandbox(await create_or_undo(opening, lambda place: place.close()), spec.disk_mb)
            program = await prepare(made.place)  # with a clock of its own: something may have to be built
            if program is not None:
                async with asyncio.timeout(self.limits.start_seconds):
                    made.socket = await made.place.serve(program)
            await self._database.write(records.set_status, place_id, "ready")
        except BaseException as error:
            if made is not None:
                await asyncio.shield(made.close())
            await self._database.write(records.set_status, place_id, "failed", self._why(error))
            if not isinstance(error, (ProctorError, TimeoutError, asyncio.CancelledError)):
                log.error("the place %s could not be made", place_id, exc_info=error)
            raise
        return made

    def _why(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"It was not ready within {self.limits.start_seconds:g} s."
        return str(error) or "It was ended before it was ready."

    async def opened(self, place_id: str) -> LiveSandbox:
        """A place to use; a ConflictError if it is not ready, or not any more."""
        making = self._making.get(place_id)
        if making is None or not is_ready(making):
            raise ConflictError(f"{place_id} is not ready; look at its status.", code="place_not_ready")
        return making.result()

    async def look(self, place_id: str) -> None:
        """Notice a program that has ended."""
        making = self._making.get(place_id)
        if making is None or not is_ready(making):
            return
        why = await making.result().place.ended()
        if why is not None:
            await self.end(place_id, why, "failed")

    async def end(self, place_id: str, message: str, status: SandboxStatus = "ended") -> None:
        """End a place; nothing of it is left when this returns."""
        making = self._making.pop(place_id, None)
        await self._database.write(records.set_status, place_id, status, message)
        if making is not None:
            making.cancel()
            await asyncio.shield(close_when_made(making))

    async def reap(self, run_id: str) -> None:
        """End everything a run had."""
        mine = await self._database.read(records.list_ids_of_run, run_id)
        await asyncio.gather(*(self.end(place_id, "Its run is over.") for place_id in mine))

    # By the clock

    async def sweep(self) -> None:
        """End what is overdue, what takes too much, and what has died."""
        kept = [*self._making]
        due = await self._database.read(records.find_overdue, self.server, time.time())
        alive = await self._database.read(records.list_alive_ids)
        due.update((place_id, "Its run was deleted.") for place_id in kept if place_id not in alive)
        await asyncio.gather(*(self.end(place_id, why) for place_id, why in due.items()))
        for place_id, making in [*self._making.items()]:
            if is_ready(making):
                with suppress(EnvError):  # it is being ended by somebody else
                    await self._check(place_id, making.result())

    async def _check(self, place_id: str, made: LiveSandbox) -> None:
        if await made.place.used_bytes() > made.disk_mb * MEGABYTE:
            await self.end(place_id, f"It took more than {made.disk_mb} MB of disk.", "failed")
        else:
            await self.look(place_id)

    async def _sweep_on(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except Exception as error:
                log.error("places could not be looked after", exc_info=error)


async def close_when_made(making: asyncio.Task[LiveSandbox]) -> None:
    await asyncio.wait({making})
    if is_ready(making):
        await making.result().close()


def is_ready(making: asyncio.Task[LiveSandbox]) -> bool:
    return making.done() and not making.cancelled() and making.exception() is None


async def describe_hindrance(backend: Backend) -> str:
    try:
        await backend.check()
    except ProctorError as error:
        return str(error)
    return ""
