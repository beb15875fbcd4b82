"""The conformance table: every frame of the channel, good and bad, as it stands on a socket.

A row is a conversation: who says what, and what comes back. `$name` stands for a value that is kept where it
is first seen; `ANY` for anything; a pattern for a text that it describes. Where another server is known to
answer otherwise, the step says how in `theirs`, and the row says why we differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ANY = re.compile("")
"""Anything at all."""
MIB = 1024 * 1024
SAME = object()


@dataclass(frozen=True)
class Step:
    """Something is sent, or heard, on one connection."""

    who: str
    sent: bytes | dict[str, Any] | None = None
    """A frame, or bytes as they are."""
    heard: tuple[Any, ...] = ()
    """The frames that come back."""
    theirs: Any = SAME
    """What comes back from the others, where that is not the same."""
    hangs_up: bool = False
    ends: bool = False
    """The connection is closed by the server."""
    they_end: bool = False
    """By theirs, although not by ours."""
    again: bool = False
    """Said again until the answer is right: there is something to wait for."""
    in_bytes: bool = False
    """Sent byte by byte."""


@dataclass(frozen=True)
class Row:
    """One conversation."""

    name: str
    steps: Sequence[Step]
    differs: str = ""
    """Why we answer otherwise than others do."""


def frame(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    sent: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        sent["params"] = params
    if id is not None:
        sent["id"] = id
    return sent


def result(value: Any, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(code: int, message: Any = ANY, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def ask(who: str, method: str, params: Any, reply: Any, *, id: Any = 1, **how: Any) -> Step:  # noqa: A002
    return Step(who, frame(method, params, id), (reply,), **how)


def raw(who: str, sent: bytes, *heard: Any, **how: Any) -> Step:
    return Step(who, sent, heard, **how)


def send(who: str, method: str, params: Any, id: Any = 1) -> Step:  # noqa: A002
    """Without waiting for what comes back."""
    return Step(who, frame(method, params, id))


def hear(who: str, *heard: Any, **how: Any) -> Step:
    return Step(who, None, heard, **how)


def hang_up(who: str) -> Step:
    return Step(who, hangs_up=True)


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


GREETING = {"session_id": re.compile("sess-[0-9a-f]+"), "env": {"name": "room", "version": "1.2.3"}}
HELLO = result({**GREETING, "bindings": []})
KEPT = result({**GREETING, "session_id": "$session", "bindings": []})
PEAR = {"id": "count", "args": {"word": "pear"}}
PROMPT = result({"prompt": "How many r in pear?"})
NO_TASK = error(-32600, "no task in progress")
BYE = ask("a", "bye", {}, result({"goodbye": True}), ends=True)
CANCELLED = result({"cancelled": True})
