"""The HTTP server of all sessions in a process: keys, paths, bodies, streams.

Imported with the first session, not before: importing the server takes longer than most runs take to begin.
Knows nothing of rollouts except that each key belongs to a session.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from aiohttp import web

from proctor.errors import ModelError
from proctor.gateway.failures import BROKEN, NO_KEY, NOT_FOUND, TOO_LARGE, refusal_of
from proctor.gateway.live import PieceQueue, stream_answer
from proctor.gateway.session import GatewaySession
from proctor.support.logs import log
from proctor.wires import anthropic_server, chat_server, responses_server
from proctor.wires.codec import encode_json
from proctor.wires.errors import GatewayRefusedError, Refusal
from proctor.wires.wire import Body, ModelRequest, Wire, blank_answer

LARGEST_BODY = 64 * 2**20
CLOSING_SECONDS = 1.0
CODE_HEADER = "x-proctor-code"
"""The code of a refusal; not every wire has a field for it."""
LONGEST_SOCKET_PATH = 100
"""Most systems refuse socket paths that are slightly longer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GatewayServer:
    """Listens on this machine only: on a port, and on a Unix socket for programs without a network."""

    def __init__(self, sessions: Mapping[str, GatewaySession]) -> None:
        self._sessions = sessions
        self._folder = create_socket_folder()
        self._runner = web.AppRunner(
            self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
        )
        self.url = ""
        self.socket = str(self._folder / "http")

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
            for wire in (chat_server.WIRE, responses_server.WIRE, anthropic_server.WIRE):
                app.router.add_post(f"{version}{wire.path}", wrap_handler(wire, self._answer))
            app.router.add_post(
                f"{version}/messages/count_tokens", wrap_handler(anthropic_server.WIRE, self._count)
            )
            app.router.add_get(f"{version}/models", wrap_handler(chat_server.WIRE, self._list))
            app.router.add_get(f"{version}/models/{{id:.+}}", wrap_handler(chat_server.WIRE, self._show))
        app.router.add_route("*", "/{path:.*}", wrap_handler(chat_server.WIRE, answer_not_found))
        return app

    async def _answer(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        session = self._session(request)
        asked = wire.decode_request(await request.read())
        if asked.stream:
            return await send_stream(request, wire, asked, session)
        return json_response(wire.encode_reply(asked, await session.complete(asked)))

    async def _count(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        self._session(request)
        return json_response(anthropic_server.count_tokens(wire.decode_request(await request.read())))

    async def _list(self, request: web.Request, _: Wire) -> web.StreamResponse:
        model = describe_model(self._session(request).model)
        ends = {"has_more": False, "first_id": model["id"], "last_id": model["id"]}
        return json_response({"object": "list", "data": [model], **ends})

    async def _show(self, request: web.Request, _: Wire) -> web.StreamResponse:
        return json_response(describe_model(self._session(request).model))

    def _session(self, request: web.Request) -> GatewaySession:
        bearer = request.headers.get("Authorization", "")
        for key in (request.headers.get("x-api-key", ""), bearer.removeprefix("Bearer ").strip()):
            if session := self._sessions.get(key):
                return session
        raise GatewayRefusedError(NO_KEY)


def wrap_handler(wire: Wire, handle: Callable[[web.Request, Wire], Awaitable[web.StreamResponse]]) -> Handler:
    """A handler that turns errors into refusals in the wire's shape."""

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
            log.exception("the gateway failed on %s %s", request.method, request.path)
            return refusal_response(wire, BROKEN)

    return answer


async def send_stream(
    request: web.Request, wire: Wire, asked: ModelRequest, session: GatewaySession
) -> web.StreamResponse:
    """Send the answer as it is written. It begins late, so that an early failure still has a status of its
    own."""
    blank, pieces = blank_answer(session.model), PieceQueue()
    pending = asyncio.ensure_future(session.complete(asked, blank, pieces))
    response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
    try:
        async for event in stream_answer(wire, asked, blank, pending, pieces):
            if not response.prepared:
                await response.prepare(request)
            await response.write(event)
    except (GatewayRefusedError, ModelError) as error:
        if not response.prepared:
            raise
        refusal = error.refusal if isinstance(error, GatewayRefusedError) else refusal_of(error)
        await response.write(wire.encode_broken_stream(refusal))
    finally:
        pending.cancel()
    await response.write_eof()
    return response


async def answer_not_found(request: web.Request, _: Wire) -> web.StreamResponse:
    wire = anthropic_server.WIRE if "anthropic-version" in request.headers else chat_server.WIRE
    return refusal_response(wire, NOT_FOUND)


def json_response(body: Body, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=encode_json(body), status=status, headers=headers, content_type="application/json"
    )


def refusal_response(wire: Wire, refusal: Refusal) -> web.Response:
    wait = refusal.retry_after_seconds
    headers = {CODE_HEADER: refusal.code, **({} if wait is None else {"retry-after": str(math.ceil(wait))})}
    return json_response(wire.encode_refusal(refusal), refusal.status, headers)


def describe_model(model: str) -> Body:
    """A model, with the fields of both APIs that list models."""
    ours = {"id": model, "object": "model", "created": 0, "owned_by": "proctor"}
    return {**ours, "type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"}


def create_socket_folder() -> Path:
    """A private folder with a short path."""
    folder = tempfile.mkdtemp(prefix="proctor-")
    if len(folder) > LONGEST_SOCKET_PATH:
        shutil.rmtree(folder)
        folder = tempfile.mkdtemp(prefix="proctor-", dir="/tmp")
    return Path(folder)
