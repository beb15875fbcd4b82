"""The reading routes over HTTP: each handler of reading/routes.py, with the library of its caller.

A run that was shared by link is read with the link, in the query or as a header, instead of a token.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from typing import cast

import msgspec
from litestar import Router, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Response, Stream

from proctor.api.common import LINK_HEADER
from proctor.api.field_problems import decode_query
from proctor.reading.exchange import JSON, Download, ReadingRoute, ReadRequest
from proctor.reading.routes import READING_ROUTES, RUN
from proctor.server.openapi.described import describe
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError
from proctor.server.quotas import Shares
from proctor.server.request_fields import with_query
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency
from proctor.server.runs.sharing import as_reader
from proctor.server.runs.streams import counted_stream, name_reader, still_reads

LINK = "link"
SHARED = ("/diff", "/compare")
"""Routes besides those of one run that take a link."""

_encode = msgspec.json.Encoder().encode


def build_handler(route: ReadingRoute) -> HTTPRouteHandler:
    takes_link = route.path.startswith(RUN) or route.path in SHARED

    async def handle(
        request: HttpRequest, caller: CallerDependency, platform: PlatformDependency
    ) -> Response[bytes] | Stream:
        link = find_link(request) if takes_link else ""
        reader = as_reader(caller, link)
        asked = ReadRequest(
            {name: str(value) for name, value in request.path_params.items()},
            None if route.query is None else decode_query(list_pairs(request, takes_link), route.query),
        )
        shares = platform.exports if route.writes_files else None
        name = name_reader(caller)
        async with AsyncExitStack() as stack:
            if shares is not None:
                stack.enter_context(shares.taking(name))
            else:
                await stack.enter_async_context(platform.reads.turn(name))
            answer = await route.handler(platform.reading.library(reader, link), asked)
        if not isinstance(answer, Download):
            return Response(_encode(answer), media_type=JSON)
        if isinstance(answer.body, bytes):
            return Response(answer.body, media_type=answer.media_type, headers=dict(answer.headers))
        chunks = cast("AsyncGenerator[bytes, None]", answer.body)
        if route.computes_stream:
            chunks = in_turns(platform, name, chunks)
        if "run_id" in asked.path:
            chunks = while_readable(platform, caller, asked.path["run_id"], link, chunks)
        if shares is not None:
            chunks = while_counted(shares, caller, chunks)
        stream = counted_stream(platform, caller, chunks)
        return Stream(stream, media_type=answer.media_type, headers=dict(answer.headers))

    handle.__name__ = route.name
    return get(
        route.path.replace("}", ":str}"),
        operation_id=route.name,
        summary=route.summary,
        media_type=route.media_type,
        opt={
            **(describe(is_file=True) if route.answer is bytes else describe(response=route.answer)),
            **with_query(route.query, (LINK,) if takes_link else ()),
        },
    )(handle)


def list_pairs(request: HttpRequest, takes_link: bool) -> Iterator[tuple[str, str]]:
    """The query parameters, without the link."""
    for name, value in request.query_params.multi_items():
        if name != LINK or not takes_link:
            yield name, value


def find_link(request: HttpRequest) -> str:
    return str(request.query_params.get(LINK) or request.headers.get(LINK_HEADER, ""))


async def while_readable(
    platform: Platform, caller: Caller, run_id: str, link: str, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Chunks of a run's rows, broken off where their reader may no longer read them: a part must not look
    whole."""
    refusals: list[ApiError] = []
    with platform.watch.guard(caller, still_reads(platform, run_id, link), refusals.append):
        async with aclosing(chunks) as pieces:
            async for piece in pieces:
                if refusals:
                    raise refusals[0]
                yield piece


async def in_turns(
    platform: Platform, reader: str, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Chunks, each of which is computed when it is its reader's turn."""
    async with aclosing(chunks) as pieces:
        while True:
            async with platform.reads.turn(reader, is_chunk=True):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece


async def while_counted(
    shares: Shares, caller: Caller, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Chunks of a file that exists until they were sent, and counts as long."""
    with shares.counting(name_reader(caller)):
        async with aclosing(chunks) as pieces:
            async for piece in pieces:
                yield piece


router = Router("", route_handlers=[build_handler(route) for route in READING_ROUTES], tags=["runs"])
