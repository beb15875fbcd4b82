"""The parts of ASGI that the gateway needs. Knows nothing of accounts or providers.

The gateway speaks ASGI directly, in front of the framework and its routes: they would cost as much as
forwarding.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from litestar.types import HTTPScope, Receive, Send

from proctor.wires.codec import encode_json
from proctor.wires.errors import Refusal
from proctor.wires.wire import Wire

Headers = Sequence[tuple[bytes, bytes]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

BASE = "/v1"
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


def with_gateway(app: Application, gateway: Application) -> Application:
    """An application whose requests under `/v1` go to the gateway."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        chosen = gateway if scope["type"] == "http" and is_for_gateway(scope["path"]) else app
        await chosen(scope, receive, send)

    return serve


def is_for_gateway(path: str) -> bool:
    return path.startswith(f"{BASE}/") or path == BASE


def wire_path(path: str) -> str:
    """A request's path as the wires have it; some clients add a slash, or double one."""
    path = path.removeprefix(BASE)
    return "/" + "/".join(filter(None, path.split("/"))) if "//" in path or path.endswith("/") else path


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


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None] | asyncio.Future[None]) -> None:
    """Do some work while the client stays connected; its whole body must have been received."""
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
