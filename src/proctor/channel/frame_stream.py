"""One connection: frames in and out or, after a tunnel is opened, raw bytes both ways.

Either side may send requests. Knows nothing of their methods.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from proctor.channel.frames import (
    MOST_BYTES,
    TASK_FAILED,
    FrameError,
    Id,
    LineBuffer,
    RemoteError,
    decode_frame,
    encode_error,
    encode_request,
    encode_result,
)

Params = Mapping[str, Any]


class RequestHandler(Protocol):
    """The owner of a connection."""

    def handle_request(self, id: Id, method: str, params: Any) -> None:  # noqa: A002
        """The other side sent a request."""

    def handle_disconnect(self, error: Exception | None) -> None:
        """The connection is closed."""


class FrameConnection(asyncio.Protocol):
    """Splits what arrives into frames: answers resolve our requests, requests go to the owner."""

    def __init__(self, is_server: bool = False) -> None:
        self._is_server = is_server
        """A server stops reading while its answers are not read: a client that only sends must not fill our
        memory. Only one of the two sides may do so, or both would wait for each other."""
        self._pauses = 0
        self._is_full = False
        self.owner: RequestHandler | None = None
        self.transport: asyncio.Transport | None = None
        self.raw: asyncio.Protocol | None = None
        """Receives the bytes once they are no longer frames."""
        self._successor: asyncio.Protocol | None = None
        self.lost_by: Exception | None = None
        self._lines = LineBuffer()
        self._ids = itertools.count(1)
        self._waiting: dict[Id, asyncio.Future[dict[str, Any]]] = {}
        self._may_write = asyncio.Event()
        self._may_write.set()

    # Sending

    async def ask(self, method: str, params: Params, prefix: str = "") -> dict[str, Any]:
        """The result of a request; RemoteError if refused, ConnectionError if the connection ends first."""
        number = next(self._ids)
        id: Id = f"{prefix}{number}" if prefix else number  # noqa: A001
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._write(encode_request(id, method, params))
        self._waiting[id] = answered
        try:
            if not self._may_write.is_set():
                await self._may_write.wait()
            return await answered
        finally:
            self._waiting.pop(id, None)

    def answer(self, id: Id, value: Params) -> bool:  # noqa: A002
        """Answer a request, unless it has no id. Whether the result could be sent."""
        if self.is_closed:
            return False
        try:
            frame = encode_result(id, value)
        except FrameError as error:
            self.refuse(id, error.code, str(error))
            return False
        except (TypeError, ValueError, RecursionError) as error:
            self.refuse(id, TASK_FAILED, f"the answer cannot be encoded as JSON: {error}")
            return False
        if id is not None:
            self._write(frame)
        return True

    def refuse(self, id: Id, code: int, message: str, data: Params | None = None) -> None:  # noqa: A002
        if id is None or self.is_closed:
            return
        try:
            frame = encode_error(id, code, message, data)
        except (FrameError, TypeError, ValueError, RecursionError) as error:  # an id as long as a frame
            self.complain(TASK_FAILED, f"a request cannot be answered: {error}")
        else:
            self._write(frame)

    def complain(self, code: int, message: str) -> None:
        """Send what is wrong with the connection itself, and close it."""
        if not self.is_closed:
            self._write(encode_error(None, code, message))
            self.close()

    @property
    def is_closed(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    @property
    def is_local(self) -> bool:
        """Whether it is a Unix socket, so that paths mean the same on both sides."""
        transport = self.transport
        return transport is not None and isinstance(transport.get_extra_info("sockname"), (str, bytes))

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def limit(self, most_bytes: int | None) -> None:
        """Accept no longer frame; None for the default limit."""
        self._lines.most_bytes = MOST_BYTES if most_bytes is None else most_bytes

    def pause(self) -> None:
        """Stop reading until resume() was called as often as pause()."""
        self._pauses += 1
        if self._pauses == 1 and self.transport is not None:
            with suppress(RuntimeError):  # it is closing and no longer reads
                self.transport.pause_reading()

    def resume(self) -> None:
        self._pauses -= 1
        if self._pauses == 0 and self.transport is not None:
            with suppress(RuntimeError):
                self.transport.resume_reading()

    def _write(self, frame: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            raise self._closed_error()
        self.transport.write(frame)

    # Receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own
        connection = transport.get_extra_info("socket")
        if connection is not None:  # so that a machine that vanished silently is noticed
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        try:
            if self.raw is None:
                data = self._handle_lines(data)
            if self.raw is not None and data:
                self.raw.data_received(data)
        except FrameError as error:
            self.complain(error.code, str(error))

    def _handle_lines(self, data: bytes) -> bytes:
        """Handle every complete frame; returns the raw bytes after the last one."""
        lines = self._lines.feed(data)
        for line in lines:
            if line.strip():
                self._handle_frame(decode_frame(line))
            if self.raw is not None:
                rest = b"".join(later + b"\n" for later in lines)
                return rest + self._lines.rest()
        return b""

    def _handle_frame(self, frame: dict[str, Any]) -> None:
        id = frame.get("id")  # noqa: A001
        if "method" in frame or ("result" not in frame and "error" not in frame):
            if self.owner is not None:
                self.owner.handle_request(id, str(frame.get("method", "")), frame.get("params"))
            return
        waiting = self._waiting.get(id) if isinstance(id, (int, str)) else None
        if waiting is None or waiting.done():
            if id is None:
                self._fail_all(read_error(frame))
            return
        if "error" in frame:
            waiting.set_exception(read_error(frame))
        elif isinstance(value := frame["result"], dict):
            waiting.set_result(value)
            self.raw = self._successor or self.raw
        else:
            waiting.set_exception(RemoteError(-32603, "the result is not an object"))

    def take_over(self, raw: asyncio.Protocol) -> None:
        """Hand over all further bytes, which are not frames."""
        self.raw = raw

    def take_over_after_answer(self, raw: asyncio.Protocol) -> None:
        """Hand over all bytes after the next answer, even if they arrive in the same packet."""
        self._successor = raw

    def eof_received(self) -> bool | None:
        return self.raw.eof_received() if self.raw is not None else False

    def pause_writing(self) -> None:
        self._may_write.clear()
        if self.raw is not None:
            self.raw.pause_writing()
        elif self._is_server:
            self._is_full = True
            self.pause()

    def resume_writing(self) -> None:
        self._may_write.set()
        if self._is_full:
            self._is_full = False
            self.resume()
        if self.raw is not None:
            self.raw.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost_by = error
        self._may_write.set()
        self._fail_all(self._closed_error())
        if self.raw is not None:
            self.raw.connection_lost(error)
        if self.owner is not None:
            self.owner.handle_disconnect(error)

    def _fail_all(self, error: Exception) -> None:
        """After a reset, an end or a connection error, no request may keep waiting for its answer."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    def _closed_error(self) -> ConnectionError:
        gone = ConnectionError("the connection was closed")
        gone.__cause__ = self.lost_by
        return gone


def read_error(frame: Mapping[str, Any]) -> RemoteError:
    error = frame.get("error")
    if not isinstance(error, Mapping):
        return RemoteError(-32603, "the answer has neither result nor error")
    code, data = error.get("code"), error.get("data")
    return RemoteError(
        code if isinstance(code, int) else -32603,
        str(error.get("message", "")),
        data if isinstance(data, Mapping) else None,
    )
