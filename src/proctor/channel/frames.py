"""Frames of the control channel: one compact JSON object per line, in the shape of JSON-RPC 2.0.

Knows bytes and JSON. Knows nothing of tasks, sessions or sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

MOST_BYTES = 64 * 1024 * 1024
"""Per frame. Other implementations read 16 MiB, old ones 64 KiB."""

MOST_MESSAGE_CHARACTERS = 16 * 1024
"""Of an error message; old readers accept no frame over 64 KiB."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
TASK_FAILED = -32000
"""Whatever the environment's own code raised."""
UNAUTHORIZED = -32001

NO_TASK = "no task in progress"
"""Other clients look for exactly these words."""

Id = int | str | None


class FrameError(Exception):
    """Something cannot be read, or must not be sent, as a frame."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RemoteError(Exception):
    """The other side answered with an error."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = dict(data or {})
        """What a peer adds: `kind`, `transient`, `trace`."""


class LineBuffer:
    """Splits incoming bytes into whole lines."""

    def __init__(self) -> None:
        self.most_bytes = MOST_BYTES
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        if b"\n" not in data:
            self._hold(data)
            return
        *whole, rest = data.split(b"\n")
        if self._held:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts, self._held = [], 0
        for line in whole:
            check_size(len(line), self.most_bytes)
            yield line
        if rest:
            self._hold(rest)

    def _hold(self, data: bytes) -> None:
        self._parts.append(data)
        self._held += len(data)
        check_size(self._held, self.most_bytes)

    def rest(self) -> bytes:
        """Remove and return what arrived after the last whole line."""
        parts, self._parts, self._held = self._parts, [], 0
        return b"".join(parts)


def check_size(size: int, most_bytes: int = MOST_BYTES) -> None:
    if size > most_bytes:
        raise FrameError(
            TASK_FAILED,
            f"a frame of {size:,} bytes or more is over the limit of {most_bytes:,}; "
            "pass large data by file instead",
        )


def decode_frame(line: bytes) -> dict[str, Any]:
    """The object on a line."""
    try:
        frame = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(PARSE_ERROR, f"a frame is one JSON object on one line: {error}") from error
    if not isinstance(frame, dict):
        raise FrameError(INVALID_REQUEST, "a frame is one JSON object; batches are not supported")
    return frame


def encode_request(id: Id, method: str, params: Mapping[str, Any]) -> bytes:  # noqa: A002
    return encode_frame({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def encode_result(id: Id, value: Mapping[str, Any]) -> bytes:  # noqa: A002
    return encode_frame({"jsonrpc": "2.0", "id": id, "result": value})


def encode_error(id: Id, code: int, message: str, data: Mapping[str, Any] | None = None) -> bytes:  # noqa: A002
    """An error frame, its message cut to a sensible length and lone surrogates escaped."""
    readable = message[:MOST_MESSAGE_CHARACTERS].encode(errors="backslashreplace").decode()
    error: dict[str, Any] = {"code": code, "message": readable}
    if data:
        error["data"] = data
    return encode_frame({"jsonrpc": "2.0", "id": id, "error": error})


def encode_frame(frame: Mapping[str, Any]) -> bytes:
    line = _encode(frame) + b"\n"
    check_size(len(line) - 1)
    return line


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
