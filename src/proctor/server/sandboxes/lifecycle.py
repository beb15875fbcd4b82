"""Create sandboxes, and end them: with their run, at their deadline, at their limits, or with the server.

Knows nothing of HTTP, or of permissions.
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
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.problems import ConflictError
from proctor.server.sandboxes import records
from proctor.server.sandboxes.backend import Backend, BackendSandbox, SandboxSpec, ServedProgram
from proctor.server.sandboxes.bubblewrap import BubblewrapBackend
from proctor.server.sandboxes.docker import DockerBackend
from proctor.server.settings import SandboxLimits
from proctor.support.cancellation import create_or_undo
from proctor.support.logs import log

SWEEP_SECONDS = 5.0
PATIENCE_SECONDS = 20.0
"""How long a request waits for a sandbox; after that it reports the status `starting`."""
COMMANDS_AT_ONCE = 8
REMEMBERED = 64
MEGABYTE = 2**20
RESTARTED = "The server was restarted."

Prepare = Callable[[BackendSandbox], Awaitable[ServedProgram | None]]
"""Prepares a new sandbox before it counts as ready; the program it returns, if any, is served."""


class LiveSandbox:
    """A sandbox that is ready, and the commands in it."""

    def __init__(self, sandbox: BackendSandbox, disk_mb: int) -> None:
        self.sandbox = sandbox
        self.disk_mb = disk_mb
        self.socket: Path | None = None
        """Leads to the port of its program, if it has one."""
        self._semaphore = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._runs_by_key: dict[str, asyncio.Task[ExecResult]] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Limits concurrent commands; their failures are the caller's errors, not the server's."""
        async with self._semaphore:
            try:
                yield
            except EnvError as error:
                raise ConflictError(
                    f"The sandbox could not do that: {error}.", code="place_failed"
                ) from error

    async def run(self, request: Exec, key: str) -> ExecResult:
        """Run a command; one that is requested again with the same key is not run again."""
        if not key:
            return await self._run(request)
        running = self._runs_by_key.get(key)
        if running is None:
            running = self._runs_by_key[key] = asyncio.create_task(self._run(request))
            while len(self._runs_by_key) > REMEMBERED:
                self._runs_by_key.pop(next(iter(self._runs_by_key)))
        return await asyncio.shield(running)

    async def _run(self, request: Exec) -> ExecResult:
        text = request.command
        command = ["sh", "-c", text] if isinstance(text, str) else text
        async with self.turn():
            ran = await self.sandbox.run(
                command,
                stdin=request.stdin.encode(),
                variables=request.variables,
                seconds=request.timeout_seconds,
            )
        return ExecResult(code=ran.code, output=ran.output)

    async def close(self) -> None:
        for task in self._runs_by_key.values():
            task.cancel()
        await self.sandbox.close()


class SandboxManager:
    """All sandboxes of one server."""

    def __init__(self, database: Database, folder: Path, limits: SandboxLimits, server: str) -> None:
        self.limits = limits
        self.server = server
        """Which of the servers on the database."""
        self._database = database
        self.backends: Mapping[BackendName, Backend] = {
            "bubblewrap": BubblewrapBackend(folder / "places", hidden=[folder]),
            "docker": DockerBackend(),
        }
        self._problems: dict[BackendName, str] = {}
        """Why each backend does not work; empty if it does."""
        self._making: dict[str, asyncio.Task[LiveSandbox]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    # Start and end of the server

    async def start(self) -> None:
        leftovers = await self._database.write(records.end_all, self.server, RESTARTED)
        for name, backend in self.backends.items():
            if name in leftovers:
                await self._clear(name, backend)
        self._sweeping = asyncio.create_task(self._sweep_on())

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait({self._sweeping})
        await asyncio.gather(*(self.end(sandbox_id, RESTARTED) for sandbox_id in [*self._making]))

    async def _clear(self, name: str, backend: Backend) -> None:
        try:
            await backend.clear()
        except ProctorError as error:
            log.warning("could not remove what an earlier server left in %s: %s", name, error)

    # One sandbox

    async def choose(self, requested: BackendName | None) -> BackendName:
        """The requested backend, or the first that works here."""
        names: list[BackendName] = [requested] if requested else list(self.backends)
        problems = []
        for name in names:
            if name not in self._problems:
                self._problems[name] = await describe_backend_problem(self.backends[name])
            if not self._problems[name]:
                return name
            problems.append(f"{name}: {self._problems[name]}")
        self._problems.clear()  # the operator may fix it without a restart
        raise ConflictError(
            f"This server cannot create sandboxes; tell its operator. {' '.join(problems)}", code="no_backend"
        )

    async def make(self, sandbox_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare) -> None:
        """Start creating a sandbox, and wait a while for it."""
        making = await self.begin(sandbox_id, backend, spec, prepare)
        if making is not None:
            await asyncio.wait({making}, timeout=PATIENCE_SECONDS)

    async def begin(
        self, sandbox_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare
    ) -> asyncio.Task[LiveSandbox] | None:
        """Creates it once, however often this is called; a sandbox that has ended is not created again."""
        row = await self._database.read(records.find_row, sandbox_id)
        is_mine = row.server == self.server  # a repeated request may reach another server
        if row.status == "starting" and is_mine and sandbox_id not in self._making:
            self._making[sandbox_id] = asyncio.create_task(self._make(sandbox_id, backend, spec, prepare))
        return self._making.get(sandbox_id)

    async def _make(
        self, sandbox_id: str, backend: BackendName, spec: SandboxSpec, prepare: Prepare
    ) -> LiveSandbox:
        live: LiveSandbox | None = None
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                opening = self.backends[backend].open(spec)
                live = LiveSandbox(
                    await create_or_undo(opening, lambda sandbox: sandbox.close()), spec.disk_mb
                )
            program = await prepare(live.sandbox)  # without that timeout: something may have to be built
            if program is not None:
                async with asyncio.timeout(self.limits.start_seconds):
                    live.socket = await live.sandbox.serve(program)
            await self._database.write(records.set_status, sandbox_id, "ready")
        except BaseException as error:
            if live is not None:
                await asyncio.shield(live.close())
            await self._database.write(records.set_status, sandbox_id, "failed", self._why(error))
            if not isinstance(error, (ProctorError, TimeoutError, asyncio.CancelledError)):
                log.error("could not create the sandbox %s", sandbox_id, exc_info=error)
            raise
        return live

    def _why(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"It was not ready within {self.limits.start_seconds:g} s."
        return str(error) or "It was ended before it was ready."

    async def find_ready(self, sandbox_id: str) -> LiveSandbox:
        """A sandbox to use; a ConflictError if it is not ready, or has ended."""
        making = self._making.get(sandbox_id)
        if making is None or not is_ready(making):
            raise ConflictError(f"{sandbox_id} is not ready; look at its status.", code="place_not_ready")
        return making.result()

    async def look(self, sandbox_id: str) -> None:
        """Notice a program that has ended."""
        making = self._making.get(sandbox_id)
        if making is None or not is_ready(making):
            return
        why = await making.result().sandbox.describe_exit()
        if why is not None:
            await self.end(sandbox_id, why, "failed")

    async def end(self, sandbox_id: str, message: str, status: SandboxStatus = "ended") -> None:
        """End a sandbox; nothing of it is left when this returns."""
        making = self._making.pop(sandbox_id, None)
        await self._database.write(records.set_status, sandbox_id, status, message)
        if making is not None:
            making.cancel()
            await asyncio.shield(close_when_ready(making))

    async def reap(self, run_id: str) -> None:
        """End every sandbox of a run."""
        mine = await self._database.read(records.list_ids_of_run, run_id)
        await asyncio.gather(*(self.end(sandbox_id, "Its run is over.") for sandbox_id in mine))

    # Sweeps

    async def sweep(self) -> None:
        """End sandboxes that are overdue, exceed a limit, or have died."""
        known = [*self._making]
        due = await self._database.read(records.find_overdue, self.server, time.time())
        alive = await self._database.read(records.list_alive_ids)
        due.update((sandbox_id, "Its run was deleted.") for sandbox_id in known if sandbox_id not in alive)
        await asyncio.gather(*(self.end(sandbox_id, why) for sandbox_id, why in due.items()))
        for sandbox_id, making in [*self._making.items()]:
            if is_ready(making):
                with suppress(EnvError):  # another task is ending it
                    await self._check(sandbox_id, making.result())

    async def _check(self, sandbox_id: str, live: LiveSandbox) -> None:
        if await live.sandbox.used_bytes() > live.disk_mb * MEGABYTE:
            await self.end(sandbox_id, f"It exceeded its limit of {live.disk_mb} MB of disk.", "failed")
        else:
            await self.look(sandbox_id)

    async def _sweep_on(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except DatabaseAwayError:
                continue  # the log says so already
            except Exception as error:
                log.error("could not sweep the sandboxes", exc_info=error)


async def close_when_ready(making: asyncio.Task[LiveSandbox]) -> None:
    await asyncio.wait({making})
    if is_ready(making):
        await making.result().close()


def is_ready(making: asyncio.Task[LiveSandbox]) -> bool:
    return making.done() and not making.cancelled() and making.exception() is None


async def describe_backend_problem(backend: Backend) -> str:
    try:
        await backend.check()
    except ProctorError as error:
        return str(error)
    return ""
