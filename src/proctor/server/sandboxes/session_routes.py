"""Served environments over HTTP, for HostedRuntime."""

from __future__ import annotations

from typing import Any

from litestar import Router, WebSocket, delete, get, post, websocket
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.sandboxes import NewServedSession, ServedSession
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.problems import ApiError
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    caller_from_headers,
    run_idempotent,
)
from proctor.server.sandboxes import proxy, records
from proctor.server.sandboxes.routes import watching


@post("/", summary="Serve an environment for one rollout")
async def add_session(
    request: HttpRequest,
    data: JSONBody[NewServedSession],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> ServedSession:
    caller.need("runs:write")
    sessions = platform.sessions
    published = await platform.database.read(sessions.find, caller, data.environment)
    await platform.sandboxes.choose("bubblewrap")

    def work(connection: Connection) -> ServedSession:
        return sessions.add(connection, caller, data)

    made = await run_idempotent(request, platform, caller, work, ServedSession)
    await sessions.begin(made.id, published)
    return made


@get("/", summary="Your served environments")
async def list_sessions(
    caller: CallerDependency,
    platform: PlatformDependency,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[ServedSession]:
    caller.need("runs:write")
    after: Any = decode_cursor(cursor, float, str)
    rows = await platform.database.read(records.list_rows, caller, "session", after, check_limit(limit))
    return build_page(
        [records.build_session(row, None) for row in rows], limit, lambda made: (made.created_at, made.id)
    )


@get("/{session:str}", summary="The status of a served environment")
async def show_session(
    session: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> ServedSession:
    caller.need("runs:write")
    await platform.database.read(records.find_visible, caller, "session", session)
    await platform.sandboxes.look(session)
    return platform.sessions.describe(await platform.database.read(records.find_row, session))


@delete("/{session:str}", summary="End a served environment")
async def end_session(session: FromPath[str], caller: CallerDependency, platform: PlatformDependency) -> None:
    caller.need("runs:write")
    await platform.database.read(records.find_visible, caller, "session", session)
    await platform.sessions.end(session)


@websocket("/{session:str}/tunnel")
async def tunnel(
    socket: WebSocket[Any, Any, Any], session: FromPath[str], platform: PlatformDependency
) -> None:
    try:
        caller = await caller_from_headers(socket.headers, platform)
        caller.need("runs:write")
        await platform.database.read(records.find_visible, caller, "session", session)
        live = await platform.sandboxes.find_ready(session)
    except ApiError as error:
        await socket.close(proxy.REFUSED + error.status, str(error))
        return
    assert live.socket is not None
    await proxy.carry_bytes(socket, live.socket, watching(platform, caller, session, "session"))


router = Router(
    "/runtime/sessions",
    route_handlers=[add_session, list_sessions, show_session, end_session, tunnel],
    tags=["sessions"],
)
