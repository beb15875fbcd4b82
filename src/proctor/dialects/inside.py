"""The child process of a foreign environment: runs in that environment's own Python, where Proctor is not.

    python -c LAUNCH THIS_FILE DIALECT_FILE CONTROL_FD CALLS_FD

Only the standard library is imported here. The dialect's file defines `load(params, host)`; what that
returns is served to Proctor: `describe()` at once, other plain methods over the control socket, one by one,
in a thread; coroutine methods over the calls socket, all at once. `host.request()` asks Proctor. Each message
is one line of JSON. The process ends when its parent is gone, even if the environment's code blocks.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import os
import socket
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

PARENT_SECONDS = 1.0
CLOSING_SECONDS = 20.0
LARGEST_LINE = 2**28
NETWORK_ERRORS = frozenset(
    (
        *("ConnectionError", "ConnectTimeout", "ConnectError", "gaierror"),
        *("OfflineModeIsEnabled", "LocalEntryNotFoundError"),
    )
)


class HostRefusedError(Exception):
    """Proctor did not answer a request."""

    def __init__(self, refusal: dict[str, Any]) -> None:
        super().__init__(str(refusal.get("message", "refused")))
        self.status = int(refusal.get("status", 500))
        self.code = str(refusal.get("code", ""))


class Host:
    """The way to Proctor, for the dialect's code."""

    RefusedError = HostRefusedError

    def __init__(self, *sockets: socket.socket) -> None:
        self._sockets = sockets
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0

    async def request(self, method: str, params: Any) -> Any:
        """Proctor's answer; raises HostRefusedError if it refuses."""
        assert self._writer is not None
        self._count += 1
        number = self._count
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send({"call": number, "method": method, "params": params})
        try:
            return await answer
        finally:
            del self._waiting[number]
            if answer.cancelled():
                self.send({"cancel": number})

    def close_sockets(self) -> None:
        """In a process forked off this one: let go of Proctor, which would take it for this one."""
        for each in self._sockets:
            os.close(each.detach())

    def send(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode(message))

    def connect(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def take_reply(self, message: dict[str, Any]) -> None:
        answer = self._waiting.get(message["reply"])
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(HostRefusedError(message["error"]))
        else:
            answer.set_result(message.get("result"))


async def serve_calls(served: Any, host: Host, connection: socket.socket) -> None:
    """Answer Proctor's calls until it hangs up."""
    reader, writer = await asyncio.open_connection(sock=connection, limit=LARGEST_LINE)
    host.connect(writer)
    tasks: dict[int, asyncio.Task[None]] = {}
    while line := await reader.readline():
        message = json.loads(line)
        if "reply" in message:
            host.take_reply(message)
        elif "cancel" in message:
            if (task := tasks.get(message["cancel"])) is not None:
                task.cancel()
        else:
            number = message["call"]
            task = tasks[number] = asyncio.create_task(answer_call(served, host, message))
            task.add_done_callback(functools.partial(forget_task, tasks, number))
    for task in tasks.values():
        task.cancel()
    close = getattr(served, "close", None)
    if close is not None:
        await asyncio.wait_for(close(), CLOSING_SECONDS)


def forget_task(tasks: dict[int, asyncio.Task[None]], number: int, _: Any) -> None:
    tasks.pop(number, None)


async def answer_call(served: Any, host: Host, message: dict[str, Any]) -> None:
    reply: dict[str, Any] = {"reply": message["call"]}
    try:
        reply["result"] = await getattr(served, message["method"])(**message["params"])
    except asyncio.CancelledError:
        reply["error"] = {"type": "CancelledError", "message": "cancelled"}
    except Exception as error:
        reply["error"] = describe_error(error)
    host.send(reply)


def serve_control(served: Any, lines: Any, connection: socket.socket) -> None:
    for line in lines:
        message = json.loads(line)
        try:
            answer = {"result": getattr(served, message["method"])(**message["params"])}
        except Exception as error:
            answer = {"error": describe_error(error)}
        connection.sendall(encode(answer))


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, default=plain).encode() + b"\n"


def plain(value: Any) -> Any:
    """What JSON has no form for, as near to it as possible."""
    for method in ("model_dump", "tolist", "isoformat"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    return repr(value)


def describe_error(error: BaseException) -> dict[str, Any]:
    """The exception, its causes, and the line of code that it came from."""
    traceback.print_exception(type(error), error, error.__traceback__)
    root = list_causes(error)[-1]
    last = find_frame(error)
    return {
        "type": type(error).__name__,
        "message": str(error),
        "root_type": type(root).__name__,
        "root": str(root),
        "where": f"{last.filename}:{last.lineno} in {last.name}" if last else "",
        "missing": getattr(root, "name", None) if isinstance(root, ModuleNotFoundError) else None,
        "is_offline": is_network_error(error),
        **getattr(error, "proctor_details", {}),
    }


def find_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The line of the environment's code that led to the first cause; otherwise of any code."""
    causes = [list(traceback.extract_tb(each.__traceback__)) for each in reversed(list_causes(error))]
    own = [frame for frames in causes for frame in reversed(frames) if not is_library(frame.filename)]
    return next(iter(own or reversed(causes[0])), None)


def is_network_error(error: BaseException) -> bool:
    kinds = (kind for each in list_causes(error) for kind in type(each).__mro__)
    return any(kind.__name__ in NETWORK_ERRORS for kind in kinds)


def list_causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def is_library(filename: str) -> bool:
    return filename.startswith((sys.prefix, sys.base_prefix, str(Path(__file__).parent), "<"))


def import_dialect(path: str) -> Any:
    """The dialect's module, in a package of its own, so that it can import the files beside it."""
    folder, name = os.path.split(path)
    package = sys.modules["proctor_dialect"] = types.ModuleType("proctor_dialect")
    package.__path__ = [folder]
    return importlib.import_module(f"proctor_dialect.{name.removesuffix('.py')}")


def end_with_parent(parent: int) -> None:
    """Exit when the parent is gone, once the loop has had the time to close."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    time.sleep(CLOSING_SECONDS + PARENT_SECONDS)
    os._exit(1)


def exit_now(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(dialect_file: str, control_fd: int, calls_fd: int) -> NoReturn:
    control, calls = socket.socket(fileno=control_fd), socket.socket(fileno=calls_fd)
    for each in (control, calls):
        each.set_inheritable(False)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    lines, host = control.makefile("rb"), Host(control, calls)
    first = json.loads(lines.readline() or b"null")
    if first is None:
        exit_now(0)
    try:
        served = import_dialect(dialect_file).load(first["params"], host)
        described = served.describe()
    except BaseException as error:
        control.sendall(encode({"error": describe_error(error)}))
        exit_now(1)
    control.sendall(encode({"result": described}))
    threading.Thread(target=serve_control, args=(served, lines, control), daemon=True).start()
    try:
        asyncio.run(serve_calls(served, host, calls))
    except BaseException:
        traceback.print_exc()
        exit_now(1)
    exit_now(0)
