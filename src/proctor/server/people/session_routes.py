"""A browser's login over HTTP: open a session, look at it, end it; and make a one-time link for another."""

from __future__ import annotations

import time

from litestar import Router, delete, get, post
from litestar.params import JSONBody
from litestar.response import Response

from proctor import __version__
from proctor.api.people import SCOPES
from proctor.api.session import LoginCode, NewSession, SessionInfo, build_login_link
from proctor.server.browser_requests import (
    build_session_cookie,
    check_is_kept,
    check_same_origin,
    find_session_cookie,
    was_sent_by_page,
)
from proctor.server.openapi.described import OPEN
from proctor.server.people import browser_sessions, first_login, records
from proctor.server.people.browser_sessions import OpenedSession
from proctor.server.people.guesses import find_client_address
from proctor.server.people.tokens import ANONYMOUS, Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError, InvalidError, UnauthenticatedError
from proctor.server.requests import (
    LOGS_IN,
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    caller_from_connection,
    caller_from_session,
    caller_from_token,
)


@post(
    "/session",
    summary="Log in a browser with a token or a one-time code",
    status_code=200,
    opt={**LOGS_IN, **OPEN},
)
async def log_in(
    request: HttpRequest, data: JSONBody[NewSession], platform: PlatformDependency
) -> Response[SessionInfo]:
    """The answer sets the session's cookie, which no script can read."""
    if was_sent_by_page(request.headers):
        check_same_origin(request.headers, platform.settings.url)
        check_is_kept(request.headers, platform.settings.url)
    address = find_client_address(
        request.client.host if request.client else "",
        request.headers,
        platform.settings.connections.trusted_proxies,
    )
    platform.guesses.check(address, time.monotonic())
    try:
        opened = await open_session(platform, data)
    except UnauthenticatedError:
        platform.guesses.record_failure(address, time.monotonic())
        raise
    seconds = (opened.caller.session_expires_at or 0.0) - time.time()
    cookie = build_session_cookie(platform.settings.url, opened.cookie, seconds)
    return Response(await describe_session(platform, opened.caller), headers={"set-cookie": cookie})


async def open_session(platform: Platform, data: NewSession) -> OpenedSession:
    if (data.token is None) == (data.code is None):
        raise InvalidError("Send a token or a code, and not both.", field="token")
    if data.code is not None:
        return await platform.database.write(browser_sessions.open_with_code, data.code, time.time())
    caller = await caller_from_token(platform, (data.token or "").strip())
    opened = await platform.database.write(browser_sessions.open_session, caller, time.time())
    if caller.kind == "first":
        platform.callers.forget()
        await platform.database.read(first_login.remove_used, platform.data)
    return opened


@get("/session", summary="Who is logged in", opt=OPEN)
async def read_login(request: HttpRequest, platform: PlatformDependency) -> Response[SessionInfo]:
    """Answers also if nobody is, or their session is over."""
    try:
        caller = await caller_from_connection(request, platform)
    except UnauthenticatedError:
        removal = {"set-cookie": build_session_cookie(platform.settings.url, "", 0)}
        return Response(await describe_session(platform, ANONYMOUS), headers=removal)
    return Response(await describe_session(platform, caller))


async def describe_session(platform: Platform, caller: Caller) -> SessionInfo:
    if caller.is_anonymous or not caller.user:
        return SessionInfo(server_version=__version__)
    return SessionInfo(
        user=await platform.database.read(records.find_user, caller.user),
        teams=records.list_memberships(caller),
        scopes=[scope for scope in SCOPES if scope in caller.scopes],
        expires_at=caller.session_expires_at or caller.expires_at,
        server_version=__version__,
    )


@delete("/session", summary="Log out: end the browser's session", status_code=204, opt=OPEN)
async def log_out(request: HttpRequest, platform: PlatformDependency) -> Response[None]:
    """Its cookie is removed even if the session was already over."""
    cookie = find_session_cookie(request.headers, platform.settings.url)
    if cookie:
        check_same_origin(request.headers, platform.settings.url)
        try:
            caller = await caller_from_session(platform, cookie)
        except UnauthenticatedError:
            caller = ANONYMOUS
        await platform.database.write(browser_sessions.end_session, caller.session_id)
        platform.callers.forget()
    removal = build_session_cookie(platform.settings.url, "", 0)
    return Response(None, status_code=204, headers={"set-cookie": removal})


@post("/session/codes", summary="A one-time link that logs in a browser as you", status_code=200)
async def add_login_code(caller: CallerDependency, platform: PlatformDependency) -> LoginCode:
    caller.need("environments:read")
    if caller.kind != "user":
        raise ForbiddenError(f"This is the token of a {caller.kind}, not of a user.")
    now = time.time()
    code = await platform.database.write(browser_sessions.add_code, caller.token_id, now)
    return LoginCode(
        code=code,
        url=build_login_link(platform.settings.url, code),
        expires_at=now + browser_sessions.CODE_SECONDS,
    )


router = Router("", route_handlers=[log_in, read_login, log_out, add_login_code], tags=["people"])
