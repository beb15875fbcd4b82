"""The few words of ASGI that the gateway needs. Knows nothing of wires.

The gateway speaks it directly, because a framework's request and response would cost as much as passing on.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from litestar.types import HTTPScope, Receive, Send

from proctor.gateway.wire import Refusal, Wire, encode_json

Headers = Sequence[tuple[bytes, bytes]]

UNCACHED = (b"cache-control", b"no-store")
JSON: Headers = [(b"content-type", b"application/json"), UNCACHED]
STREAM: Headers = [(b"content-type", b"text/event-stream"), UNCACHED]
CODE_HEADER = b"x-proctor-code"
"""The code of a refusal; not every wire has a place for one."""
UNPRINTABLE = re.compile(rb"[^\x20-\x7e\xa0-\xff]+")
LONGEST_HEADER = 200
BAD_GATEWAY = 502


class ClientGoneError(Exception):
    """The client left before it had said everything."""


class RequestHeaders(msgspec.Struct, frozen=True):
    """What is read of a request's headers."""

    token: str
    passed: Mapping[str, str] | None
    """Those that go on to the provider."""


def read_request_headers(scope: HTTPScope, passed: frozenset[bytes] = frozenset()) -> RequestHeaders:
    token, on = "", {}
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, rest = value.decode("latin-1").partition(" ")
            token = rest.strip() if kind.lower() == "bearer" else token
        elif name == b"x-api-key":
            token = token or value.decode("latin-1")
        elif name in passed:
            on[name.decode()] = value.decode("latin-1")
    return RequestHeaders(token, on or None)


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Wait for something for as long as the client does; the whole body must have been received."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def send_response(send: Send, content: bytes, status: int = 200, headers: Headers = JSON) -> None:
    await start_response(send, status, [*headers, (b"content-length", b"%d" % len(content))])
    await send_chunk(send, content, is_last=True)


async def start_response(send: Send, status: int, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def send_chunk(send: Send, content: bytes, *, is_last: bool = False) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": not is_last})


async def send_refusal(send: Send, wire: Wire, why: Refusal) -> None:
    wait = why.retry_after_seconds
    extra = [] if wait is None else [(b"retry-after", b"%d" % math.ceil(wait))]
    headers = [*JSON, (CODE_HEADER, header_value(why.code)), *extra]
    await send_response(send, encode_json(wire.refusal(why)), known_status(why.status), headers)


def header_value(text: str) -> bytes:
    """Somebody else's text where only one line may stand."""
    return UNPRINTABLE.sub(b" ", text.encode("latin-1", "replace"))[:LONGEST_HEADER].strip()


def known_status(status: int) -> int:
    """The status of a refusal; a provider may have made one up that no server can send."""
    return status if 400 <= status < 600 else BAD_GATEWAY
