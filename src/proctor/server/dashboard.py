"""The dashboard's pages in front of the API, and answers compressed where that pays.

Wraps the application, since every path that is not the API's may be a page. Knows nothing of routes.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from proctor.api.common import BASE
from proctor.pages.files import BuiltPages, PageAnswer, list_accepted
from proctor.pages.security_headers import SAFE_HEADERS

SMALLEST_COMPRESSED = 1024
"""Bytes; below, the headers weigh more than what is saved."""
LEVEL = 5
IN_THREAD = 32 * 1024
"""Bytes from which on other requests should not wait for the compression."""
COMPRESSIBLE = (
    b"application/json",
    b"application/problem+json",
    b"application/vnd.oai.openapi+json",
    b"text/html",
)

Headers = list[tuple[bytes, bytes]]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
"""Of ASGI."""


def with_pages(app: Application, pages: BuiltPages) -> Application:
    """An application that serves pages where a page is requested."""

    async def serve(scope: Scope, receive: Any, send: Send) -> None:
        answer = find_answer(scope, pages) if scope["type"] == "http" else None
        if answer is None:
            await app(scope, receive, send)
        else:
            await send_answer(answer, send, is_head=scope.get("method") == "HEAD")

    return serve


def find_answer(scope: Scope, pages: BuiltPages) -> PageAnswer | None:
    if scope.get("method") not in ("GET", "HEAD"):
        return None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return pages.answer(
        str(scope["path"]),
        accept=headers.get("accept", ""),
        accept_encoding=headers.get("accept-encoding", ""),
        known_tag=headers.get("if-none-match", ""),
    )


async def send_answer(answer: PageAnswer, send: Send, *, is_head: bool) -> None:
    given = {name: value for name, value in answer.headers.items() if name not in SAFE_HEADERS}
    given["content-length"] = str(len(answer.body))
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body, "more_body": False})


def with_compression(app: Application) -> Application:
    """An application whose large answers are compressed for clients that accept it; streams never are, since
    their pieces must arrive at once."""

    async def serve(scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] == "http" and str(scope["path"]).startswith(f"{BASE}/") and accepts_gzip(scope):
            await app(scope, receive, CompressedSend(send))
        else:
            await app(scope, receive, send)

    return serve


def accepts_gzip(scope: Scope) -> bool:
    given = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    return "gzip" in list_accepted(given.decode("latin-1"))


class CompressedSend:
    """Passes messages on; an answer that comes as a whole is compressed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None and message["type"] == "http.response.body":
            start, message = await compress_answer(start, message)
        if start is not None:
            await self._send(start)
        await self._send(message)


async def compress_answer(start: Message, body: Message) -> tuple[Message, Message]:
    content: bytes = body.get("body", b"")
    headers: Headers = list(start.get("headers", []))
    if body.get("more_body") or len(content) < SMALLEST_COMPRESSED or not is_compressible(headers):
        return start, body
    if len(content) < IN_THREAD:
        small = gzip.compress(content, LEVEL, mtime=0)
    else:
        small = await asyncio.to_thread(gzip.compress, content, LEVEL, mtime=0)
    kept = [(name, value) for name, value in headers if name != b"content-length"]
    added = [
        (b"content-encoding", b"gzip"),
        (b"content-length", str(len(small)).encode()),
        (b"vary", b"accept-encoding"),
    ]
    return {**start, "headers": [*kept, *added]}, {**body, "body": small}


def is_compressible(headers: Headers) -> bool:
    known = {name.lower(): value for name, value in headers}
    return b"content-encoding" not in known and known.get(b"content-type", b"").startswith(COMPRESSIBLE)
