"""The few words of ASGI that the gateway needs. Knows nothing of wires.

The gateway speaks it directly, because a framework's request and response would cost as much as passing on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from litestar.types import HTTPScope, Receive, Send

from proctor.gateway.failures import TOO_LARGE
from proctor.gateway.wire import Refusal, RefusedError, Wire, in_json

Headers = Sequence[tuple[bytes, bytes]]

UNCACHED = (b"cache-control", b"no-store")
JSON: Headers = [(b"content-type", b"application/json"), UNCACHED]
STREAM: Headers = [(b"content-type", b"text/event-stream"), UNCACHED]
CODE_HEADER = b"x-proctor-code"
"""The code of a refusal; not every wire has a place for one."""


class GoneError(Exception):
    """The client left before it had said everything."""


class Asking(msgspec.Struct, frozen=True):
    """What is read of a request's headers."""

    token: str
    passed: Mapping[str, str] | None
    """Those that go on to the provider."""


def asking_of(scope: HTTPScope, passed: frozenset[bytes] = frozenset()) -> Asking:
    token, on = "", {}
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, rest = value.decode("latin-1").partition(" ")
            token = rest.strip() if kind.lower() == "bearer" else token
        elif name == b"x-api-key":
            token = token or value.decode("latin-1")
        elif name in passed:
            on[name.decode()] = value.decode("latin-1")
    return Asking(token, on or None)


async def body_of(receive: Receive, most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise GoneError
        chunk = message["body"]
        size += len(chunk)
        if size > most:
            raise RefusedError(
                msgspec.structs.replace(TOO_LARGE, message=f"The request is larger than {most // 2**20} MiB.")
            )
        if not message["more_body"]:
            return b"".join((*chunks, chunk)) if chunks else chunk
        chunks.append(chunk)


async def answer(send: Send, content: bytes, status: int = 200, headers: Headers = JSON) -> None:
    await begin(send, status, [*headers, (b"content-length", b"%d" % len(content))])
    await more(send, content, is_last=True)


async def begin(send: Send, status: int, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def more(send: Send, content: bytes, *, is_last: bool = False) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": not is_last})


async def refuse(send: Send, wire: Wire, why: Refusal) -> None:
    wait = why.retry_after_seconds
    extra = [] if wait is None else [(b"retry-after", b"%d" % math.ceil(wait))]
    headers = [*JSON, (CODE_HEADER, why.code.encode("latin-1", "replace")), *extra]
    await answer(send, in_json(wire.refusal(why)), why.status, headers)
