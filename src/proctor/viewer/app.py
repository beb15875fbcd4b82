"""The web application of `proctor view`: the reading routes over a library, and the dashboard's pages.

Knows aiohttp. Knows nothing of folders or terminals.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, cast

import msgspec
from aiohttp import web

from proctor import __version__
from proctor.api.common import BASE, PROBLEM_TYPE, Problem, complete_problem
from proctor.api.field_problems import decode_query
from proctor.api.refusals import ApiError, NotFoundError
from proctor.api.session import SessionInfo
from proctor.errors import ProctorError
from proctor.pages.files import BuiltPages
from proctor.pages.security_headers import SAFE_HEADERS
from proctor.reading.exchange import JSON, Download, ReadingRoute, ReadRequest
from proctor.reading.library import RunLibrary
from proctor.reading.routes import READING_ROUTES
from proctor.support.logs import log
from proctor.viewer.guard import find_refusal

API_HEADERS = {"cache-control": "no-store", **SAFE_HEADERS}
CODES = {403: "forbidden", 405: "method_not_allowed", 421: "misdirected_request"}
AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_encode = msgspec.json.Encoder().encode


def build_app(library: RunLibrary, pages: BuiltPages) -> web.Application:
    app = web.Application(middlewares=[guard_requests])
    for route in READING_ROUTES:
        app.router.add_get(BASE + route.path, build_handler(route, library))
    app.router.add_get(BASE + "/session", get_session)
    app.router.add_route("*", "/{path:.*}", build_page_handler(pages))
    return app


@web.middleware
async def guard_requests(request: web.Request, handler: AiohttpHandler) -> web.StreamResponse:
    """Refuse what other sites ask for, and turn every failure into a problem."""
    refusal = find_refusal(request.method, request.path, request.headers)
    if refusal is not None:
        status, message = refusal
        return problem_response(Problem(CODES[status], message), status)
    try:
        return await handler(request)
    except ApiError as error:
        return problem_response(error.problem, error.status)
    except ProctorError as error:
        return problem_response(Problem("internal", str(error)), 500)
    except (web.HTTPException, ConnectionError):
        raise
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        message = "This request could not be answered; the terminal of proctor view says why."
        return problem_response(Problem("internal", message), 500)


def problem_response(problem: Problem, status: int) -> web.Response:
    return web.Response(
        status=status,
        body=_encode(complete_problem(problem, status)),
        headers={**API_HEADERS, "content-type": PROBLEM_TYPE},
    )


def json_response(value: Any) -> web.Response:
    return web.Response(body=_encode(value), headers={**API_HEADERS, "content-type": JSON})


# The API


def build_handler(route: ReadingRoute, library: RunLibrary) -> AiohttpHandler:
    async def handle(request: web.Request) -> web.StreamResponse:
        query = None if route.query is None else decode_query(request.query.items(), route.query)
        answer = await route.handler(library, ReadRequest(request.match_info, query))
        if not isinstance(answer, Download):
            return json_response(answer)
        headers = {**API_HEADERS, **answer.headers, "content-type": answer.media_type}
        if isinstance(answer.body, bytes):
            return web.Response(body=answer.body, headers=headers)
        return await send_stream(request, answer.body, headers)

    return handle


async def send_stream(
    request: web.Request, chunks: AsyncIterator[bytes], headers: dict[str, str]
) -> web.StreamResponse:
    """Send chunks as they come. If the browser goes away, so does whatever makes them."""
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with suppress(ConnectionResetError):  # the reader has gone
        async with aclosing(cast(AsyncGenerator[bytes, None], chunks)) as stream:
            async for chunk in stream:
                await response.write(chunk)
        await response.write_eof()
    return response


async def get_session(_: web.Request) -> web.Response:
    return json_response(SessionInfo(server_version=__version__, has_logins=False))


# The pages


def build_page_handler(pages: BuiltPages) -> AiohttpHandler:
    async def handle(request: web.Request) -> web.StreamResponse:
        headers = request.headers
        answer = pages.answer(
            request.path,
            accept=headers.get("accept", ""),
            accept_encoding=headers.get("accept-encoding", ""),
            known_tag=headers.get("if-none-match", ""),
        )
        if answer is None:
            raise NotFoundError(f"proctor view has nothing at {request.path[:200]}.")
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body or None)

    return handle
