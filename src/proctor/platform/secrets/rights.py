"""Who may see and change the secrets of an environment.

Knows nothing of secrets.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from proctor.api.hub import RANK, Role
from proctor.platform.db.tables import environments
from proctor.platform.people.tokens import Caller
from proctor.platform.problems import ForbiddenError, NotFoundError


def role_of(connection: Connection, caller: Caller, environment: Row[Any]) -> Role | None:  # noqa: ARG001
    """At the merge: hub.access.role_of instead, which knows of roles that were given."""
    if caller.is_anonymous:
        return "read" if environment.visibility == "public" else None
    if environment.owner == caller.user or caller.teams.get(environment.owner) == "admin":
        return "owner"
    if environment.owner in caller.teams:
        return "write"
    return "read" if environment.visibility == "public" else None


def find_environment(
    connection: Connection, caller: Caller, owner: str, name: str, *, least: Role
) -> Row[Any]:
    """The environment, for whoever has at least that role on it."""
    query = select(environments).where(environments.c.owner == owner, environments.c.name == name)
    row = connection.execute(query).one_or_none()
    role = None if row is None else role_of(connection, caller, row)
    if row is None or role is None:
        raise NotFoundError(f"There is no environment {owner}/{name}.")
    if RANK[role] < RANK[least]:
        raise ForbiddenError(
            f"This needs the role {least!r} on {owner}/{name}, and yours is {role!r}; ask its owner."
        )
    return row
