"""Users, teams and tokens over HTTP."""

from __future__ import annotations

from litestar import Router, delete, get, patch, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.status_codes import HTTP_201_CREATED
from sqlalchemy import Connection

from proctor import __version__
from proctor.api.common import Page
from proctor.api.people import (
    Member,
    Membership,
    NewTeam,
    NewToken,
    NewUser,
    Team,
    Token,
    TokenWithSecret,
    User,
    UserWithToken,
    Whoami,
)
from proctor.server.people import first_login, records
from proctor.server.people.tokens import default_scopes, make_token
from proctor.server.problems import ForbiddenError
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
    request: HttpRequest, data: JSONBody[NewUser], caller: CallerDependency, platform: PlatformDependency
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

    return await run_idempotent(request, platform, caller, work, UserWithToken)


@get("/users", summary="All users")
async def list_users(caller: CallerDependency, platform: PlatformDependency) -> Page[User]:
    caller.need_admin()
    return Page(await platform.database.read(records.list_users))


@patch("/users/{name:str}", summary="Disable or re-enable a user")
async def change_user(
    name: FromPath[str], caller: CallerDependency, platform: PlatformDependency, disabled: FromQuery[bool]
) -> User:
    caller.need_admin()
    user = await platform.database.write(records.disable_user, name, disabled)
    platform.callers.forget()
    if disabled:
        await platform.runs.sweep()  # ends what they started
    return user


@post("/teams", summary="Found a team; the founder is its admin")
async def add_team(
    request: HttpRequest, data: JSONBody[NewTeam], caller: CallerDependency, platform: PlatformDependency
) -> Team:
    caller.need("environments:write")
    start = None if platform.ledger_start is None else 0
    team = await run_idempotent(
        request,
        platform,
        caller,
        lambda connection: records.add_team(connection, data.name, caller.user, start),
        Team,
    )
    platform.callers.forget()
    return team


@get("/teams", summary="Your teams")
async def list_teams(caller: CallerDependency) -> Page[Membership]:
    caller.need("environments:read")
    return Page(records.list_memberships(caller))


@get("/teams/{team:str}/members", summary="The members of a team")
async def list_members(
    team: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[Member]:
    caller.need("environments:read")

    def work(connection: Connection) -> list[Member]:
        records.need_team(connection, caller, team)
        return records.list_members(connection, team)

    return Page(await platform.database.read(work))


@put("/teams/{team:str}/members", summary="Add a user to a team, or change their role")
async def put_member(
    team: FromPath[str], data: JSONBody[Member], caller: CallerDependency, platform: PlatformDependency
) -> Member:
    caller.need("environments:write")

    def work(connection: Connection) -> Member:
        records.need_team(connection, caller, team, to_change=True)
        return records.put_member(connection, team, data)

    member = await platform.database.write(work)
    platform.callers.forget()
    return member


@delete("/teams/{team:str}/members/{user:str}", summary="Remove a user from a team")
async def remove_member(
    team: FromPath[str], user: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    caller.need("environments:write")

    def work(connection: Connection) -> None:
        records.need_team(connection, caller, team, to_change=user != caller.user)
        records.remove_member(connection, team, user)

    await platform.database.write(work)
    platform.callers.forget()
    await platform.runs.sweep()  # ends what they started for the team


@post("/tokens", summary="Create a token; its secret is returned only once", status_code=HTTP_201_CREATED)
async def add_token(
    request: HttpRequest, data: JSONBody[NewToken], caller: CallerDependency, platform: PlatformDependency
) -> TokenWithSecret:
    is_first = caller.kind == "first"
    if not is_first:
        caller.need("tokens:write")

    def work(connection: Connection) -> TokenWithSecret:
        add = first_login.exchange if is_first else records.add_token
        made = add(connection, caller, data)
        return TokenWithSecret(token=made.token, secret=made.secret)

    made = await run_idempotent(request, platform, caller, work, TokenWithSecret)
    if is_first:
        platform.callers.forget()
        await platform.database.read(first_login.remove_used, platform.data)
    return made


@get("/tokens", summary="One's tokens")
async def list_tokens(caller: CallerDependency, platform: PlatformDependency) -> Page[Token]:
    caller.need("tokens:write")
    return Page(await platform.database.read(records.list_tokens, caller.user))


@delete("/tokens/{token_id:str}", summary="Revoke a token at once")
async def revoke_token(
    token_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    if token_id != caller.token_id:  # the holder of a token may always revoke it
        caller.need("tokens:write")
    await platform.database.write(records.revoke_token, caller, token_id)
    platform.callers.forget()


router = Router(
    "",
    route_handlers=[
        whoami,
        add_user,
        list_users,
        change_user,
        add_team,
        list_teams,
        list_members,
        put_member,
        remove_member,
        add_token,
        list_tokens,
        revoke_token,
    ],
    tags=["people"],
)
