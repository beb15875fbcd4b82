"""Give each request an id, which its log lines and its answer carry.

A proxy in front may have given it one already. Knows nothing of routes, except where they name a run.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable
from typing import Any

from proctor.server.dashboard import Application, Message, Scope, Send
from proctor.support.structured_logs import REQUEST_ID, RUN_ID

HEADER = b"x-request-id"
VALID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
"""Ids of others are taken as they are: a log line must not hold what a stranger wrote."""
RUN = re.compile(r"/runs/([A-Za-z0-9_-]{1,64})(?:/|$)")


def with_request_ids(app: Application) -> Application:
    """An application whose requests have an id of their own."""

    async def serve(scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        request_id = given_id(scope) or secrets.token_hex(8)
        REQUEST_ID.set(request_id)
        named = RUN.search(scope["path"])
        RUN_ID.set(named[1] if named else "")

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = message.get("headers", [])
                if HEADER not in dict(headers):  # else it is a provider's, which its support asks for
                    message = {**message, "headers": [*headers, (HEADER, request_id.encode())]}
            return send(message)

        await app(scope, receive, send_with_id)

    return serve


def given_id(scope: Scope) -> str:
    given: bytes = dict(scope["headers"]).get(HEADER, b"")
    return given.decode() if VALID.fullmatch(given) else ""
