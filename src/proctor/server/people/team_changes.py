"""Rename or delete a team.

Environments and datasets are found by their owner's name, so a team that has some keeps its name, and stays.
An abandoned name is never assigned again: other people's configurations may contain it. Knows
nothing of HTTP.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, update

from proctor.api.common import new_id
from proctor.api.people import Team
from proctor.run import ENDED
from proctor.server.db.tables import (
    accounts,
    calls,
    datasets,
    environments,
    members,
    metadata,
    namespaces,
    roles,
    runs,
    secrets,
    sources,
    teams,
)
from proctor.server.people.records import claim_name, lock_team
from proctor.server.problems import ConflictError

FORMER = "former"
"""The kind of a name that was given up."""
OWNED = {"environments": environments, "datasets": datasets}
NAMES = ("namespaces.name", "teams.name")


def rename_team(connection: Connection, team: str, name: str) -> Team:
    """Everything of the team follows it: members, money, secrets, sources, runs."""
    row = lock_team(connection, team)
    if name == team:
        return Team(id=row.id, name=team, created_at=row.created_at)
    check_is_empty(connection, team)
    claim_name(connection, name, "team", None)
    move_account(connection, team, name)
    connection.execute(insert(teams).values(id=new_id("team"), name=name, created_at=row.created_at))
    for table in metadata.sorted_tables:
        for column in table.columns:
            refers = any(key.target_fullname in NAMES for key in column.foreign_keys)
            if refers and table.name not in ("teams", "accounts"):
                connection.execute(update(table).where(column == team).values({column.name: name}))
    connection.execute(update(calls).where(calls.c.owner == team).values(owner=name))
    connection.execute(delete(teams).where(teams.c.name == team))
    connection.execute(update(teams).where(teams.c.name == name).values(id=row.id))
    give_up_name(connection, team)
    return Team(id=row.id, name=name, created_at=row.created_at)


def delete_team(connection: Connection, team: str) -> None:
    """Its runs become their owners' own; its secrets and sources go; what it spent stays on record."""
    lock_team(connection, team)
    check_is_empty(connection, team)
    connection.execute(update(runs).where(runs.c.team == team).values(team=None))
    connection.execute(delete(secrets).where(secrets.c.owner == team))
    connection.execute(delete(sources).where(sources.c.owner == team))
    connection.execute(delete(roles).where(roles.c.holder == team))
    connection.execute(delete(members).where(members.c.team == team))
    connection.execute(delete(teams).where(teams.c.name == team))
    give_up_name(connection, team)


def check_is_empty(connection: Connection, team: str) -> None:
    for word, table in OWNED.items():
        count = connection.execute(select(func.count()).where(table.c.owner == team)).scalar_one()
        if count:
            raise ConflictError(
                f"Team {team!r} owns {count} {word}, which are found by its name; delete them first.",
                code="not_empty",
            )
    waiting = select(runs.c.id).where(runs.c.team == team, runs.c.status.not_in(ENDED))
    run_id = connection.execute(waiting.limit(1)).scalar_one_or_none()
    if run_id is not None:
        raise ConflictError(f"{run_id} of team {team!r} has not ended; stop it first.", code="in_use")


def move_account(connection: Connection, team: str, name: str) -> None:
    connection.execute(delete(accounts).where(accounts.c.owner == name))
    connection.execute(update(accounts).where(accounts.c.owner == team).values(owner=name))


def give_up_name(connection: Connection, team: str) -> None:
    connection.execute(update(namespaces).where(namespaces.c.name == team).values(kind=FORMER))
