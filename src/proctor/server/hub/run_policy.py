"""Who may run an environment: those who may read it, or those who may change it.

Each environment has a policy, or follows the server's. Knows nothing of HTTP.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from proctor.api.hub import ROLE_RANK, Role, RunPolicy
from proctor.server.db.locks import Lock, lock
from proctor.server.db.tables import server_settings
from proctor.server.hub.access import role_of
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError

SETTING = "run_policy"
NEEDED_ROLES: dict[RunPolicy, Role] = {"readers": "read", "writers": "write"}


def save_default(connection: Connection, policy: RunPolicy) -> None:
    """Keep what the operator chose for environments without a policy of their own."""
    lock(connection, Lock.FIRST_START)
    connection.execute(delete(server_settings).where(server_settings.c.name == SETTING))
    connection.execute(insert(server_settings).values(name=SETTING, value=policy))


def find_default(connection: Connection) -> RunPolicy:
    query = select(server_settings.c.value).where(server_settings.c.name == SETTING)
    return "writers" if connection.execute(query).scalar() == "writers" else "readers"


def need_may_run(connection: Connection, caller: Caller, environment: Row[Any]) -> None:
    """Refuse a user whose role on an environment they can read does not suffice to run it."""
    if caller.kind == "run":  # it plays because its owner may
        return
    policy: RunPolicy = environment.run_policy or find_default(connection)
    needed = NEEDED_ROLES[policy]
    held = role_of(connection, caller, environment)
    if ROLE_RANK.get(held or "", 0) < ROLE_RANK[needed]:
        slug = f"{environment.owner}/{environment.name}"
        raise ForbiddenError(
            f"Only users who may change {slug} may run it on this server; ask its owner for the role "
            f"'write', or run a copy of your own (`proctor env fork {slug}`).",
            code="run_policy",
            role=needed,
        )
