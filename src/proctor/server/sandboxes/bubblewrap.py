"""Places behind bubblewrap's walls: a folder, commands in namespaces of their own, no network.

A program that serves is reached through a Unix socket that it is handed already listening: the path of the
socket lies outside of the walls, so that nothing inside can lead the server elsewhere. Knows nothing of runs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from proctor.contracts import CommandResult
from proctor.errors import EnvError, InfraError
from proctor.isolation.limits import ControlGroup, RunLimits, make_control_group
from proctor.isolation.sandbox import (
    RunningCommand,
    Streams,
    check_sandbox,
    find_interpreter,
    wait_until_readable,
)
from proctor.isolation.untrusted_tree import discard_tree, occupied_bytes
from proctor.runtimes.relay import short_folder
from proctor.server.sandboxes import inward
from proctor.server.sandboxes.backend import SandboxSpec, ServedProgram
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.support.processes import summarize_output
from proctor.support.threads import Threads
from proctor.workspaces.folder import AGENT, RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec

KEPT_BYTES = 20_000
BACKLOG = 128
END_SECONDS = 10.0
"""How long a program may take to end that has closed its port."""
PROBE = SandboxSpec(memory_mb=512, processes=64, disk_mb=16)


class BubblewrapBackend:
    """Makes places in one folder of the server."""

    def __init__(self, folder: Path, hidden: Sequence[Path] = ()) -> None:
        self.folder = folder.absolute()
        self.hidden = hidden
        self.threads = Threads()

    async def check(self) -> None:
        place = await self.open(PROBE)
        try:
            await check_sandbox(place.folder.walls(AGENT))
        finally:
            await place.close()

    async def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        limits = RunLimits(memory_mb=spec.memory_mb, processes=spec.processes, disk_mb=spec.disk_mb)
        group = make_control_group("place", limits)
        workspace = WorkspaceSpec("place", limits=limits.per_process(group.watched))
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = RolloutFolder(workspace, self.hidden, self.threads, within=self.folder, held=group.join)
        try:
            await self.threads.run(folder.make)
        except BaseException:
            group.remove()
            raise
        return BubblewrapSandbox(folder, self.threads, group)

    async def clear(self) -> None:
        """Folders, and what bubblewrap may leave of a sandbox that its server was killed while starting: a
        process that waits forever, and runs nothing."""
        for pid in await self.threads.run(lambda: find_sandbox_pids(self.folder)):
            await kill_process(pid)
        await self.threads.run(lambda: discard_tree(self.folder))


class BubblewrapSandbox:
    """A folder, and what runs in it."""

    def __init__(self, folder: RolloutFolder, threads: Threads, group: ControlGroup) -> None:
        self.folder = folder
        self._group = group
        self._threads = threads
        self._serving = AsyncExitStack()
        self._program: RunningCommand | None = None
        self._output: OutputPipe | None = None

    async def run(
        self, words: Sequence[str], *, stdin: bytes, variables: Mapping[str, str], seconds: float
    ) -> CommandResult:
        try:
            return await self.folder.run(words, seconds=seconds, stdin=stdin, variables=variables)
        except InfraError as error:
            if self._group.usage().killed_for_memory:  # the kernel chose the sandbox's first process
                raise EnvError("it used more memory than it may") from error
            raise

    @asynccontextmanager
    async def piped(self, words: Sequence[str]) -> AsyncIterator[BubblewrapPipes]:
        streams = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL)
        async with self.folder.started(words, streams, {}) as started:
            yield BubblewrapPipes(started)

    async def serve(self, program: ServedProgram) -> Path:
        folder = await self._serving.enter_async_context(socket_folder())
        path = Path(folder) / "port"
        python, mounts = find_interpreter(self.folder.walls(AGENT, program.mounts))
        words = [python, "-IS", "-c", inspect.getsource(inward), str(program.port), *program.words]
        self._output = await self._serving.enter_async_context(OutputPipe.opened(OutputBuffer(0, KEPT_BYTES)))
        with open_listener(path) as listener:
            streams = Streams(listener.fileno(), self._output.pipe, self._output.pipe)
            seen = [*program.mounts, *mounts]
            self._program = await self._serving.enter_async_context(
                self.folder.started(words, streams, program.variables, mounts=seen)
            )
        self._output.close_pipe()
        await self._wait_until_it_listens(path)
        return path

    async def _wait_until_it_listens(self, path: Path) -> None:
        """By the first connection, which is answered then; it breaks off where the program ends before."""
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            said = await reader.readexactly(len(inward.READY))  # whoever answers may never stop
        except (OSError, asyncio.IncompleteReadError):
            said = b""
        finally:
            writer.close()
        if said != inward.READY:
            assert self._program is not None
            await asyncio.wait({asyncio.ensure_future(self._program.process.wait())}, timeout=END_SECONDS)
            raise EnvError(await self.ended() or "It ended before it listened.")

    async def ended(self) -> str | None:
        if self._program is None or self._program.process.returncode is None:
            return None
        try:
            how = f"ended with exit code {await self._program.wait()}"
        except InfraError:
            used_too_much = self._group.usage().killed_for_memory
            how = "used more memory than it may" if used_too_much else "was killed by the machine"
        said = summarize_output((await self._output.text()).splitlines()) if self._output else ""
        return f"It {how}" + (f": {said}" if said else ".")

    async def used_bytes(self) -> int:
        root = self.folder.path.parent
        return await self._threads.run(lambda: occupied_bytes([root], sys.maxsize))

    async def close(self) -> None:
        await self.folder.end_agent()
        await self._serving.aclose()
        await self.folder.close()
        self._group.remove()


class BubblewrapPipes:
    """A command in its sandbox, with pipes."""

    def __init__(self, started: RunningCommand) -> None:
        assert started.process.stdin is not None
        assert started.process.stdout is not None
        self.stdin = started.process.stdin
        self.stdout = started.process.stdout
        self._started = started

    async def wait(self) -> int:
        return await self._started.wait()


@asynccontextmanager
async def socket_folder() -> AsyncIterator[str]:
    """Of its own and short, since the path of a Unix socket is."""
    with tempfile.TemporaryDirectory(prefix="proctor-port-", dir=short_folder()) as folder:
        yield folder


def open_listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def find_sandbox_pids(folder: Path) -> list[int]:
    """The processes that hold a sandbox with a folder below this one, whose path they were told. Blocks."""
    mark = os.fsencode(f"{folder}/")
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            program, *words = place.read_bytes().split(b"\0")
            if program.endswith(b"bwrap") and any(word.startswith(mark) for word in words):
                found.append(int(place.parent.name))
    return found


async def kill_process(pid: int) -> None:
    """End a process, and all in its namespace where it is the first there."""
    with suppress(ProcessLookupError):
        held = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
            await wait_until_readable(held)
        finally:
            os.close(held)
