"""Start processes by forking one that has Proctor imported already, which takes a tenth of a fresh start.

The server imports nothing of any environment, so every process it forks loads its environment from scratch
and shares no state with others. Knows nothing of what its processes do: that is in `local_child.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from proctor.errors import InfraError
from proctor.support.processes import end_group, python_command

CHILD_MODULE = "proctor.runtimes.fork_server_child"
MESSAGE_BYTES = 4_096
FORKS_AT_ONCE = 32
"""More requests would not fit into the socket's buffer."""
LEAVING_SECONDS = 5.0


class Forked(msgspec.Struct, frozen=True, tag=True):
    """The server forked a process, or could not."""

    number: int
    pid: int = 0
    error: str = ""


class Exited(msgspec.Struct, frozen=True, tag=True):
    """A forked process has exited."""

    pid: int
    code: int
    """As of `subprocess`: negative for a signal."""


ServerMessage = Forked | Exited


class ForkedProcess:
    """A process that the server forked: the leader of a group of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._exited = asyncio.Event()

    def set_exit(self, code: int) -> None:
        if self.returncode is None:
            self.returncode = code
            self._exited.set()

    async def wait(self) -> int:
        await self._exited.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


class ForkServer:
    """The process that forks; started by the first request."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._process: asyncio.subprocess.Process | None = None
        self._socket: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._semaphore = asyncio.Semaphore(FORKS_AT_ONCE)
        self._number = 0
        self._waiting: dict[int, asyncio.Future[ForkedProcess]] = {}
        self._forked: dict[int, ForkedProcess] = {}

    async def fork(self, connection: socket.socket, output: int) -> ForkedProcess:
        """A new process with this connection; what it prints goes to the file descriptor `output`."""
        async with self._semaphore:
            async with self._starting:
                if self._socket is None:
                    await self._start()
            return await self._request(connection, output)

    async def _request(self, connection: socket.socket, output: int) -> ForkedProcess:
        assert self._socket is not None
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            descriptors = [connection.fileno(), output]
            socket.send_fds(self._socket, [str(number).encode()], descriptors)
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(end_unwanted)
            raise
        except OSError as error:
            self._waiting.pop(number, None)
            raise InfraError(f"the process that starts environments is gone: {error}") from error

    async def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *python_command(CHILD_MODULE, str(theirs.fileno())),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is for the run, which stops its children
                    env={**os.environ, **self._env},
                )
            except BaseException as error:
                ours.close()
                if isinstance(error, OSError):
                    raise InfraError(f"no process can be started: {error}") from error
                raise
        ours.setblocking(False)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._read)

    def _read(self) -> None:
        assert self._socket is not None
        try:
            message = self._socket.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._lose()
            return
        self._take(msgspec.json.decode(message, type=ServerMessage))

    def _take(self, message: ServerMessage) -> None:
        if isinstance(message, Exited):
            if (process := self._forked.pop(message.pid, None)) is not None:
                process.set_exit(message.code)
            return
        answer = self._waiting.pop(message.number)
        if message.error:
            answer.set_exception(InfraError(f"no process can be started: {message.error}"))
            return
        process = self._forked[message.pid] = ForkedProcess(message.pid)
        answer.set_result(process)

    def _lose(self) -> None:
        """The server is gone. What it forked exits by itself, unobserved: it is ended here."""
        self._disconnect()
        for process in self._forked.values():
            end_group(process.pid)
            process.set_exit(-signal.SIGKILL)
        self._forked.clear()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(InfraError("the process that starts environments ended unexpectedly"))
        self._waiting.clear()

    def _disconnect(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    async def close(self) -> None:
        self._disconnect()
        self._starting, self._semaphore = asyncio.Lock(), asyncio.Semaphore(FORKS_AT_ONCE)
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await process.wait()
        end_group(process.pid)
        await process.wait()


def end_unwanted(answer: asyncio.Future[ForkedProcess]) -> None:
    """End a process that was forked after its caller had been cancelled."""
    if not answer.cancelled() and answer.exception() is None:
        end_group(answer.result().pid)
