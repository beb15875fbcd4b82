"""Carry HTTP, WebSockets and plain bytes between who asks the server and a program in a place.

What comes out of a place is not to be trusted: it never gets the caller's token, and a browser is told to
treat its answers as nobody's. Knows nothing of who may ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
from litestar import WebSocket
from litestar.exceptions import WebSocketDisconnect
from litestar.response import Stream
from multidict import CIMultiDict
from yarl import URL

from proctor.runtimes.relay import PIECE
from proctor.server.problems import ApiError
from proctor.server.requests import HttpRequest

CHUNK_BYTES = 65_536
SILENT_SECONDS = 300.0
HOP_BY_HOP = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
STRIPPED_REQUEST_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})
"""By these the caller is known here; the program has no business with them."""
STRIPPED_RESPONSE_HEADERS = frozenset(
    {
        "set-cookie",
        "content-security-policy",
        "clear-site-data",
        "strict-transport-security",
        "x-content-type-options",
    }
)
"""Of an answer: these would speak for the whole server."""
CONTAINMENT_HEADERS = {"content-security-policy": "sandbox"}
LARGEST_MESSAGE = 2**24
"""Of a WebSocket, in bytes: a message is gathered whole before it is passed on, in either direction."""
UNSENDABLE = frozenset({1005, 1006, 1015})
"""Codes that say how a WebSocket ended, and that no close may carry."""
REFUSED = 4000
"""Added to a status, the code by which a WebSocket is closed that is refused."""

Watch = Callable[[Callable[[ApiError], None]], AbstractContextManager[None]]
"""Calls what it is given should the caller lose the right to what is carried."""


class ProgramSilentError(ApiError):
    """The program in a place did not answer."""

    status, code = 502, "instance_silent"


async def carry_request(request: HttpRequest, socket: Path, target: str, watch: Watch) -> Stream:
    """Ask the program, and answer as it answers, for as long as the caller may."""
    try:
        async with AsyncExitStack() as opening:
            session = await opening.enter_async_context(open_session(socket))
            sent = session.request(
                request.method,
                URL(f"http://instance{target}", encoded=True),
                data=request.stream() if has_body(request) else None,
                headers=filter_headers(request.headers, HOP_BY_HOP | STRIPPED_REQUEST_HEADERS),
                allow_redirects=False,
            )
            answer = await opening.enter_async_context(sent)
            opening.enter_context(watch(lambda _: answer.close()))
            stack = opening.pop_all()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise ProgramSilentError(f"The program did not answer: {error or type(error).__name__}.") from error

    async def chunks() -> AsyncIterator[bytes]:
        async with stack:
            with suppress(aiohttp.ClientConnectionError):  # the program left, or the caller was cut off
                async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                    yield chunk

    headers = {
        **dict(filter_headers(answer.headers, HOP_BY_HOP | STRIPPED_RESPONSE_HEADERS)),
        **CONTAINMENT_HEADERS,
    }
    kind = headers.pop("Content-Type", None) or headers.pop("content-type", "application/octet-stream")
    return Stream(chunks(), status_code=answer.status, headers=headers, media_type=kind)


def has_body(request: HttpRequest) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers


def filter_headers(headers: Mapping[str, str], dropped: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)


def open_session(socket: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(str(socket)),
        timeout=aiohttp.ClientTimeout(total=None, sock_read=SILENT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


# WebSockets


async def carry_websocket(outer: WebSocket[Any, Any, Any], socket: Path, target: str, watch: Watch) -> None:
    """Pass messages both ways until one side has closed, or the caller lost the right to."""
    headers = filter_headers(outer.headers, HOP_BY_HOP | STRIPPED_REQUEST_HEADERS)
    own = CIMultiDict(
        (name, value) for name, value in headers.items() if not name.lower().startswith("sec-websocket-")
    )
    wished = [each.strip() for each in outer.headers.get("sec-websocket-protocol", "").split(",") if each]
    async with open_session(socket) as session:
        address = URL(f"http://instance{target}", encoded=True)
        async with session.ws_connect(
            address, headers=own, protocols=wished, max_msg_size=LARGEST_MESSAGE
        ) as inner:
            await outer.accept(subprotocols=inner.protocol)
            refusal = await until_cut(watch, pump_messages_in(outer, inner), pump_messages_out(outer, inner))
            code = inner.close_code
    await close(outer, refusal, 1011 if code in UNSENDABLE else code or 1000)


async def pump_messages_in(outer: WebSocket[Any, Any, Any], inner: aiohttp.ClientWebSocketResponse) -> None:
    while (message := await receive_message(outer)) is not None:
        text, data = message.get("text"), message.get("bytes")
        if text is not None:
            await inner.send_str(text)
        elif data is not None:
            await inner.send_bytes(data)


async def pump_messages_out(outer: WebSocket[Any, Any, Any], inner: aiohttp.ClientWebSocketResponse) -> None:
    async for message in inner:
        if message.type == aiohttp.WSMsgType.TEXT:
            await outer.send_text(message.data)
        elif message.type == aiohttp.WSMsgType.BINARY:
            await outer.send_bytes(message.data)


async def receive_message(outer: WebSocket[Any, Any, Any]) -> dict[str, Any] | None:
    message: dict[str, Any] = dict(await outer.receive())
    return message if message["type"] == "websocket.receive" else None


# Plain bytes


async def carry_bytes(outer: WebSocket[Any, Any, Any], socket: Path, watch: Watch) -> None:
    """A connection of its own, as binary messages, for as long as the caller may have it."""
    reader, writer = await asyncio.open_unix_connection(socket)
    await outer.accept()

    async def into() -> None:
        while (message := await receive_message(outer)) is not None:
            writer.write(message.get("bytes") or b"")
            await writer.drain()

    async def out() -> None:
        while data := await reader.read(PIECE):
            await outer.send_bytes(data)

    try:
        refusal = await until_cut(watch, into(), out())
    finally:
        writer.close()
    await close(outer, refusal, 1000)


async def until_cut(watch: Watch, *ways: Any) -> ApiError | None:
    """Until the first way ends, or the caller is cut off; then, why."""
    refusals: list[ApiError] = []
    cut = asyncio.Event()

    def cut_off(error: ApiError) -> None:
        refusals.append(error)
        cut.set()

    with watch(cut_off):
        await run_until_first_ends(*ways, cut.wait())
    return refusals[0] if refusals else None


async def close(outer: WebSocket[Any, Any, Any], refusal: ApiError | None, code: int) -> None:
    with suppress(RuntimeError, WebSocketDisconnect):
        if refusal is None:
            await outer.close(code)
        else:
            await outer.close(REFUSED + refusal.status, str(refusal))


async def run_until_first_ends(*ways: Any) -> None:
    """Until the first of them ends; a side that is gone is no failure."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    gone = (asyncio.CancelledError, OSError, aiohttp.ClientError, WebSocketDisconnect, RuntimeError)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, gone):
            raise error
