"""The floor of the inference gateway: the same stack, passing on whatever comes and looking at nothing.

    python bare_proxy.py URL PORT

Litestar on uvicorn, aiohttp to the provider.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import uvicorn
from litestar import Litestar
from litestar.handlers import asgi
from litestar.types import HTTPScope, Receive, Scope, Send

JSON = {"content-type": "application/json"}


def app_to(url: str) -> Litestar:
    session: aiohttp.ClientSession

    @asynccontextmanager
    async def life(_: Litestar) -> AsyncIterator[None]:
        nonlocal session
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=JSON) as session:
            yield

    @asgi("/v1", is_mount=True, copy_scope=False)
    async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            body, more = body + message["body"], message["more_body"]
        path = cast(HTTPScope, scope)["path"].rstrip("/")
        async with session.post(url + path, data=body, allow_redirects=False) as response:
            content = await response.read()
        headers = [(b"content-type", response.headers["content-type"].encode())]
        headers.append((b"content-length", b"%d" % len(content)))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": content, "more_body": False})

    return Litestar(route_handlers=[pass_on], lifespan=[life], openapi_config=None)


def serve(url: str, port: int) -> None:
    config = uvicorn.Config(
        app_to(url), port=port, log_level="warning", access_log=False, server_header=False
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
