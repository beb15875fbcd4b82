"""Users, teams and tokens in the database. Knows nothing of HTTP."""

from __future__ import annotations

import time
from typing import Any

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from proctor.api.common import is_slug, new_id
from proctor.api.people import Member, Membership, NewToken, NewUser, Team, Token, User
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import accounts, members, namespaces, teams, tokens, users
from proctor.server.names import check_name
from proctor.server.people.tokens import Caller, CreatedToken, default_scopes, make_token
from proctor.server.problems import ConflictError, ForbiddenError, InvalidError, NotFoundError

DAY = 86_400.0
MOST_TEAMS = 50
"""How many teams one user may be an admin of, and therefore found."""
RESERVED = frozenset({"admin", "api", "me", "proctor", "simple", "v1", "docs", "schema", "static"})


def add_user(connection: Connection, new: NewUser, balance: int | None = None) -> User:
    claim_name(connection, new.name, "user", balance)
    row = {"id": new_id("usr"), "name": new.name, "is_admin": new.is_admin, "created_at": time.time()}
    connection.execute(insert(users).values(row))
    return User(**row)  # type: ignore[arg-type]


def add_team(connection: Connection, name: str, founder: str, balance: int | None = None) -> Team:
    """A team starts with nothing where balances are limited: founding one must not create money."""
    refuse_many_teams(connection, founder)
    claim_name(connection, name, "team", balance)
    row = {"id": new_id("team"), "name": name, "created_at": time.time()}
    connection.execute(insert(teams).values(row))
    connection.execute(insert(members).values(team=name, user=founder, role="admin"))
    return Team(**row)  # type: ignore[arg-type]


def claim_name(connection: Connection, name: str, kind: str, balance: int | None) -> None:
    """Names are permanent: environments are found by them."""
    if not is_slug(name):
        raise InvalidError(
            f"{name!r} is not a valid name; use up to 39 lowercase letters, digits and hyphens.", field="name"
        )
    taken = connection.execute(select(namespaces.c.name).where(namespaces.c.name == name)).first()
    if taken is not None or name in RESERVED:  # does not reveal what has the name
        raise ConflictError(f"The name {name!r} is not available; choose another.", code="name_taken")
    connection.execute(insert(namespaces).values(name=name, kind=kind))
    connection.execute(insert(accounts).values(owner=name, balance=balance, spent=0))


def refuse_many_teams(connection: Connection, founder: str) -> None:
    """Founding a team reveals whether a name is free, so the limit on teams also limits guesses."""
    query = select(func.count()).where(members.c.user == founder, members.c.role == "admin")
    if connection.execute(query).scalar_one() >= MOST_TEAMS:
        raise ConflictError(
            f"You are an admin of {MOST_TEAMS} teams, which is the limit; hand one over first.",
            code="too_many_teams",
        )


def find_user(connection: Connection, name: str) -> User:
    row = connection.execute(select(users).where(users.c.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no user {name!r}.")
    return describe_user(row)


def describe_user(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        is_admin=row.is_admin,
        created_at=row.created_at,
        disabled=row.disabled_at is not None,
    )


def list_users(connection: Connection) -> list[User]:
    seen = (
        select(tokens.c.user, func.max(tokens.c.last_used_at).label("at"))
        .where(tokens.c.kind == "user")
        .group_by(tokens.c.user)
        .subquery()
    )
    query = select(users, seen.c.at).outerjoin(seen, seen.c.user == users.c.name).order_by(users.c.name)
    return [replace(describe_user(row), last_seen_at=row.at) for row in connection.execute(query)]


def disable_user(connection: Connection, name: str, disabled: bool) -> User:
    find_user(connection, name)
    lock_admins(connection)
    moment = time.time() if disabled else None
    connection.execute(update(users).where(users.c.name == name).values(disabled_at=moment))
    check_server_has_admin(connection)
    return find_user(connection, name)


def set_server_admin(connection: Connection, name: str, is_admin: bool) -> User:
    """A new admin needs a new token: those they have lack the scope."""
    find_user(connection, name)
    lock_admins(connection)
    connection.execute(update(users).where(users.c.name == name).values(is_admin=is_admin))
    check_server_has_admin(connection)
    return find_user(connection, name)


def lock_admins(connection: Connection) -> None:
    """Two admins who suspend each other at the same moment do so one after the other."""
    connection.execute(select(users.c.id).where(users.c.is_admin).order_by(users.c.id).with_for_update())


def check_server_has_admin(connection: Connection) -> None:
    left = select(users.c.id).where(users.c.is_admin, users.c.disabled_at.is_(None))
    if connection.execute(left.limit(1)).first() is None:
        raise ConflictError(
            "The server would have no admin left; make another user an admin first.", code="last_admin"
        )


def list_admins(connection: Connection, limit: int) -> list[str]:
    """The names of admins who are not suspended."""
    active = select(users.c.name).where(users.c.is_admin, users.c.disabled_at.is_(None))
    return list(connection.execute(active.order_by(users.c.name).limit(limit)).scalars())


def has_users(connection: Connection) -> bool:
    return connection.execute(select(users.c.id).limit(1)).first() is not None


# Teams


def need_team(connection: Connection, caller: Caller, team: str, *, to_change: bool = False) -> None:
    """Refuse callers who are not members of a team, or may not change it; non-members do not learn that it
    exists."""
    role = caller.teams.get(team)
    if role is None and not caller.is_admin:
        raise NotFoundError(f"There is no team {team!r} that you are a member of.")
    exists = connection.execute(select(teams.c.id).where(teams.c.name == team)).first()
    if exists is None:
        raise NotFoundError(f"There is no team {team!r}.")
    if to_change and role != "admin" and not caller.is_admin:
        raise ForbiddenError(f"Only admins of team {team!r} may change it.")


def list_members(connection: Connection, team: str) -> list[Member]:
    query = select(members.c.user, members.c.role).where(members.c.team == team).order_by(members.c.user)
    return [Member(user=row.user, role=row.role) for row in connection.execute(query)]


def lock_team(connection: Connection, team: str) -> Row[Any]:
    """A team whose members change one after the other: two admins cannot remove each other."""
    row = connection.execute(select(teams).where(teams.c.name == team).with_for_update()).one_or_none()
    if row is None:  # deleted or renamed at this moment
        raise NotFoundError(f"There is no team {team!r}.")
    return row


def put_member(connection: Connection, team: str, member: Member) -> Member:
    find_user(connection, member.user)
    lock_team(connection, team)
    connection.execute(delete(members).where(members.c.team == team).where(members.c.user == member.user))
    connection.execute(insert(members).values(team=team, user=member.user, role=member.role))
    check_has_admin(connection, team)
    return member


def remove_member(connection: Connection, team: str, user: str) -> None:
    lock_team(connection, team)
    gone = connection.execute(delete(members).where(members.c.team == team).where(members.c.user == user))
    if not gone.rowcount:
        raise NotFoundError(f"{user!r} is not a member of {team!r}.")
    check_has_admin(connection, team)


def check_has_admin(connection: Connection, team: str) -> None:
    if not any(member.role == "admin" for member in list_members(connection, team)):
        raise ConflictError(f"Team {team!r} would have no admin left.", code="last_admin")


def list_memberships(caller: Caller) -> list[Membership]:
    return [Membership(team=team, role=role) for team, role in sorted(caller.teams.items())]  # type: ignore[arg-type]


# Tokens


def add_token(connection: Connection, caller: Caller, new: NewToken) -> CreatedToken:
    """A token never grants more, or for longer, than the one that creates it."""
    check_name(new.name, "name")
    scopes = new.scopes
    if scopes is None:
        scopes = [scope for scope in default_scopes(False) if scope in caller.scopes]
    if beyond := [scope for scope in scopes if scope not in caller.scopes]:
        raise ForbiddenError(
            f"Your token lacks {', '.join(beyond)}, so it cannot create a token that has it.",
            code="missing_scope",
        )
    days = new.expires_in_days
    if days is not None and days <= 0:
        raise InvalidError("A token cannot expire before it is created.", field="expires_in_days")
    wished = None if days is None else time.time() + days * DAY
    expires_at = min((end for end in (wished, caller.expires_at) if end is not None), default=None)
    return make_token(connection, user=caller.user, name=new.name, scopes=scopes, expires_at=expires_at)


def find_token(connection: Connection, token_id: str) -> Token:
    (token,) = list_valid_tokens(connection, tokens.c.id == token_id)
    return token


def list_tokens(connection: Connection, user: str) -> list[Token]:
    return list_valid_tokens(connection, tokens.c.user == user, tokens.c.kind == "user")


def list_host_tokens(connection: Connection) -> list[Token]:
    """Those that a host may still use."""
    return list_valid_tokens(connection, tokens.c.kind == "host", tokens.c.expires_at > time.time())


def list_valid_tokens(connection: Connection, *which: ColumnElement[bool]) -> list[Token]:
    query = select(tokens).where(*which, tokens.c.revoked_at.is_(None)).order_by(tokens.c.created_at)
    return [struct_from_row(Token, row) for row in connection.execute(query)]


def revoke_token(connection: Connection, caller: Caller, token_id: str) -> str:
    """The caller's own tokens; for admins also those of hosts, which belong to no user. Returns its name."""
    may = (tokens.c.user == caller.user) & (tokens.c.kind == "user")
    if caller.is_admin and "admin" in caller.scopes:
        may |= tokens.c.kind == "host"
    gone = connection.execute(
        update(tokens)
        .where(tokens.c.id == token_id, may, tokens.c.revoked_at.is_(None))
        .values(revoked_at=time.time())
    )
    if not gone.rowcount:
        raise NotFoundError(f"You have no token {token_id!r}.")
    return str(connection.execute(select(tokens.c.name).where(tokens.c.id == token_id)).scalar_one())
