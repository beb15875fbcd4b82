"""LocalRuntime: each rollout's environment in a process of its own on this machine.

No two rollouts share a process while they are played, so whatever one does to its process, by keeping state
in a module or by ending it, costs no other. A process is used again only if the environment says that this is
safe.
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
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError, InfraError
from proctor.optional_contracts import EnvironmentFacts
from proctor.runtimes.fork_server import ForkedProcess, ForkServer
from proctor.runtimes.runtime import Runtime
from proctor.support.cancellation import finish
from proctor.support.lines import LineSplitter
from proctor.support.logs import log
from proctor.support.processes import describe_exit, end_group, summarize_output
from proctor.task import Task

START_SECONDS = 120.0
LEAVING_SECONDS = 25.0
KILLING_SECONDS = 10.0
LINES_KEPT = 40
CHUNK_BYTES = 65_536
DYING_SECONDS = 2.0
"""How long to wait for a process to exit once its connection broke."""


class LocalRuntime:
    """A child process for each rollout in flight.

    `source` is the file or folder that defines the environment, or the name of an installed one; `env` adds
    variables to ours.
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
        self.is_local = True
        self._forks = ForkServer(dict(env or {}))
        self._idle: dict[str, list[EnvironmentProcess]] = {}
        """Processes in which no rollout has left anything, by environment."""
        self._checked: set[str] = set()
        """Environments that were loaded and checked before."""
        self._unloadable: dict[str, ConfigError] = {}
        """Environments that cannot be loaded."""

    async def check(self) -> None:
        """Raise if the environment's file is missing; its first process finds out whether it loads."""
        file = self.source.rpartition(":")[0] or self.source
        if file.endswith(".py") and not Path(file).expanduser().is_file():
            raise ConfigError(f"There is no environment at {file!r}.")

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Runtime]:
        child = self._take_idle(task.env) or await self._start(task.env)
        is_clean = False
        try:
            yield child.runtime
            is_clean = True
        except InfraError as error:
            if isinstance(error.__cause__, TimeoutError):  # not even a hello: its code blocks the event loop
                child.abort()
            if (exit_reason := await child.explain_exit()) is None:
                raise
            raise type(error)(f"{error}: {exit_reason}") from error
        finally:
            await finish(self._release(child, is_clean))

    async def describe_environments(self, names: Collection[str]) -> EnvironmentFacts:
        """What these environments declare. The first rollouts use the processes that are started to find
        out."""
        capacities = []
        for name in names:
            try:
                child = await self._start(name)
            except InfraError:  # each rollout will say so, and may have better luck
                continue
            capacities.append(child.capacity)
            self._idle.setdefault(name, []).append(child)
        return EnvironmentFacts(
            min((capacity for capacity in capacities if capacity is not None), default=None)
        )

    def _take_idle(self, name: str) -> EnvironmentProcess | None:
        idle = self._idle.get(name)
        while idle:
            child = idle.pop()
            if child.is_running:
                return child
        return None

    async def _release(self, child: EnvironmentProcess, is_clean: bool) -> None:
        """Keep a process for another rollout if nothing can be left in it of this one."""
        if is_clean and child.is_reusable and child.is_running:
            self._idle.setdefault(child.name, []).append(child)
        else:
            await child.stop()

    async def _start(self, name: str) -> EnvironmentProcess:
        if (known := self._unloadable.get(name)) is not None:  # starting again would fail in the same way
            raise ConfigError(str(known)) from known
        child = EnvironmentProcess(self.source, name, self._forks)
        try:
            async with asyncio.timeout(self.start_seconds):
                await child.start(check=name not in self._checked)
        except TimeoutError as error:
            await child.stop(at_once=True)
            raise InfraError(
                f"the process of environment {name!r} was not ready after {self.start_seconds:g} s"
            ) from error
        except BaseException as error:
            if isinstance(error, ConfigError):
                self._unloadable[name] = error
            await finish(child.stop(at_once=True))
            raise
        self._checked.add(name)
        return child

    async def close(self) -> None:
        idle, self._idle = self._idle, {}
        self._unloadable.clear()
        await asyncio.gather(*(child.stop() for children in idle.values() for child in children))
        await self._forks.close()

    def __repr__(self) -> str:
        return f"LocalRuntime({self.source!r})"


class EnvironmentProcess:
    """A process that serves one environment on a socket only we can reach."""

    def __init__(self, source: str, name: str, forks: ForkServer) -> None:
        self.source = source
        self.name = name
        self._forks = forks
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-"))
        self._socket = self._folder / "channel"
        self.runtime = Runtime(f"unix://{self._socket}", token=secrets.token_urlsafe(32))
        self.capacity: int | None = None
        """How many sessions its environment may have open at once, wherever they are."""
        self._printed: deque[str] = deque(maxlen=LINES_KEPT)
        self._process: ForkedProcess | None = None
        self._line: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def is_reusable(self) -> bool:
        return self.runtime.lasts

    async def start(self, check: bool = True) -> None:
        """Start the process, and wait until it serves; with `check`, only if its rollouts can succeed."""
        ours, theirs = socket.socketpair()
        printed, printing = os.pipe()
        self._reading = asyncio.ensure_future(self._read_output(printed))
        try:
            with theirs:
                self._process = await self._forks.fork(theirs, printing)
            reader, self._line = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(printing)
        wanted = {
            "source": self.source or self.name,
            "env": self.name,
            "socket": str(self._socket),
            "token": self.runtime.token,
            "check": check,
        }
        self._line.write(json.dumps(wanted).encode() + b"\n")
        message = await self._read_first_message(reader)
        if "error" in message:
            kind = ConfigError if message.get("config") else InfraError
            raise kind(message["error"])
        self.runtime.lasts = bool(message["reusable"])
        self.capacity = message["capacity"]

    async def _read_first_message(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        try:
            line = await reader.readline()
        except ConnectionError:
            line = b""
        if line:
            message: dict[str, Any] = json.loads(line)
            return message
        reason = await self.explain_exit() or "it closed its connection"
        return {"error": f"the process of environment {self.name!r} did not get ready: {reason}"}

    async def _read_output(self, printed: int) -> None:
        """Log what the environment prints: it may be the only hint of what went wrong."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(printed, "rb")
        )
        splitter = LineSplitter()
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                self._log_lines(splitter.feed(chunk))
            self._log_lines(splitter.finish())
        finally:
            transport.close()

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
