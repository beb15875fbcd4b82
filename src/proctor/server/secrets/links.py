"""Links of global secrets to environments: which of them count, and who may remove them.

A link counts while the secret's owner may change the environment. A user who leaves a team takes their
secrets with them. Knows nothing of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from proctor.api.hub import ROLE_RANK
from proctor.server.db.tables import environments, members, secret_links, secrets, users
from proctor.server.hub.access import role_of
from proctor.server.people.tokens import Caller, find_user_caller

WRITE_ROLES = frozenset(role for role, rank in ROLE_RANK.items() if rank >= ROLE_RANK["write"])


def list_linked(connection: Connection, environment_id: str) -> Sequence[Row[Any]]:
    """The secrets that are linked to an environment, whether their links count or not."""
    query = (
        select(secrets)
        .join(secret_links, secret_links.c.secret_id == secrets.c.id)
        .where(secret_links.c.environment_id == environment_id)
    )
    return connection.execute(query).all()


def list_active(connection: Connection, environment_id: str) -> list[Row[Any]]:
    """Those that reach runs of the environment."""
    found = list_linked(connection, environment_id)
    if not found:
        return []
    environment = connection.execute(select(environments).where(environments.c.id == environment_id)).one()
    counted = {owner: may_link(connection, owner, environment) for owner in {row.owner for row in found}}
    return [row for row in found if counted[row.owner]]


def may_link(connection: Connection, owner: str, environment: Row[Any]) -> bool:
    """Whether a user, or a team or one of its admins, may change an environment."""
    user = connection.execute(select(users.c.disabled_at).where(users.c.name == owner)).one_or_none()
    if user is not None:
        caller = find_user_caller(connection, owner)
        return user.disabled_at is None and writes(connection, caller, environment)
    team = Caller(user="", teams={owner: "member"}, token_id="none")
    if writes(connection, team, environment):
        return True
    admins = select(members.c.user).where(members.c.team == owner, members.c.role == "admin")
    return any(may_link(connection, admin, environment) for admin in connection.execute(admins).scalars())


def writes(connection: Connection, caller: Caller, environment: Row[Any]) -> bool:
    return role_of(connection, caller, environment) in WRITE_ROLES


def list_linked_environments(connection: Connection, secret_ids: Sequence[str]) -> dict[str, list[str]]:
    """The environments that secrets are linked to, by the secret's id."""
    query = (
        select(secret_links.c.secret_id, environments.c.owner, environments.c.name)
        .join(environments, environments.c.id == secret_links.c.environment_id)
        .where(secret_links.c.secret_id.in_(secret_ids))
        .order_by(environments.c.owner, environments.c.name)
    )
    found: dict[str, list[str]] = {}
    for row in connection.execute(query):
        found.setdefault(row.secret_id, []).append(f"{row.owner}/{row.name}")
    return found
