"""Permissions on environments.

The owner of its namespace and the server's admins own an environment; a team's admins own the team's
environments, and its members may write them; beyond that, a user or a team may be granted a role on one
environment. Everyone can read public environments. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, or_, select, true

from proctor.api.hub import ROLE_RANK, Role
from proctor.server.db.tables import environments, namespaces, roles, runs
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError, InvalidError, NotFoundError

TEAM_ROLES: dict[str, Role] = {"admin": "owner", "member": "write"}


class Readers(msgspec.Struct, frozen=True, kw_only=True):
    """Who may read one environment."""

    everyone: bool = False
    names: frozenset[str] = frozenset()
    """Of users and teams."""

    def __or__(self, other: Readers) -> Readers:
        return Readers(everyone=self.everyone or other.everyone, names=self.names | other.names)


def role_of(connection: Connection, caller: Caller, environment: Row[Any]) -> Role | None:
    """The caller's role on an environment; None if they may not even know of it."""
    held = list_roles(connection, caller, [environment])[environment.id]
    return held or ("read" if environment.visibility == "public" else None)


def list_roles(connection: Connection, caller: Caller, rows: Iterable[Row[Any]]) -> dict[str, Role | None]:
    """The caller's role on each environment, by its id, beyond what everyone has."""
    rows = list(rows)
    if caller.kind != "user":
        own = environment_of_run(connection, caller)
        return {row.id: "read" if row.id == own else None for row in rows}
    given: dict[str, list[Role]] = {row.id: [] for row in rows}
    query = select(roles).where(
        roles.c.environment_id.in_(given), roles.c.holder.in_(list_namespaces(caller))
    )
    for role in connection.execute(query):
        given[role.environment_id].append(role.role)
    for row in rows:
        given[row.id] += namespace_roles(caller, row.owner)
    return {id_: highest_role(held) for id_, held in given.items()}


def highest_role(held: Iterable[Role]) -> Role | None:
    ranked = sorted(held, key=ROLE_RANK.__getitem__)
    return ranked[-1] if ranked else None


def namespace_roles(caller: Caller, owner: str) -> list[Role]:
    """The role that the owner of a namespace has on everything in it."""
    if caller.is_admin or (caller.user and owner == caller.user):
        return ["owner"]
    return [TEAM_ROLES[caller.teams[owner]]] if owner in caller.teams else []


def environment_of_run(connection: Connection, caller: Caller) -> str | None:
    if caller.kind != "run":
        return None
    return connection.execute(select(runs.c.environment_id).where(runs.c.id == caller.run_id)).scalar()


def list_namespaces(caller: Caller) -> list[str]:
    return [name for name in (caller.user, *caller.teams) if name]


def readable_condition(connection: Connection, caller: Caller) -> ColumnElement[bool]:
    """As a condition: what the caller may read."""
    public = environments.c.visibility == "public"
    if caller.kind != "user":
        return or_(public, environments.c.id == environment_of_run(connection, caller))
    if caller.is_admin:
        return true()
    return or_(public, ownership_condition(caller))


def ownership_condition(caller: Caller) -> ColumnElement[bool]:
    """As a condition: the caller's own, their teams', and what was shared with them."""
    given = select(roles.c.environment_id).where(roles.c.holder.in_(list_namespaces(caller)))
    return or_(environments.c.owner.in_(list_namespaces(caller)), environments.c.id.in_(given))


def find_readers(connection: Connection, slug: str) -> Readers:
    """Who may read an environment now; empty if it does not exist."""
    row = find_environment(connection, *split_slug(slug))
    if row is None:
        return Readers()
    holders = select(roles.c.holder).where(roles.c.environment_id == row.id)
    return Readers(
        everyone=row.visibility == "public",
        names=frozenset({row.owner, *connection.execute(holders).scalars()}),
    )


def check_scope(caller: Caller) -> None:
    """A token without the scope to read has no more access than an anonymous caller."""
    if caller.kind in ("user", "first") and not caller.is_anonymous:
        caller.need("environments:read")


def need_environment(connection: Connection, caller: Caller, slug: str, role: Role = "read") -> Row[Any]:
    """The environment `owner/name`, for a caller with at least that role and a token for it."""
    check_scope(caller)
    row = find_with_role(connection, caller, slug, role)
    if role != "read":
        caller.need("environments:write")
    return row


def find_with_role(connection: Connection, caller: Caller, slug: str, role: Role) -> Row[Any]:
    """The same, whatever the token's scopes are."""
    owner, name = split_slug(slug)
    row = find_environment(connection, owner, name)
    held = role_of(connection, caller, row) if row is not None else None
    if row is None or held is None:
        advice = describe_next_step(caller, owner)
        raise NotFoundError(f"There is no environment {owner}/{name} that you can read; {advice}.")
    if ROLE_RANK[held] < ROLE_RANK[role]:
        raise ForbiddenError(f"This needs the role {role!r} on {owner}/{name}; yours is {held!r}.", role=role)
    return row


def describe_next_step(caller: Caller, owner: str) -> str:
    """What to do about an environment that was not found; says nothing of what others have."""
    if owner in list_namespaces(caller):
        return "publish it with `proctor env push`"
    return "`proctor env list --hub` lists those you can"


def need_namespace(connection: Connection, caller: Caller, owner: str) -> None:
    """Refuse callers who may not create anything under a name."""
    caller.need("environments:write")
    exists = connection.execute(select(namespaces.c.name).where(namespaces.c.name == owner)).first()
    if caller.kind != "user" or not namespace_roles(caller, owner) or exists is None:
        raise ForbiddenError(
            f"You cannot push to {owner!r}; push to your own name or to a team you are a member of."
        )


def find_environment(connection: Connection, owner: str, name: str) -> Row[Any] | None:
    query = select(environments).where(environments.c.owner == owner, environments.c.name == name)
    return connection.execute(query).one_or_none()


def split_slug(slug: str) -> tuple[str, str]:
    owner, slash, name = slug.partition("/")
    if not slash or not owner or not name or "/" in name:
        raise InvalidError(
            f"{slug!r} is not the name of an environment; write owner/name.", field="environment"
        )
    return owner, name
