"""Users and tokens over HTTP."""

from __future__ import annotations

import time
from typing import Any

from litestar import Router, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.status_codes import HTTP_201_CREATED
from sqlalchemy import Connection

from proctor import __version__
from proctor.api.common import Page
from proctor.api.people import (
    NewToken,
    NewUser,
    Token,
    TokenWithSecret,
    User,
    UserWithToken,
    Whoami,
)
from proctor.api.session import LoginCode, build_login_link
from proctor.server.audit.changes import Audit, AuditDependency
from proctor.server.people import first_login, invitations, records
from proctor.server.people.tokens import Caller, CreatedToken, default_scopes, make_token
from proctor.server.problems import ForbiddenError, InvalidError
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent

FIRST_TOKEN_DAYS = 90.0


@get("/whoami", summary="The token's user and scopes")
async def whoami(caller: CallerDependency, platform: PlatformDependency) -> Whoami:
    if caller.kind != "first":  # its scopes are those of the token it is exchanged for
        caller.need("environments:read")
    if caller.kind not in ("user", "first"):
        raise ForbiddenError(f"This is the token of a {caller.kind}, not of a user.")
    user = await platform.database.read(records.find_user, caller.user)
    token = await platform.database.read(records.find_token, caller.token_id)
    return Whoami(user=user, token=token, teams=records.list_memberships(caller), server_version=__version__)


@post("/users", summary="Add a user; returns a token to hand over")
async def add_user(
    request: HttpRequest,
    data: JSONBody[NewUser],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> UserWithToken:
    caller.need_admin()
    balance = platform.ledger_start

    def work(connection: Connection) -> UserWithToken:
        user = records.add_user(connection, data, balance)
        made = make_token(
            connection,
            user=user.name,
            name="first",
            scopes=default_scopes(user.is_admin),
            expires_at=user.created_at + FIRST_TOKEN_DAYS * records.DAY,
        )
        return UserWithToken(user=user, token=made.secret)

    added = audit.of(caller, "user.add", data.name, work, {"is_admin": data.is_admin})
    return await run_idempotent(request, platform, caller, added, UserWithToken)


@get("/users", summary="All users")
async def list_users(caller: CallerDependency, platform: PlatformDependency) -> Page[User]:
    caller.need_admin()
    return Page(await platform.database.read(records.list_users))


@patch("/users/{name:str}", summary="Suspend or reactivate a user, or change whether they are an admin")
async def change_user(
    name: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
    disabled: FromQuery[bool | None] = None,
    is_admin: FromQuery[bool | None] = None,
) -> User:
    """The last admin can be neither suspended nor made an ordinary user."""
    caller.need_admin()
    if disabled is None and is_admin is None:
        raise InvalidError("Say what to change: disabled or is_admin.", field="disabled")

    def work(connection: Connection) -> User:
        if is_admin is not None:
            records.set_server_admin(connection, name, is_admin)
            audit.add(connection, caller, "user.admin", name, {"is_admin": is_admin})
        if disabled is not None:
            records.disable_user(connection, name, disabled)
            audit.add(connection, caller, "user.suspend", name, {"disabled": disabled})
        return records.find_user(connection, name)

    user = await platform.database.write(work)
    platform.callers.forget()
    if disabled:
        await platform.runs.sweep()  # ends what they started
    return user


@post(
    "/users/{name:str}/login-links", summary="A one-time link to hand over, which logs in a browser as a user"
)
async def invite_user(
    name: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> LoginCode:
    """It replaces links for this user that were not used."""
    caller.need_admin()

    def work(connection: Connection) -> LoginCode:
        now = time.time()
        code = invitations.add_invitation(connection, name, now)
        link = build_login_link(platform.settings.url, code)
        return LoginCode(code=code, url=link, expires_at=now + invitations.LINK_SECONDS)

    invited = audit.of(caller, "user.invite", name, work)
    link = await run_idempotent(request, platform, caller, invited, LoginCode)
    platform.callers.forget()
    return link


@post("/users/{name:str}/tokens", summary="Create a token for a user; its secret is returned only once")
async def add_token_for_user(
    name: FromPath[str],
    request: HttpRequest,
    data: JSONBody[NewToken],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> TokenWithSecret:
    caller.need_admin()

    def work(connection: Connection) -> TokenWithSecret:
        return hand_over(connection, caller, name, invitations.add_token_for(connection, name, data), audit)

    return await run_idempotent(request, platform, caller, work, TokenWithSecret)


def hand_over(
    connection: Connection, caller: Caller, owner: str, created: CreatedToken, audit: Audit
) -> TokenWithSecret:
    """Record a new token and return it: the only time that its secret is shown."""
    audit.add(connection, caller, "token.add", owner, describe_token(created.token))
    return TokenWithSecret(token=created.token, secret=created.secret)


def describe_token(token: Token) -> dict[str, Any]:
    """What the audit log says about a token."""
    return {"id": token.id, "name": token.name, "scopes": token.scopes, "expires_at": token.expires_at}


@post("/tokens", summary="Create a token; its secret is returned only once", status_code=HTTP_201_CREATED)
async def add_token(
    request: HttpRequest,
    data: JSONBody[NewToken],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> TokenWithSecret:
    is_first = caller.kind == "first"
    if not is_first:
        caller.need("tokens:write")

    def work(connection: Connection) -> TokenWithSecret:
        add = first_login.exchange if is_first else records.add_token
        return hand_over(connection, caller, caller.user, add(connection, caller, data), audit)

    made = await run_idempotent(request, platform, caller, work, TokenWithSecret)
    if is_first:
        platform.callers.forget()
        await platform.database.read(first_login.remove_used, platform.data)
    return made


@get("/tokens", summary="Your tokens")
async def list_tokens(caller: CallerDependency, platform: PlatformDependency) -> Page[Token]:
    caller.need("tokens:write")
    return Page(await platform.database.read(records.list_tokens, caller.user))


@delete("/tokens/{token_id:str}", summary="Revoke a token at once")
async def revoke_token(
    token_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    if token_id != caller.token_id:  # the holder of a token may always revoke it
        caller.need("tokens:write")

    def work(connection: Connection) -> None:
        name = records.revoke_token(connection, caller, token_id)
        audit.add(connection, caller, "token.revoke", caller.user, {"id": token_id, "name": name})

    await platform.database.write(work)
    platform.callers.forget()


router = Router(
    "",
    route_handlers=[
        whoami,
        add_user,
        list_users,
        change_user,
        invite_user,
        add_token_for_user,
        add_token,
        list_tokens,
        revoke_token,
    ],
    tags=["people"],
)
