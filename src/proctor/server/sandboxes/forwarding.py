"""Pass requests about a sandbox to the server that made it, where several share one database.

A sandbox runs beside one server, and a load balancer may send its requests to any. The request is passed on
as it came, with the caller's credentials, and is authenticated there; it is passed on once. Knows nothing of
what is requested.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
from multidict import CIMultiDict
from sqlalchemy import Connection, select
from yarl import URL

from proctor.api.common import BASE, PROBLEM_TYPE, Problem, complete_problem
from proctor.pages.security_headers import SAFE_HEADERS
from proctor.server.db.tables import sandboxes, servers
from proctor.server.platform import Platform
from proctor.server.registry import list_live_servers
from proctor.server.sandboxes.proxy import (
    CHUNK_BYTES,
    HOP_BY_HOP,
    LARGEST_MESSAGE,
    REFUSED,
    SILENT_SECONDS,
    UNSENDABLE,
    run_until_first_ends,
)

PLACED = re.compile(rf"{BASE}/(?:sandboxes|instances|runtime/sessions)/((?:box|inst|ses)-[0-9a-f]+)(?:/|$)")
FORWARDED_HEADER = "x-proctor-forwarded"
NOT_FORWARDED = HOP_BY_HOP | {"accept-encoding", "content-length"}
"""Beside those of one connection: an answer is compressed here, and a body is sent in pieces."""
NOT_RETURNED = HOP_BY_HOP | {"date", *(name.lower() for name in SAFE_HEADERS)}
"""What this server adds to every answer itself."""
CONNECT_SECONDS = 5.0
BAD_GATEWAY = 502
SILENT = "The server that runs the sandbox does not answer; try again."


class SandboxForwarding:
    """An application, with sandboxes of other servers."""

    def __init__(self, app: Any, platform: Platform) -> None:
        self._app = app
        self._platform = platform

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        url = await self._find_server(scope)
        if url is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await forward_request(scope, receive, send, url)
        else:
            await forward_websocket(scope, receive, send, url)

    async def _find_server(self, scope: Any) -> str | None:
        """The address of the server that has the sandbox in question; None if it is this one, or gone."""
        if scope["type"] not in ("http", "websocket") or self._platform.database.is_sqlite:
            return None
        placed = PLACED.match(scope["path"])
        if placed is None or any(name == FORWARDED_HEADER.encode() for name, _ in scope["headers"]):
            return None
        return await self._platform.database.read(find_server_of, placed[1], self._platform.id)


def find_server_of(connection: Connection, sandbox_id: str, own: str) -> str | None:
    row = connection.execute(
        select(sandboxes.c.server).where(sandboxes.c.id == sandbox_id, sandboxes.c.ended_at.is_(None))
    ).one_or_none()
    if row is None or row.server == own:
        return None
    live = list_live_servers(connection).where(servers.c.server == row.server)
    url: str | None = connection.execute(live.order_by(servers.c.started_at.desc())).scalars().first()
    return url


# HTTP


async def forward_request(scope: Any, receive: Any, send: Any, url: str) -> None:
    """Pass on a request and its answer, until the client goes away."""
    is_sent, has_begun = asyncio.Event(), False
    if not has_body(scope):
        is_sent.set()

    async def body() -> AsyncIterator[bytes]:
        while (message := await receive())["type"] == "http.request":
            yield message.get("body", b"")
            if not message.get("more_body"):
                is_sent.set()
                return
        raise ConnectionResetError

    async def copy() -> None:
        nonlocal has_begun
        data = None if is_sent.is_set() else body()
        headers = read_headers(scope, NOT_FORWARDED)
        async with (
            open_session() as session,
            session.request(
                scope["method"], address(scope, url), data=data, headers=headers, allow_redirects=False
            ) as answer,
        ):
            has_begun = True
            await send({"type": "http.response.start", "status": answer.status, "headers": own(answer)})
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def wait_for_disconnect() -> None:
        await is_sent.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    await run_until_first_ends(copy(), wait_for_disconnect())
    if not has_begun:
        await send_problem(send)


def own(answer: aiohttp.ClientResponse) -> list[tuple[bytes, bytes]]:
    """The headers of an answer that are not of its connection."""
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.items()
        if name.lower() not in NOT_RETURNED
    ]


async def send_problem(send: Any) -> None:
    content = msgspec.json.encode(complete_problem(Problem("server_silent", SILENT), BAD_GATEWAY))
    headers = [(b"content-type", PROBLEM_TYPE.encode()), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": BAD_GATEWAY, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def open_session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
    return aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())


def address(scope: Any, url: str) -> URL:
    query = scope["query_string"].decode("ascii")
    return URL(f"{url}{scope['raw_path'].decode('ascii')}{'?' if query else ''}{query}", encoded=True)


def has_body(scope: Any) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def read_headers(scope: Any, dropped: frozenset[str]) -> CIMultiDict[str]:
    pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    kept = CIMultiDict((name, value) for name, value in pairs if name not in dropped)
    kept[FORWARDED_HEADER] = "1"
    return kept


# WebSockets


async def forward_websocket(scope: Any, receive: Any, send: Any, url: str) -> None:
    await receive()  # websocket.connect
    read = read_headers(scope, HOP_BY_HOP)
    headers = CIMultiDict(
        (name, value) for name, value in read.items() if not name.startswith("sec-websocket-")
    )
    try:
        async with (
            open_session() as session,
            session.ws_connect(
                address(scope, url),
                headers=headers,
                protocols=scope["subprotocols"],
                max_msg_size=LARGEST_MESSAGE,
            ) as there,
        ):
            await send({"type": "websocket.accept", "subprotocol": there.protocol})
            await run_until_first_ends(pump_in(receive, there), pump_out(send, there))
            code = there.close_code
    except aiohttp.WSServerHandshakeError as error:
        await send({"type": "websocket.close", "code": REFUSED + error.status})
        return
    except (aiohttp.ClientError, OSError, TimeoutError):
        await send({"type": "websocket.close", "code": REFUSED + BAD_GATEWAY, "reason": SILENT})
        return
    await send({"type": "websocket.close", "code": 1011 if code in UNSENDABLE else code or 1000})


async def pump_in(receive: Any, there: aiohttp.ClientWebSocketResponse) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") is not None:
            await there.send_str(message["text"])
        else:
            await there.send_bytes(message.get("bytes") or b"")


async def pump_out(send: Any, there: aiohttp.ClientWebSocketResponse) -> None:
    async for message in there:
        if message.type == aiohttp.WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
        elif message.type == aiohttp.WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
