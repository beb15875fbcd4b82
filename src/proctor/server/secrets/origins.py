"""Where the secrets of a run would come from, by name: what reaches it, what does not, and why.

A user who may not change an environment sees only the names that it declares. Knows nothing of values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from proctor.api.secrets import RunSecret
from proctor.server.db.tables import secrets, variables
from proctor.server.secrets.links import list_active, list_linked


def list_run_secrets(
    connection: Connection,
    environment: Row[Any],
    declared: Collection[str],
    custom: Iterable[str],
    *,
    may_write: bool,
) -> list[RunSecret]:
    """By name: of several of one name, the one that wins."""
    slug = f"{environment.owner}/{environment.name}"
    found: dict[str, RunSecret] = {name: describe_missing(name, slug, may_write) for name in declared}
    plain = select(variables.c.name).where(variables.c.environment_id == environment.id)
    found |= {
        name: RunSecret(name=name, origin="variable", why="A variable of the environment: every run has it.")
        for name in connection.execute(plain).scalars()
    }
    if may_write:
        provided = {name for name, secret in found.items() if secret.reaches}
        found |= list_linked_secrets(connection, environment, slug, provided)
        own = select(secrets.c.name).where(secrets.c.environment_id == environment.id)
        why = "A secret of the environment: you may change it, so your runs have it."
        found |= {
            name: RunSecret(name=name, origin="environment", why=why)
            for name in connection.execute(own).scalars()
        }
    found |= {name: RunSecret(name=name, origin="run", why="Given with this run.") for name in custom}
    return [replace(found[name], declared=name in declared) for name in sorted(found)]


def list_linked_secrets(
    connection: Connection, environment: Row[Any], slug: str, provided: Collection[str]
) -> dict[str, RunSecret]:
    """Linked ones; one that does not count is listed only if nothing else provides the name."""
    active = {row.id for row in list_active(connection, environment.id)}
    linked = {}
    for row in list_linked(connection, environment.id):
        if row.id in active:
            why = f"Linked by {row.owner}: you may change the environment, so your runs have it."
            linked[row.name] = RunSecret(name=row.name, origin="linked", owner=row.owner, why=why)
        elif row.name not in provided:
            why = f"It belongs to {row.owner}, who may no longer change {slug}."
            linked.setdefault(
                row.name,
                RunSecret(name=row.name, origin="linked", owner=row.owner, reaches=False, why=why),
            )
    return linked


def describe_missing(name: str, slug: str, may_write: bool) -> RunSecret:
    if may_write:
        why = (
            f"Nothing provides it: store it for {slug}, link a global secret of that name, or give a value "
            "with the run."
        )
    else:
        why = (
            f"Secrets of {slug} reach only runs of users who may change it: give a value of your own with "
            f"the run, or ask {slug.partition('/')[0]} for the role 'write'."
        )
    return RunSecret(name=name, reaches=False, why=why)
