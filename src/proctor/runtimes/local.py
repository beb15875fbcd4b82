"""LocalRuntime: each environment in a process of its own on this machine, started once and shared.

Each rollout is a session there. When a process dies, its rollouts fail and the next one starts a new process.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from proctor.errors import ConfigError, InfraError
from proctor.runtimes.runtime import Runtime
from proctor.support.lines import LineSplitter
from proctor.support.logs import log
from proctor.support.processes import describe_exit, end_group, python_command, summarize_output
from proctor.task import Task

START_SECONDS = 120.0
LEAVING_SECONDS = 25.0
KILLING_SECONDS = 10.0
LINES_KEPT = 40
CHUNK_BYTES = 65_536
DYING_SECONDS = 2.0
"""How long to wait for a process to exit once its connection broke."""


class LocalRuntime:
    """A child process for each environment that the tasks name.

    `source` is the file or folder that defines it, or the name of an installed one; `env` adds variables to
    ours.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        env: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        if not isinstance(source, (str, Path)):
            raise ConfigError(
                "LocalRuntime takes the path of an environment, which it loads in another process; "
                "to play an environment object in this process, leave out the runtime."
            )
        self.source = str(source)
        """Empty for the environment installed under the task's environment name."""
        self.start_seconds = start_seconds
        self._env = dict(env or {})
        self._children: dict[str, EnvironmentProcess] = {}
        self._starting: dict[str, asyncio.Task[EnvironmentProcess]] = {}
        self._unloadable: dict[str, ConfigError] = {}
        """Environments that cannot be loaded."""

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        child = await self._child(task.env)
        try:
            yield child.runtime
        except InfraError as error:
            if isinstance(error.__cause__, TimeoutError):  # not even a hello: its code blocks the event loop
                child.abort()
            if (exit_reason := await child.explain_exit()) is None:
                raise
            raise type(error)(f"{error}: {exit_reason}") from error

    async def _child(self, name: str) -> EnvironmentProcess:
        """The process of an environment; callers that arrive while it starts wait for the same one."""
        child = self._children.get(name)
        if child is not None and child.is_running:
            return child
        if (error := self._unloadable.get(name)) is not None:
            raise ConfigError(str(error)) from error
        starting = self._starting.get(name)
        if starting is None:
            starting = self._starting[name] = asyncio.ensure_future(self._start(name))
            starting.add_done_callback(lambda ended: self._finish_start(name, ended))
        return await asyncio.shield(starting)

    def _finish_start(self, name: str, starting: asyncio.Task[EnvironmentProcess]) -> None:
        self._starting.pop(name, None)
        error = None if starting.cancelled() else starting.exception()
        if isinstance(error, ConfigError):  # starting again would fail in the same way
            self._unloadable[name] = error

    async def _start(self, name: str) -> EnvironmentProcess:
        if (dead := self._children.pop(name, None)) is not None:
            await dead.stop()
        child = EnvironmentProcess(self.source, name, self._env)
        try:
            async with asyncio.timeout(self.start_seconds):
                await child.start()
        except TimeoutError as error:
            await child.stop(at_once=True)
            raise InfraError(
                f"the process of environment {name!r} was not ready after {self.start_seconds:g} s"
            ) from error
        except BaseException:
            await child.stop(at_once=True)
            raise
        self._children[name] = child
        return child

    async def close(self) -> None:
        starting = list(self._starting.values())
        for each in starting:
            each.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        self._unloadable.clear()
        children, self._children = list(self._children.values()), {}
        await asyncio.gather(*(child.stop() for child in children))

    def __repr__(self) -> str:
        return f"LocalRuntime({self.source!r})"


class EnvironmentProcess:
    """A process that serves one environment on a socket only we can reach."""

    def __init__(self, source: str, name: str, env: Mapping[str, str]) -> None:
        self.source = source
        self.name = name
        self._env = env
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-"))
        self._socket = self._folder / "channel"
        self.runtime = Runtime(f"unix://{self._socket}", token=secrets.token_urlsafe(32), lasts=True)
        self._printed: deque[str] = deque(maxlen=LINES_KEPT)
        self._process: asyncio.subprocess.Process | None = None
        self._line: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process, and wait until it serves."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *python_command("proctor.runtimes.local_child", str(theirs.fileno())),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is for the run, which stops its children
                    env={**os.environ, **self._env},
                )
            except BaseException as error:
                ours.close()
                if isinstance(error, OSError):
                    raise InfraError(f"the process of {self.name!r} cannot be started: {error}") from error
                raise
        self._reading = asyncio.ensure_future(self._read_output(self._process))
        reader, self._line = await asyncio.open_connection(sock=ours)
        wanted = {
            "source": self.source or self.name,
            "env": self.name,
            "socket": str(self._socket),
            "token": self.runtime.token,
        }
        self._line.write(json.dumps(wanted).encode() + b"\n")
        message = await self._read_first_message(reader)
        if "error" in message:
            kind = ConfigError if message.get("config") else InfraError
            raise kind(message["error"])

    async def _read_first_message(self, reader: asyncio.StreamReader) -> dict[str, str]:
        try:
            line = await reader.readline()
        except ConnectionError:
            line = b""
        if line:
            message: dict[str, str] = json.loads(line)
            return message
        reason = await self.explain_exit() or "it closed its connection"
        return {"error": f"the process of environment {self.name!r} did not get ready: {reason}"}

    async def _read_output(self, process: asyncio.subprocess.Process) -> None:
        """Log what the environment prints: it may be the only hint of what went wrong."""
        assert process.stdout is not None
        splitter = LineSplitter()
        while chunk := await process.stdout.read(CHUNK_BYTES):
            self._log_lines(splitter.feed(chunk))
        self._log_lines(splitter.finish())

    def _log_lines(self, lines: Sequence[str]) -> None:
        for text in lines:
            self._printed.append(text)
            log.info("[%s] %s", self.name, text)

    async def explain_exit(self) -> str | None:
        """How the process exited; None if it still runs."""
        if self._process is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(DYING_SECONDS):
                await self._process.wait()
                if self._reading is not None:
                    await asyncio.wait({self._reading})
        if self._process.returncode is None:
            return None
        output = summarize_output(list(self._printed))
        end = f"its process {describe_exit(self._process.returncode)}"
        return f"{end}; its last output: {output}" if output else end

    def abort(self) -> None:
        """Abort a process that does not answer, so that it prints where it was."""
        if self._process is not None:
            with suppress(OSError):
                self._process.send_signal(signal.SIGABRT)

    async def stop(self, at_once: bool = False) -> None:
        """Ask the process to exit, and kill it if it does not."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.0 if at_once else LEAVING_SECONDS):
                    await self._process.wait()
            end_group(self._process.pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(KILLING_SECONDS):
                    await self._process.wait()
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=DYING_SECONDS)  # a stray process may hold the pipe
            self._reading.cancel()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
