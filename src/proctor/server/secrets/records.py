"""Global secrets, their links, secrets of environments, and variables, in the database.

Values go in and are sealed; none comes out here. Knows nothing of HTTP, nor of runs.
"""

from __future__ import annotations

import time
from typing import Any

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, select, update

from proctor.api.common import new_id
from proctor.api.secrets import (
    NewSecret,
    NewVariable,
    Secret,
    SecretChange,
    problem_with_name,
    problem_with_value,
)
from proctor.server.db.tables import environments, namespaces, secret_links, secrets, variables
from proctor.server.hub.access import split_slug
from proctor.server.people import records as people
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, InvalidError, NotFoundError
from proctor.server.secrets import links
from proctor.server.secrets.vault import Vault

MAX_SECRETS = 500
"""Secrets or variables of one owner or environment; all of them fit on one page."""


def check_name_and_value(name: str, value: str) -> None:
    if problem := problem_with_name(name):
        raise InvalidError(problem, field="name")
    check_value(name, value)


def check_value(name: str, value: str) -> None:
    if problem := problem_with_value(name, value):
        raise InvalidError(problem, field="value")


def sealing_context(secret_id: str) -> str:
    return f"secret:{secret_id}"


# Global secrets, of a user or a team


def list_global(connection: Connection, caller: Caller) -> list[Secret]:
    """The caller's own, and those of their teams."""
    query = select(secrets).where(secrets.c.owner.in_([caller.user, *caller.teams]))
    rows = connection.execute(query.order_by(secrets.c.name, secrets.c.owner)).all()
    linked = links.list_linked_environments(connection, [row.id for row in rows])
    return [replace(describe_secret(row, "global"), linked_to=linked.get(row.id, [])) for row in rows]


def add_global(connection: Connection, vault: Vault, caller: Caller, new: NewSecret) -> Secret:
    check_name_and_value(new.name, new.value)
    if new.team is not None:
        people.need_team(connection, caller, new.team, to_change=True)
    owner = new.team or caller.user
    connection.execute(select(namespaces).where(namespaces.c.name == owner).with_for_update())
    if connection.execute(select(secrets.c.id).where(named_condition(owner, new.name))).first() is not None:
        raise ConflictError(
            f"{owner!r} already has a secret {new.name}; change it, or choose another name.",
            code="name_taken",
        )
    check_room(connection, secrets, secrets.c.owner == owner)
    return describe_secret(insert_secret(connection, vault, new, owner=owner), "global")


def find_global(connection: Connection, caller: Caller, secret_id: str) -> Row[Any]:
    """A global secret that the caller may change; other members of its team learn that they may not."""
    row = connection.execute(
        select(secrets).where(secrets.c.id == secret_id, secrets.c.owner.is_not(None))
    ).one_or_none()
    if row is None or row.owner not in (caller.user, *caller.teams):
        raise NotFoundError(f"You have no secret {secret_id!r}.")
    if row.owner != caller.user and caller.teams[row.owner] != "admin":
        raise ForbiddenError(f"Only admins of team {row.owner!r} may use or change its secrets.")
    return row


def change_global(
    connection: Connection, vault: Vault, caller: Caller, secret_id: str, change: SecretChange
) -> Secret:
    return describe_secret(
        apply_change(connection, vault, find_global(connection, caller, secret_id), change), "global"
    )


def delete_global(connection: Connection, caller: Caller, secret_id: str) -> Secret:
    """Also deletes its links."""
    row = find_global(connection, caller, secret_id)
    connection.execute(delete(secrets).where(secrets.c.id == row.id))
    return describe_secret(row, "global")


def named_condition(owner: str, name: str) -> ColumnElement[bool]:
    return (secrets.c.owner == owner) & (secrets.c.name == name)


# Secrets of an environment


def list_for_environment(connection: Connection, environment: Row[Any]) -> list[Secret]:
    """Its own and those linked to it, by name."""
    own = connection.execute(select(secrets).where(secrets.c.environment_id == environment.id))
    found = [describe_secret(row, "environment", environment) for row in own]
    active = {row.id for row in links.list_active(connection, environment.id)}
    found += [
        replace(describe_secret(row, "linked", environment), is_active=row.id in active)
        for row in links.list_linked(connection, environment.id)
    ]
    return sorted(found, key=lambda secret: secret.name)


def add_to_environment(connection: Connection, environment: Row[Any], vault: Vault, new: NewSecret) -> Secret:
    check_name_and_value(new.name, new.value)
    if new.team is not None:
        raise InvalidError(
            "A secret of an environment does not belong to a team; leave out team.", field="team"
        )
    lock_environment(connection, environment)
    check_unused(connection, environment, new.name)
    check_room(connection, secrets, secrets.c.environment_id == environment.id)
    return describe_secret(
        insert_secret(connection, vault, new, environment_id=environment.id), "environment", environment
    )


def change_in_environment(
    connection: Connection, environment: Row[Any], vault: Vault, secret_id: str, change: SecretChange
) -> Secret:
    row = find_own_secret(connection, environment, secret_id)
    return describe_secret(apply_change(connection, vault, row, change), "environment", environment)


def delete_in_environment(connection: Connection, environment: Row[Any], secret_id: str) -> Secret:
    row = find_own_secret(connection, environment, secret_id)
    connection.execute(delete(secrets).where(secrets.c.id == row.id))
    return describe_secret(row, "environment", environment)


def find_own_secret(connection: Connection, environment: Row[Any], secret_id: str) -> Row[Any]:
    query = select(secrets).where(secrets.c.id == secret_id, secrets.c.environment_id == environment.id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"{environment_slug(environment)} has no secret {secret_id!r} of its own.")
    return row


def link(connection: Connection, environment: Row[Any], caller: Caller, secret_id: str) -> Secret:
    """Let an environment use a global secret; repeating it changes nothing."""
    lock_environment(connection, environment)
    secret = find_global(connection, caller, secret_id)
    if all(row.id != secret.id for row in links.list_linked(connection, environment.id)):
        check_unused(connection, environment, secret.name)
        connection.execute(insert(secret_links).values(environment_id=environment.id, secret_id=secret.id))
    return describe_secret(secret, "linked", environment)


def unlink(connection: Connection, environment: Row[Any], secret_id: str) -> None:
    gone = connection.execute(
        delete(secret_links).where(
            secret_links.c.environment_id == environment.id, secret_links.c.secret_id == secret_id
        )
    )
    if not gone.rowcount:
        raise NotFoundError(f"No secret {secret_id!r} is linked to {environment_slug(environment)}.")


def unlink_own(connection: Connection, caller: Caller, slug: str, secret_id: str) -> bool:
    """Unlink a secret of the caller's, whatever their role on the environment is by now; False if it is not
    theirs."""
    owners = [caller.user, *(team for team, role in caller.teams.items() if role == "admin")]
    mine = select(secrets.c.id).where(secrets.c.id == secret_id, secrets.c.owner.in_(owners))
    owner, name = split_slug(slug)
    named = select(environments.c.id).where(environments.c.owner == owner, environments.c.name == name)
    this = secret_links.c.environment_id.in_(named) & secret_links.c.secret_id.in_(mine)
    return bool(connection.execute(delete(secret_links).where(this)).rowcount)


def check_unused(connection: Connection, environment: Row[Any], name: str) -> None:
    """A name stands for one secret in an environment, so that it is always clear which one was used."""
    for known in list_for_environment(connection, environment):
        if known.name == name:
            whose = f"a linked secret of {known.owner!r}" if known.kind == "linked" else "a secret of its own"
            todo = "unlink that one" if known.kind == "linked" else "change or delete that one"
            raise ConflictError(
                f"{environment_slug(environment)} already has {whose} called {name}; {todo} first.",
                code="name_taken",
            )


# Variables


def list_variables(connection: Connection, environment: Row[Any]) -> list[Secret]:
    query = select(variables).where(variables.c.environment_id == environment.id).order_by(variables.c.name)
    return [describe_variable(row, environment) for row in connection.execute(query)]


def add_variable(connection: Connection, environment: Row[Any], new: NewVariable) -> Secret:
    check_name_and_value(new.name, new.value)
    lock_environment(connection, environment)
    of_environment = variables.c.environment_id == environment.id
    known = select(variables.c.id).where(of_environment, variables.c.name == new.name)
    if connection.execute(known).first() is not None:
        raise ConflictError(
            f"{environment_slug(environment)} already has a variable {new.name}; "
            "change it, or choose another name.",
            code="name_taken",
        )
    check_room(connection, variables, of_environment)
    id_, now = new_id("var"), time.time()
    connection.execute(
        insert(variables).values(
            id=id_,
            environment_id=environment.id,
            name=new.name,
            value=new.value,
            created_at=now,
            updated_at=now,
        )
    )
    return describe_variable(find_variable(connection, environment, id_), environment)


def change_variable(connection: Connection, environment: Row[Any], variable_id: str, value: str) -> Secret:
    row = find_variable(connection, environment, variable_id)
    check_value(row.name, value)
    connection.execute(
        update(variables).where(variables.c.id == row.id).values(value=value, updated_at=time.time())
    )
    return describe_variable(find_variable(connection, environment, variable_id), environment)


def delete_variable(connection: Connection, environment: Row[Any], variable_id: str) -> Secret:
    row = find_variable(connection, environment, variable_id)
    connection.execute(delete(variables).where(variables.c.id == row.id))
    return describe_variable(row, environment)


def find_variable(connection: Connection, environment: Row[Any], variable_id: str) -> Row[Any]:
    query = select(variables).where(
        variables.c.id == variable_id, variables.c.environment_id == environment.id
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"{environment_slug(environment)} has no variable {variable_id!r}.")
    return row


# Shared


def insert_secret(
    connection: Connection,
    vault: Vault,
    new: NewSecret,
    *,
    owner: str | None = None,
    environment_id: str | None = None,
) -> Row[Any]:
    id_, now = new_id("sec"), time.time()
    connection.execute(
        insert(secrets).values(
            id=id_,
            owner=owner,
            environment_id=environment_id,
            name=new.name,
            sealed=vault.seal(new.value.encode(), sealing_context(id_)),
            description=new.description,
            created_at=now,
            updated_at=now,
        )
    )
    return connection.execute(select(secrets).where(secrets.c.id == id_)).one()


def apply_change(connection: Connection, vault: Vault, row: Row[Any], change: SecretChange) -> Row[Any]:
    values: dict[str, Any] = {"updated_at": time.time()}
    if change.value is not None:
        check_value(row.name, change.value)
        values["sealed"] = vault.seal(change.value.encode(), sealing_context(row.id))
    if change.description is not None:
        values["description"] = change.description
    connection.execute(update(secrets).where(secrets.c.id == row.id).values(values))
    return connection.execute(select(secrets).where(secrets.c.id == row.id)).one()


def lock_environment(connection: Connection, environment: Row[Any]) -> None:
    """Locks the environment until the transaction ends: a name added concurrently would be seen too late."""
    connection.execute(select(environments.c.id).where(environments.c.id == environment.id).with_for_update())


def check_room(connection: Connection, table: Table, where: ColumnElement[bool]) -> None:
    if connection.execute(select(func.count()).select_from(table).where(where)).scalar_one() >= MAX_SECRETS:
        raise ConflictError(
            f"{MAX_SECRETS} is the limit, and it is reached; delete one that is no longer used.",
            code="too_many",
        )


def describe_secret(row: Row[Any], kind: Any, environment: Row[Any] | None = None) -> Secret:
    return Secret(
        id=row.id,
        name=row.name,
        kind=kind,
        owner=row.owner,
        environment=None if environment is None else environment_slug(environment),
        description=row.description,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def describe_variable(row: Row[Any], environment: Row[Any]) -> Secret:
    return Secret(
        id=row.id,
        name=row.name,
        kind="variable",
        environment=environment_slug(environment),
        value=row.value,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def environment_slug(environment: Row[Any]) -> str:
    return f"{environment.owner}/{environment.name}"
