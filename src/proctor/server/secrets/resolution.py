"""Resolve the variables and secrets of a run, and which of the same name wins.

Environment variables < linked global secrets < secrets of the environment < secrets of the run itself. Linked
secrets and those of the environment reach only runs of users who may change the environment: whoever chooses
the code of a run can read everything it receives. A linked one counts while its owner may change the
environment. Knows nothing of processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from proctor.server.db.tables import run_secrets, secrets, variables
from proctor.server.secrets.links import list_active
from proctor.server.secrets.records import check_name_and_value, sealing_context
from proctor.server.secrets.vault import Vault


def variables_of_run(
    connection: Connection, run: Row[Any], secret_values: Mapping[str, str]
) -> dict[str, str]:
    """Every environment variable that the server sets for a run with these secrets."""
    return {**variables_of_environment(connection, run.environment_id), **secret_values}


def variables_of_environment(connection: Connection, environment_id: str | None) -> dict[str, str]:
    plain = select(variables.c.name, variables.c.value).where(variables.c.environment_id == environment_id)
    return {row.name: row.value for row in connection.execute(plain)}


def secret_values_of_run(
    connection: Connection, vault: Vault, run: Row[Any], *, may_write: bool
) -> dict[str, str]:
    """Only those that must be redacted from the run's output."""
    shared = secrets_of_environment(connection, vault, run.environment_id) if may_write else {}
    return shared | load_run_secrets(connection, vault, run.id)


def secrets_of_environment(
    connection: Connection, vault: Vault, environment_id: str | None
) -> dict[str, str]:
    """Linked secrets and the environment's own."""
    own = connection.execute(select(secrets).where(secrets.c.environment_id == environment_id)).all()
    rows = [*list_active(connection, environment_id), *own] if environment_id is not None else []
    return {row.name: vault.open(row.sealed, sealing_context(row.id)).decode() for row in rows}


def list_available_names(connection: Connection, environment_id: str | None, *, may_write: bool) -> set[str]:
    """The names that a run of the environment would have, without the run's own; no value is opened."""
    if environment_id is None:
        return set()
    plain = select(variables.c.name).where(variables.c.environment_id == environment_id)
    found = set(connection.execute(plain).scalars())
    if may_write:
        own = select(secrets.c.name).where(secrets.c.environment_id == environment_id)
        found.update(connection.execute(own).scalars())
        found.update(row.name for row in list_active(connection, environment_id))
    return found


def find_missing(declared: Iterable[str], available: Collection[str]) -> list[str]:
    """Names that an environment declares as needed and that nothing provides."""
    return [name for name in declared if name not in available]


# A run's own secrets


def save_run_secrets(connection: Connection, vault: Vault, run_id: str, values: Mapping[str, str]) -> None:
    """Keep the secrets of a run's request until the run ends."""
    for name, value in values.items():
        check_name_and_value(name, value)
        sealed = vault.seal(value.encode(), run_sealing_context(run_id, name))
        connection.execute(insert(run_secrets).values(run_id=run_id, name=name, sealed=sealed))


def load_run_secrets(connection: Connection, vault: Vault, run_id: str) -> dict[str, str]:
    rows = connection.execute(select(run_secrets).where(run_secrets.c.run_id == run_id))
    return {row.name: vault.open(row.sealed, run_sealing_context(run_id, row.name)).decode() for row in rows}


def list_run_secret_names(connection: Connection, run_id: str) -> set[str]:
    return set(connection.execute(select(run_secrets.c.name).where(run_secrets.c.run_id == run_id)).scalars())


def run_sealing_context(run_id: str, name: str) -> str:
    return f"run:{run_id}:{name}"
