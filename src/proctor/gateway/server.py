"""The HTTP server behind all doors of a process: keys, paths, bodies, streams.

Imported when the first door is opened, not before: the server costs more to import than most runs take to
begin. Knows nothing of rollouts but that a key leads to a visit.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

from aiohttp import web

from proctor.errors import ModelError
from proctor.gateway import chat_wire, messages_wire, responses_wire
from proctor.gateway.failures import BROKEN, NO_KEY, NOT_FOUND, TOO_LARGE, refusal_of
from proctor.gateway.visit import GatewaySession
from proctor.gateway.wire import Answer, Body, GatewayRefusedError, ModelRequest, Refusal, Wire, encode_json
from proctor.support.logs import log

LARGEST_BODY = 64 * 2**20
QUIET_SECONDS = 15.0
"""How long a stream may say nothing: then it begins, even if nobody knows yet whether it will end well."""
CLOSING_SECONDS = 1.0
LONGEST_SOCKET_PATH = 100
"""The system refuses names of sockets that are a little longer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CHAT = cast(Wire, chat_wire)
RESPONSES = cast(Wire, responses_wire)
MESSAGES = cast(Wire, messages_wire)


class GatewayServer:
    """Listens on this machine only: on a port, and on a socket for who has no network."""

    def __init__(self, visits: Mapping[str, GatewaySession]) -> None:
        self._visits = visits
        self._folder = create_socket_folder()
        self._runner = web.AppRunner(
            self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
        )
        self.url = ""
        self.socket = str(self._folder / "door")

    async def start(self) -> None:
        await self._runner.setup()
        await web.UnixSite(self._runner, self.socket).start()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port = next(address[1] for address in self._runner.addresses if isinstance(address, tuple))
        self.url = f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        await self._runner.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        for version in ("/v1", ""):
            app.router.add_post(f"{version}/chat/completions", wrap_handler(CHAT, self._answer))
            app.router.add_post(f"{version}/responses", wrap_handler(RESPONSES, self._answer))
            app.router.add_post(f"{version}/messages", wrap_handler(MESSAGES, self._answer))
            app.router.add_post(f"{version}/messages/count_tokens", wrap_handler(MESSAGES, self._count))
            app.router.add_get(f"{version}/models", wrap_handler(CHAT, self._list))
            app.router.add_get(f"{version}/models/{{id:.+}}", wrap_handler(CHAT, self._show))
        app.router.add_route("*", "/{path:.*}", wrap_handler(CHAT, answer_not_found))
        return app

    async def _answer(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        visit = self._visit(request)
        asked = wire.read(await request.read())
        if asked.stream:
            return await stream_answer(request, wire, asked, visit)
        return json_response(wire.answer(asked, await visit.ask(asked)))

    async def _count(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        self._visit(request)
        return json_response(messages_wire.count_tokens(wire.read(await request.read())))

    async def _list(self, request: web.Request, _: Wire) -> web.StreamResponse:
        model = describe_model(self._visit(request).model)
        ends = {"has_more": False, "first_id": model["id"], "last_id": model["id"]}
        return json_response({"object": "list", "data": [model], **ends})

    async def _show(self, request: web.Request, _: Wire) -> web.StreamResponse:
        return json_response(describe_model(self._visit(request).model))

    def _visit(self, request: web.Request) -> GatewaySession:
        bearer = request.headers.get("Authorization", "")
        for key in (request.headers.get("x-api-key", ""), bearer.removeprefix("Bearer ").strip()):
            if visit := self._visits.get(key):
                return visit
        raise GatewayRefusedError(NO_KEY)


def wrap_handler(wire: Wire, handle: Callable[[web.Request, Wire], Awaitable[web.StreamResponse]]) -> Handler:
    """A handler that says no in the wire's own words."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handle(request, wire)
        except GatewayRefusedError as error:
            return refusal_response(wire, error.refusal)
        except ModelError as error:
            return refusal_response(wire, refusal_of(error))
        except web.HTTPRequestEntityTooLarge:
            return refusal_response(wire, TOO_LARGE)
        except (ConnectionError, asyncio.CancelledError):  # the program is gone
            raise
        except Exception:
            log.exception("the gateway broke over %s %s", request.method, request.path)
            return refusal_response(wire, BROKEN)

    return answer


async def stream_answer(
    request: web.Request, wire: Wire, asked: ModelRequest, visit: GatewaySession
) -> web.StreamResponse:
    """The answer as a stream. As long as it may still fail quietly, it is waited for with the status open."""
    asking = asyncio.ensure_future(visit.ask(asked))
    try:
        await asyncio.wait({asking}, timeout=QUIET_SECONDS)
        if asking.done():
            asking.result()  # a failure still has a status of its own
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "cache-control": "no-cache"}
        )
        await response.prepare(request)
        while not asking.done():
            await response.write(wire.KEEP_ALIVE)
            await asyncio.wait({asking}, timeout=QUIET_SECONDS)
        for event in encode_stream(wire, asked, asking):
            await response.write(event)
        await response.write_eof()
        return response
    finally:
        asking.cancel()


def encode_stream(wire: Wire, asked: ModelRequest, asking: asyncio.Future[Answer]) -> list[bytes]:
    try:
        return list(wire.events(asked, wire.answer(asked, asking.result())))
    except GatewayRefusedError as error:
        return [wire.broken_off(error.refusal)]
    except ModelError as error:
        return [wire.broken_off(refusal_of(error))]


async def answer_not_found(request: web.Request, _: Wire) -> web.StreamResponse:
    wire = MESSAGES if "anthropic-version" in request.headers else CHAT
    return refusal_response(wire, NOT_FOUND)


def json_response(body: Body, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=encode_json(body), status=status, headers=headers, content_type="application/json"
    )


def refusal_response(wire: Wire, refusal: Refusal) -> web.Response:
    wait = refusal.retry_after_seconds
    headers = {} if wait is None else {"retry-after": str(math.ceil(wait))}
    return json_response(wire.refusal(refusal), refusal.status, headers)


def describe_model(model: str) -> Body:
    """A model, in the words of both APIs that list them."""
    ours = {"id": model, "object": "model", "created": 0, "owned_by": "proctor"}
    return {**ours, "type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"}


def create_socket_folder() -> Path:
    """A folder that is nobody else's, with a short name."""
    folder = tempfile.mkdtemp(prefix="proctor-")
    if len(folder) > LONGEST_SOCKET_PATH:
        shutil.rmtree(folder)
        folder = tempfile.mkdtemp(prefix="proctor-", dir="/tmp")
    return Path(folder)
