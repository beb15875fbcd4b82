"""The child process of a foreign environment, as Proctor sees it: started, called, and replaced if it dies.

Calls go both ways over a socket pair, each message one line of JSON; a second pair is for what is needed
before an event loop runs: loading, and reading tasks. The code at the other end is `inside.py`. Knows nothing
of frameworks or rollouts.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from proctor.dialects import inside
from proctor.dialects.failures import describe_cause, explain_loading
from proctor.errors import ConfigError, EnvError, EnvLostError, ProctorError
from proctor.support.logs import log, log_printed
from proctor.support.processes import describe_exit, end_group, summarize_output

LAUNCH = (
    "import importlib.util, sys; sys.path[:] = [path for path in sys.path if path]; "
    "spec = importlib.util.spec_from_file_location('proctor_inside', sys.argv[1]); "
    "module = importlib.util.module_from_spec(spec); sys.modules[spec.name] = module; "
    "spec.loader.exec_module(module); module.main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))"
)
LOADING_SECONDS = 1800.0
"""Importing and loading may download a dataset."""
READING_SECONDS = 600.0
CLOSING_SECONDS = 25.0
LOOK_SECONDS = 0.02
KEPT_LINES = 40
LONGEST_OUTPUT_LINE = 65_536
CANCELLED = {"status": 499, "code": "cancelled", "message": "cancelled"}

Answer = Callable[[str, msgspec.Raw], Awaitable[Any]]
"""Answers a request of the child: its method and its parameters, as JSON."""


class RefusedRequestError(Exception):
    """A request of the child cannot be answered; this is sent to it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.payload = {"status": status, "code": code, "message": message}


async def refuse_requests(method: str, _: msgspec.Raw) -> Any:
    """The answers of a parent that its child has nothing to ask."""
    raise RefusedRequestError(404, "not_found", f"There is no method {method!r}.")


class ForeignError(EnvError):
    """The environment's code raised in its own process."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        super().__init__(describe_cause(details))
        self.details = details


class ChildCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What to start, and what to load there."""

    name: str
    """Of the environment, for messages."""
    python: Path
    dialect_file: Path
    """Runs in the child, beside `inside.py`."""
    params: dict[str, Any]
    """For its `load`."""
    folder: Path | None = None
    variables: Mapping[str, str] = {}


class CallMessage(msgspec.Struct):
    """Any message from the child."""

    call: int | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    reply: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None
    cancel: int | None = None


_decode = msgspec.json.Decoder(CallMessage).decode


def decode_message(line: bytes, name: str) -> CallMessage:
    """A message from the child; its code may have written anything to the socket."""
    try:
        return _decode(line)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise EnvLostError(f"{name} sent what cannot be read: {error}") from error


def decode_result(content: msgspec.Raw, name: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        raise EnvError(f"{name} answered what cannot be read: {error}") from error


def describe_excess(name: str) -> EnvLostError:
    return EnvLostError(f"{name} sent a message over the limit of {inside.LARGEST_LINE:,} bytes")


class ForeignProcess:
    """One child process; it is started when first used, and again after it died."""

    def __init__(self, command: ChildCommand, answer: Answer) -> None:
        self.command = command
        self.described: dict[str, Any] = {}
        self._answer = answer
        self._child: StartedChild | None = None
        self._starting = asyncio.Lock()
        self._reading = threading.Lock()

    def start(self) -> None:
        """Start and load; blocks until that is done. Raises ConfigError if it cannot be loaded."""
        name = self.command.name
        try:
            self._launch()
        except ForeignError as error:
            raise explain_loading(name, self.command.python, error.details) from error
        except EnvError as error:
            raise ConfigError(f"{name} cannot be loaded: {error}.") from error

    def read(self, method: str, **params: Any) -> Any:
        """Call a plain method, and block until it is answered."""
        with self._reading:
            return self._ensure_started().ask(method, params, READING_SECONDS)

    async def connect(self) -> CallConnection:
        """The connection to the child that lives now; what that child holds is lost when it ends."""
        async with self._starting:
            child = await self._ensure_connected()
        assert child.calls is not None
        return child.calls

    async def call(self, method: str, **params: Any) -> Any:
        """Call a coroutine method of whichever child lives; if this is cancelled, so is that."""
        return await (await self.connect()).call(method, params)

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.owner == os.getpid():
            await child.close()

    def kill(self) -> None:
        """End it without waiting for it to clean up."""
        child, self._child = self._child, None
        if child is not None and child.owner == os.getpid():
            child.kill()

    def _ensure_started(self) -> StartedChild:
        child = self._child
        if child is None or not child.is_alive or child.owner != os.getpid():
            self._launch()
        assert self._child is not None
        return self._child

    def _launch(self) -> None:
        child = StartedChild(self.command)
        try:
            self.described = child.ask("load", self.command.params, LOADING_SECONDS)
        except BaseException:
            child.kill()
            raise
        self._child = child

    async def _ensure_connected(self) -> StartedChild:
        child, loop = self._child, asyncio.get_running_loop()
        if child is not None and child.is_usable_in(loop):
            return child
        if child is not None and child.owner == os.getpid() and child.calls is not None:
            child.kill()  # it died, or belongs to a loop that has ended
            self._child = None
        child = await asyncio.to_thread(self._ensure_started)
        if child.calls is None:
            child.calls = await CallConnection.open(child, self._answer)
        return child


class StartedChild:
    """A process that was started, with its two sockets and the end of its output."""

    def __init__(self, command: ChildCommand) -> None:
        self.name = command.name
        self.owner = os.getpid()
        self.calls: CallConnection | None = None
        self.last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._control, control = socket.socketpair()
        self.socket, calls = socket.socketpair()
        words = (str(command.dialect_file), str(control.fileno()), str(calls.fileno()))
        try:
            with control, calls:
                self.process = subprocess.Popen(
                    [str(command.python), "-c", LAUNCH, inside.__file__, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[control.fileno(), calls.fileno()],
                    cwd=command.folder,
                    env=child_environment(command.variables),
                    start_new_session=True,
                )
        except OSError as error:
            self._control.close()
            self.socket.close()
            raise ConfigError(f"{command.python} cannot be started: {error.strerror}.") from error
        self._output = threading.Thread(target=self._read_output, daemon=True)
        self._output.start()
        self._lines = self._control.makefile("rb")

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def is_usable_in(self, loop: asyncio.AbstractEventLoop) -> bool:
        calls = self.calls
        return self.owner == os.getpid() and calls is not None and calls.loop is loop and not calls.end

    def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """One exchange on the control socket."""
        self._control.settimeout(seconds)
        try:
            self._control.sendall(msgspec.json.encode({"method": method, "params": params}) + b"\n")
            line = self._lines.readline(inside.LARGEST_LINE)
        except TimeoutError as error:
            raise EnvError(f"{self.name} took more than {seconds:g} s to answer {method!r}") from error
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise describe_excess(self.name) if len(line) == inside.LARGEST_LINE else self.describe_end()
        answer = decode_message(line, self.name)
        if answer.error is not None:
            raise ForeignError(answer.error)
        return decode_result(answer.result, self.name)

    def describe_end(self) -> EnvLostError:
        """Why nothing more comes from here."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self._output.join(1.0)
        code = self.process.poll()
        how = "closed its connection" if code is None else describe_exit(code)
        last = summarize_output(list(self.last_lines))
        return EnvLostError(f"the process of {self.name} {how}" + (f"; it said: {last}" if last else ""))

    async def close(self) -> None:
        """Hang up, so that it can clean up and exit; kill it if it does not."""
        if self.calls is not None:
            self.calls.hang_up()
        else:
            self.socket.close()
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while self.is_alive and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill it and all that it started."""
        end_group(self.process.pid)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        for each in (self._lines, self._control):
            with suppress(OSError):
                each.close()
        if self.calls is None:
            self.socket.close()
        elif not self.calls.loop.is_closed():
            self.calls.hang_up()
        self._output.join(1.0)

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            self._read_lines(self.process.stdout)

    def _read_lines(self, stream: IO[bytes]) -> None:
        while line := stream.readline(LONGEST_OUTPUT_LINE):
            text = line.decode(errors="replace").rstrip()
            self.last_lines.append(text)
            log_printed(text)


class CallConnection:
    """The calls to and from a child, in one event loop."""

    def __init__(self, child: StartedChild, answer: Answer) -> None:
        self.loop = asyncio.get_running_loop()
        self.end: ProctorError | None = None
        self._child = child
        self._answer = answer
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._count = 0
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, child: StartedChild, answer: Answer) -> CallConnection:
        connection = cls(child, answer)
        reader, connection._writer = await asyncio.open_connection(
            sock=child.socket, limit=inside.LARGEST_LINE
        )
        connection._reader = asyncio.create_task(connection._read(reader))
        return connection

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        if self.end is not None:
            raise self.end
        self._count += 1
        number = self._count
        waiting = self._waiting[number] = self.loop.create_future()
        self._send({"call": number, "method": method, "params": params})
        try:
            return decode_result(await waiting, self._child.name)
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        finally:
            del self._waiting[number]

    def hang_up(self) -> None:
        self._writer.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        if self.end is None and not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(message) + b"\n")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                self._take(decode_message(line, self._child.name))
        except asyncio.CancelledError:  # the loop ends
            self._fail(EnvLostError(f"the run that {self._child.name} was played in has ended"))
            raise
        except ValueError:  # StreamReader's, for a line over its limit
            self._fail(describe_excess(self._child.name))
        except EnvLostError as error:
            self._fail(error)
        except OSError:
            self._fail(await asyncio.to_thread(self._child.describe_end))
        else:  # it hung up, maybe in the middle of a message
            self._fail(await asyncio.to_thread(self._child.describe_end))

    def _take(self, message: CallMessage) -> None:
        if message.reply is not None:
            waiting = self._waiting.get(message.reply)
            if waiting is None or waiting.done():
                return
            if message.error is None:
                waiting.set_result(message.result)
            else:
                waiting.set_exception(ForeignError(message.error))
        elif message.cancel is not None:
            if (task := self._answering.get(message.cancel)) is not None:
                task.cancel()
        elif message.call is not None:
            number = message.call
            task = self._answering[number] = self.loop.create_task(self._reply(number, message))
            task.add_done_callback(lambda _: self._answering.pop(number, None))

    async def _reply(self, number: int, message: CallMessage) -> None:
        try:
            self._send({"reply": number, "result": await self._answer(message.method, message.params)})
        except RefusedRequestError as error:
            self._send({"reply": number, "error": error.payload})
        except asyncio.CancelledError:
            self._send({"reply": number, "error": CANCELLED})
        except Exception as error:  # a bug of ours; the child must not wait for an answer that never comes
            log.exception("a request of %s could not be answered", self._child.name)
            refusal = RefusedRequestError(500, "internal", f"{type(error).__name__}: {error}")
            self._send({"reply": number, "error": refusal.payload})

    def _fail(self, error: ProctorError) -> None:
        self.end = self.end or error
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.end)
        for task in list(self._answering.values()):
            task.cancel()


def child_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's variables, without those that would make the other Python import our packages."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONUNBUFFERED": "1", **variables}
