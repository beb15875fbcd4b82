"""The parts of ASGI that the gateway needs. Knows nothing of accounts or providers.

The gateway speaks ASGI directly: a framework's request and response objects would cost as much as forwarding.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from litestar.types import HTTPScope, Receive, Send

from proctor.wires.codec import encode_json
from proctor.wires.errors import Refusal
from proctor.wires.wire import Wire

Headers = Sequence[tuple[bytes, bytes]]

UNCACHED = (b"cache-control", b"no-store")
JSON: Headers = [(b"content-type", b"application/json"), UNCACHED]
STREAM: Headers = [(b"content-type", b"text/event-stream"), UNCACHED]
CODE_HEADER = b"x-proctor-code"
"""The code of a refusal; not every wire has a field for it."""
UNPRINTABLE = re.compile(rb"[^\x20-\x7e\xa0-\xff]+")
LONGEST_HEADER = 200
BAD_GATEWAY = 502


class ClientGoneError(Exception):
    """The client disconnected."""


class RequestHeaders(msgspec.Struct, frozen=True):
    """The headers of a request that the gateway reads."""

    token: str
    forwarded: Mapping[str, str] | None
    """Those that the provider sees."""


def read_request_headers(scope: HTTPScope, wire: Wire) -> RequestHeaders:
    token, forwarded = "", {}
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, rest = value.decode("latin-1").partition(" ")
            token = rest.strip() if kind.lower() == "bearer" else token
        elif name == b"x-api-key":
            token = token or value.decode("latin-1")
        elif name in wire.forwarded_headers:
            forwarded[name.decode()] = value.decode("latin-1")
    return RequestHeaders(token, forwarded or None)


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run some work while the client stays connected; its whole body must have been received."""
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


async def send_refusal(send: Send, wire: Wire, refusal: Refusal) -> None:
    wait = refusal.retry_after_seconds
    extra = [] if wait is None else [(b"retry-after", b"%d" % math.ceil(wait))]
    headers = [*JSON, (CODE_HEADER, header_value(refusal.code)), *extra]
    await send_response(
        send, encode_json(wire.encode_refusal(refusal)), known_status(refusal.status), headers
    )


def header_value(text: str) -> bytes:
    """A text from outside as the value of one header."""
    return UNPRINTABLE.sub(b" ", text.encode("latin-1", "replace"))[:LONGEST_HEADER].strip()


def known_status(status: int) -> int:
    """The status of a refusal; 502 for a provider's status that is not an error's."""
    return status if 400 <= status < 600 else BAD_GATEWAY
