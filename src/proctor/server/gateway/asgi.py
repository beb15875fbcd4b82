"""The parts of ASGI that the gateway needs. Knows nothing of accounts or providers.

The gateway speaks ASGI directly, in front of the framework and its routes: they would cost as much as
forwarding.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from litestar.types import HTTPScope, Message, Receive, Send

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
UNWATCHED_SECONDS = 0.1
"""How long work may take before its client is watched."""
BAD_GATEWAY = 502


class ClientGoneError(Exception):
    """The client disconnected."""


def with_gateway(app: Application, gateway: Application) -> Application:
    """An application whose requests under `/v1` go to the gateway."""

    def serve(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        chosen = gateway if scope["type"] == "http" and is_for_gateway(scope["path"]) else app
        return chosen(scope, receive, send)

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
    """Do some work while the client stays connected; its whole body must have been received.

    The client is watched only after a moment: most reservations are made by then, and watching costs more.
    """
    working = asyncio.ensure_future(work)
    leaving: asyncio.Future[Any] | None = None

    def watch() -> None:
        nonlocal leaving
        leaving = asyncio.ensure_future(receive())
        leaving.add_done_callback(lambda _: working.cancel())

    timer = asyncio.get_running_loop().call_later(UNWATCHED_SECONDS, watch)
    try:
        await working
    except asyncio.CancelledError:
        if leaving is not None and leaving.done():
            raise ClientGoneError from None
        raise
    finally:
        timer.cancel()
        working.cancel()
        if leaving is not None:
            leaving.cancel()


async def send_response(send: Send, content: bytes, status: int = 200, headers: Headers = JSON) -> None:
    await start_response(send, status, [*headers, (b"content-length", b"%d" % len(content))])
    await send_chunk(send, content, is_last=True)


# These are awaited like coroutines, but cost nothing of their own: every answer passes all of them.


def start_response(send: Send, status: int, headers: Headers) -> Awaitable[None]:
    return send({"type": "http.response.start", "status": status, "headers": list(headers)})


def send_chunk(send: Send, content: bytes, *, is_last: bool = False) -> Awaitable[None]:
    return send({"type": "http.response.body", "body": content, "more_body": not is_last})


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


class ResponseSender:
    """Sends a response, and knows whether it has begun: after that, no status can be sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_begun = False

    def __call__(self, message: Message) -> Awaitable[None]:
        self.is_begun = True
        return self._send(message)

    async def refuse(self, wire: Wire, refusal: Refusal) -> None:
        if self.is_begun:
            await send_chunk(self, wire.encode_broken_stream(refusal), is_last=True)
        else:
            await send_refusal(self, wire, refusal)


async def send_stream(events: AsyncIterator[bytes], send: ResponseSender) -> None:
    """Send events as they come; what fails before the first one still has a status of its own."""
    async for event in events:
        if not send.is_begun:
            await start_response(send, 200, STREAM)
        await send_chunk(send, event)
    await send_chunk(send, b"", is_last=True)
