"""Permissions on datasets.

As for environments: the owner of its namespace and the server's admins own a dataset, a team's members may
write the team's, and everyone can read public ones. A run reads what its owner may read, but only public
datasets, those of its environment's owner, and those that its settings name: code that you try out must not
see all that you have. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, true

from proctor.api.hub import ROLE_RANK, Role
from proctor.server.db.tables import dataset_versions, datasets, environments, run_datasets, runs
from proctor.server.hub.access import check_scope, highest_role, list_namespaces, namespace_roles
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError, NotFoundError


def role_of(connection: Connection, caller: Caller, dataset: Row[Any]) -> Role | None:
    """The caller's role on a dataset; None if they may not even know of it."""
    held = list_roles(connection, caller, [dataset])[dataset.id]
    return held or ("read" if dataset.visibility == "public" else None)


def list_roles(connection: Connection, caller: Caller, rows: Iterable[Row[Any]]) -> dict[str, Role | None]:
    """The caller's role on each dataset, by its id, beyond what everyone has."""
    if caller.kind == "run":
        return {row.id: role_of_run(connection, caller, row) for row in rows}
    if caller.kind != "user":
        return {row.id: None for row in rows}
    return {row.id: highest_role(namespace_roles(caller, row.owner)) for row in rows}


def role_of_run(connection: Connection, caller: Caller, dataset: Row[Any]) -> Role | None:
    if not namespace_roles(caller, dataset.owner):
        return None
    of_environment = (
        select(environments.c.owner)
        .join(runs, runs.c.environment_id == environments.c.id)
        .where(runs.c.id == caller.run_id)
    )
    if connection.execute(of_environment).scalar() == dataset.owner:
        return "read"
    named = (
        select(run_datasets.c.run_id)
        .join(dataset_versions, dataset_versions.c.id == run_datasets.c.version_id)
        .where(run_datasets.c.run_id == caller.run_id, dataset_versions.c.dataset_id == dataset.id)
    )
    return "read" if connection.execute(named).first() is not None else None


def readable_condition(caller: Caller) -> ColumnElement[bool]:
    """As a condition: what the caller may list."""
    if caller.is_admin:
        return true()
    public = datasets.c.visibility == "public"
    return public | ownership_condition(caller) if caller.kind == "user" else public


def ownership_condition(caller: Caller) -> ColumnElement[bool]:
    """As a condition: the caller's own, and their teams'."""
    return datasets.c.owner.in_(list_namespaces(caller))


def need_dataset(
    connection: Connection, caller: Caller, owner: str, name: str, role: Role = "read"
) -> Row[Any]:
    """The dataset, for a caller with at least that role and a token for it."""
    check_scope(caller)
    row = find_dataset(connection, owner, name)
    held = role_of(connection, caller, row) if row is not None else None
    if row is None or held is None:
        raise NotFoundError(f"There is no dataset {owner}/{name} that you can read.")
    if ROLE_RANK[held] < ROLE_RANK[role]:
        raise ForbiddenError(f"This needs the role {role!r} on {owner}/{name}; yours is {held!r}.", role=role)
    if role != "read":
        caller.need("environments:write")
    return row


def find_dataset(connection: Connection, owner: str, name: str) -> Row[Any] | None:
    query = select(datasets).where(datasets.c.owner == owner, datasets.c.name == name)
    return connection.execute(query).one_or_none()
