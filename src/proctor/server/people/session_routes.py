"""A browser's login over HTTP: open a session, look at it, end it; and make a one-time link for another."""

from __future__ import annotations

import time

from litestar import Router, delete, get, post
from litestar.params import FromPath, JSONBody
from litestar.response import Response
from sqlalchemy import Connection

from proctor import __version__
from proctor.api.common import Page
from proctor.api.people import SCOPES
from proctor.api.session import BrowserLogin, LoginCode, NewSession, SessionInfo, build_login_link
from proctor.server.audit.changes import Audit, AuditDependency
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
from proctor.server.people.tokens import ANONYMOUS, Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError, InvalidError, UnauthenticatedError
from proctor.server.requests import (
    LOGS_IN,
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    address_of,
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
    request: HttpRequest,
    data: JSONBody[NewSession],
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Response[SessionInfo]:
    """The answer sets the session's cookie, which no script can read."""
    if was_sent_by_page(request.headers):
        check_same_origin(request.headers, platform.settings.url)
        check_is_kept(request.headers, platform.settings.url)
    address = address_of(request, platform)
    platform.login_throttle.check(address, time.monotonic())
    try:
        opened = await open_session(platform, data, audit)
    except UnauthenticatedError:
        platform.login_throttle.record_failure(address, time.monotonic())
        raise
    seconds = (opened.caller.session_expires_at or 0.0) - time.time()
    cookie = build_session_cookie(platform.settings.url, opened.cookie, seconds)
    return Response(await describe_session(platform, opened.caller), headers={"set-cookie": cookie})


async def open_session(platform: Platform, data: NewSession, audit: Audit) -> OpenedSession:
    if (data.token is None) == (data.code is None):
        raise InvalidError("Send a token or a code, and not both.", field="token")
    holder = None if data.token is None else await caller_from_token(platform, data.token.strip())

    def work(connection: Connection) -> OpenedSession:
        now = time.time()
        if holder is None:
            opened = browser_sessions.open_with_code(connection, data.code or "", now)
        else:
            opened = browser_sessions.open_session(connection, holder, now)
        way = "link" if holder is None else "token"
        audit.add(connection, opened.caller, "login.open", opened.caller.user, {"with": way})
        return opened

    opened = await platform.database.write(work)
    if holder is not None and holder.kind == "first":
        platform.callers.forget()
        await platform.database.read(first_login.remove_used, platform.data)
    return opened


@get("/session", summary="Who is logged in", opt=OPEN)
async def read_login(request: HttpRequest, platform: PlatformDependency) -> Response[SessionInfo]:
    """Also answers if no user is logged in, or the session has ended."""
    try:
        caller = await caller_from_connection(request, platform)
    except UnauthenticatedError:
        removal = {"set-cookie": build_session_cookie(platform.settings.url, "", 0)}
        return Response(SessionInfo(is_over=True, server_version=__version__), headers=removal)
    return Response(await describe_session(platform, caller))


async def describe_session(platform: Platform, caller: Caller) -> SessionInfo:
    if caller.is_anonymous or caller.kind != "user":  # a run must not learn who else its owner works with
        return SessionInfo(server_version=__version__)
    return SessionInfo(
        user=await platform.database.read(records.find_user, caller.user),
        teams=records.list_memberships(caller),
        scopes=[scope for scope in SCOPES if scope in caller.scopes],
        expires_at=caller.session_expires_at or caller.expires_at,
        server_version=__version__,
    )


@delete("/session", summary="Log out: end the browser's session", status_code=204, opt=OPEN)
async def log_out(
    request: HttpRequest, platform: PlatformDependency, audit: AuditDependency
) -> Response[None]:
    """Its cookie is removed even if the session was already over."""
    cookie = find_session_cookie(request.headers, platform.settings.url)
    if cookie:
        check_same_origin(request.headers, platform.settings.url)
        try:
            caller = await caller_from_session(platform, cookie)
        except UnauthenticatedError:
            caller = ANONYMOUS
        target = caller.user or None  # nothing ends if the session was over
        ended = audit.of(caller, "login.end", lambda _: target, browser_sessions.end_session)
        await platform.database.write(ended, caller.session_id)
        platform.callers.forget()
    removal = build_session_cookie(platform.settings.url, "", 0)
    return Response(None, status_code=204, headers={"set-cookie": removal})


@post("/session/codes", summary="A one-time link that logs in a browser as you", status_code=200)
async def add_login_code(
    caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> LoginCode:
    caller.need("environments:read")
    if caller.kind != "user":
        raise ForbiddenError(f"This is the token of a {caller.kind}, not of a user.")
    now = time.time()
    work = audit.of(caller, "login.link", caller.user, browser_sessions.add_code)
    code = await platform.database.write(work, caller.token_id, now)
    return LoginCode(
        code=code,
        url=build_login_link(platform.settings.url, code),
        expires_at=now + browser_sessions.CODE_SECONDS,
    )


@get("/logins", summary="The browsers that are logged in as you")
async def list_logins(caller: CallerDependency, platform: PlatformDependency) -> Page[BrowserLogin]:
    caller.need("environments:read")
    return Page(await platform.database.read(browser_sessions.list_logins, caller, time.time()))


@delete("/logins/{login_id:str}", summary="Log out one of your browsers")
async def end_login(
    login_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    if login_id != caller.session_id:  # a session may always end itself
        caller.need("tokens:write")
    work = audit.of(caller, "login.end", caller.user, browser_sessions.end_login)
    await platform.database.write(work, caller.user, login_id)
    platform.callers.forget()


router = Router(
    "",
    route_handlers=[log_in, read_login, log_out, add_login_code, list_logins, end_login],
    tags=["people"],
)
