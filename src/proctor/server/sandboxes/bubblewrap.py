"""Sandboxes made with bubblewrap: a folder, commands in namespaces of their own, no network.

A serving program is reached through a Unix socket that it inherits already listening: the socket's path is
outside the sandbox, so that nothing inside can redirect the server. Knows nothing of runs.
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
    check_sandbox,
    find_interpreter,
    wait_until_readable,
)
from proctor.isolation.streams import Streams
from proctor.isolation.untrusted_tree import discard_tree, occupied_bytes
from proctor.server.sandboxes.backend import SandboxSpec, ServedProgram
from proctor.support import sandbox_bridge
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.support.processes import summarize_output
from proctor.support.relay import short_folder
from proctor.support.threads import Threads
from proctor.workspaces.folder import AGENT, RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec

KEPT_BYTES = 20_000
BACKLOG = 128
END_SECONDS = 10.0
"""How long a program may take to end that has closed its port."""
PROBE = SandboxSpec(memory_mb=512, processes=64, disk_mb=16)


class BubblewrapBackend:
    """Creates sandboxes in one folder of the server."""

    def __init__(self, folder: Path, hidden: Sequence[Path] = ()) -> None:
        self.folder = folder.absolute()
        self.hidden = hidden
        self.threads = Threads()

    async def check(self) -> None:
        sandbox = await self.open(PROBE)
        try:
            await check_sandbox(sandbox.folder.sandbox_config(AGENT))
        finally:
            await sandbox.close()

    async def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        limits = RunLimits(memory_mb=spec.memory_mb, processes=spec.processes, disk_mb=spec.disk_mb)
        group = make_control_group("place", limits)
        workspace = WorkspaceSpec("place", limits=limits.per_process(group.watched))
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = RolloutFolder(
            workspace, self.hidden, self.threads, within=self.folder, on_first_process=group.join
        )
        try:
            await self.threads.run(folder.make)
        except BaseException:
            group.remove()
            raise
        return BubblewrapSandbox(folder, self.threads, group)

    async def clear(self) -> None:
        """Removes folders, and what bubblewrap may leave of a sandbox whose server was killed while starting
        it: a process that waits forever, and runs nothing."""
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
        self, command: Sequence[str], *, stdin: bytes, variables: Mapping[str, str], seconds: float
    ) -> CommandResult:
        try:
            return await self.folder.run(command, seconds=seconds, stdin=stdin, variables=variables)
        except InfraError as error:
            if self._group.usage().killed_for_memory:  # the kernel killed the sandbox's first process
                raise EnvError("it exceeded its memory limit") from error
            raise

    @asynccontextmanager
    async def open_command(self, command: Sequence[str]) -> AsyncIterator[BubblewrapPipes]:
        streams = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL)
        async with self.folder.start_command(command, streams, {}) as started:
            yield BubblewrapPipes(started)

    async def serve(self, program: ServedProgram) -> Path:
        folder = await self._serving.enter_async_context(socket_folder())
        path = Path(folder) / "port"
        python, mounts = find_interpreter(self.folder.sandbox_config(AGENT, program.mounts))
        command = [
            python,
            "-IS",
            "-c",
            inspect.getsource(sandbox_bridge),
            "in",
            str(program.port),
            *program.command,
        ]
        self._output = await self._serving.enter_async_context(OutputPipe.open(OutputBuffer(0, KEPT_BYTES)))
        with open_listener(path) as listener:
            streams = Streams(listener.fileno(), self._output.pipe, self._output.pipe)
            visible = [*program.mounts, *mounts]
            self._program = await self._serving.enter_async_context(
                self.folder.start_command(command, streams, program.variables, mounts=visible)
            )
        self._output.close_pipe()
        await self._wait_until_it_listens(path)
        return path

    async def _wait_until_it_listens(self, path: Path) -> None:
        """Wait for an answer to the first connection; it breaks off if the program ends before that."""
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            answer = await reader.readexactly(len(sandbox_bridge.READY))  # a hostile program may never stop
        except (OSError, asyncio.IncompleteReadError):
            answer = b""
        finally:
            writer.close()
        if answer != sandbox_bridge.READY:
            assert self._program is not None
            await asyncio.wait({asyncio.ensure_future(self._program.process.wait())}, timeout=END_SECONDS)
            raise EnvError(await self.describe_exit() or "It ended before it listened on its port.")

    async def describe_exit(self) -> str | None:
        if self._program is None or self._program.process.returncode is None:
            return None
        try:
            how = f"ended with exit code {await self._program.wait()}"
        except InfraError:
            used_too_much = self._group.usage().killed_for_memory
            how = "exceeded its memory limit" if used_too_much else "was killed by the kernel"
        last_output = summarize_output((await self._output.text()).splitlines()) if self._output else ""
        return f"It {how}" + (f": {last_output}" if last_output else ".")

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
    """A short path of its own, because the length of a Unix socket's path is limited."""
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
    """The bubblewrap processes of sandboxes below this folder, found by their command line. Blocks."""
    mark = os.fsencode(f"{folder}/")
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            program, *command = file.read_bytes().split(b"\0")
            if program.endswith(b"bwrap") and any(word.startswith(mark) for word in command):
                found.append(int(file.parent.name))
    return found


async def kill_process(pid: int) -> None:
    """End a process and, if it is the first one of a namespace, everything in that."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            await wait_until_readable(descriptor)
        finally:
            os.close(descriptor)
