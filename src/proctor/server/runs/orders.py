"""From a claimed run to everything a host needs to play it. Knows nothing of HTTP."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from proctor.api.hub import RANK
from proctor.api.people import Scope
from proctor.api.runs import Cause, Lost, Order, Permissions
from proctor.errors import ProctorError
from proctor.runner.inside.order import TOKEN
from proctor.server.db.tables import environments, versions
from proctor.server.hub.access import role_of
from proctor.server.people.tokens import caller_named, make_token
from proctor.server.problems import ForbiddenError, InvalidError, NotFoundError
from proctor.server.runs import queue
from proctor.server.runs.causes import cause
from proctor.server.runs.rights import NEXT_STEP
from proctor.server.runs.submission import check_again
from proctor.server.secrets import attempts, resolution
from proctor.server.secrets.vault import Vault
from proctor.server.settings import Settings
from proctor.support.logs import log

RUN_SCOPES: list[Scope] = ["inference"]
"""Whatever else a run may know it is told as itself: what its owner may read is none of its business."""
SPARE_SECONDS = 3600.0
"""How long a token outlives the deadline, for the last words; it dies with the attempt anyway."""


def claim(connection: Connection, vault: Vault, settings: Settings, host: str) -> Order | None:
    """The next run for a host, with a token of its own; None where nobody waits."""
    now = time.time()
    row = queue.claim(connection, host, now, settings.lease_seconds, settings.runs_per_user)
    if row is None:
        return None
    why = refusal(connection, row)
    if why is not None:
        queue.lost(connection, row.id, Lost(why, retry=False), now, settings.most_crashes)
        return None
    try:
        with connection.begin_nested():
            return order_for(connection, vault, row, settings.lease_seconds)
    except Exception as error:  # one run that cannot be ordered must not keep all others waiting
        if not isinstance(error, ProctorError):
            log.exception("%s could not be given to a host", row.id)
        why = cause("internal", f"The run could not be given to a host: {error or type(error).__name__}")
        queue.lost(connection, row.id, Lost(why, retry=False), now, settings.most_crashes)
        return None


def refusal(connection: Connection, row: Row[Any]) -> Cause | None:
    """Why a run that waited may no longer be played: whoever asked for it lost a right meanwhile."""
    try:
        check_again(connection, row)
    except InvalidError as error:
        return cause("missing_secret", str(error))
    except (ForbiddenError, NotFoundError) as error:
        return Cause(code="missing_permission", message=str(error), next_step=NEXT_STEP)
    return None


def order_for(connection: Connection, vault: Vault, row: Row[Any], lease_seconds: float) -> Order:
    version = connection.execute(select(versions).where(versions.c.id == row.version_id)).one_or_none()
    if version is None:
        raise NotFoundError(f"{row.environment}@{row.version} was deleted from the hub.")
    made = make_token(
        connection,
        kind="run",
        user=row.owner,
        name=row.id,
        scopes=RUN_SCOPES,
        expires_at=row.deadline_at + SPARE_SECONDS,
        run_id=row.id,
        attempt=row.attempt,
    )
    handed_over = secrets_of(connection, vault, row)
    attempts.keep(connection, vault, row.id, row.attempt, {**handed_over, TOKEN: made.secret})
    return Order(
        run_id=row.id,
        attempt=row.attempt,
        token=made.secret,
        environment=row.environment,
        version=version.version,
        module=row.environment.rpartition("/")[2],
        wheel_name=version.wheel_name,
        wheel_sha256=version.wheel_sha256,
        lock=version.lock,
        model=row.model,
        settings=row.settings,
        permissions=msgspec.convert(row.permissions, Permissions),
        variables=resolution.variables_of_run(connection, row, handed_over),
        deadline_at=row.deadline_at,
        lease_seconds=lease_seconds,
    )


def variables_of(connection: Connection, vault: Vault, row: Row[Any]) -> dict[str, str]:
    """What the current attempt finds, whatever was changed since it was given its secrets."""
    given = attempts.given(connection, vault, row.id).get(row.attempt)
    values = secrets_of(connection, vault, row) if given is None else given
    own = {name: value for name, value in values.items() if name != TOKEN}
    return resolution.variables_of_run(connection, row, own)


def secrets_of(connection: Connection, vault: Vault, row: Row[Any]) -> dict[str, str]:
    """What the next attempt of a run is given."""
    may_write = owner_may_write(connection, row)
    return resolution.secret_values_of_run(connection, vault, row, may_write=may_write)


def values_to_redact(connection: Connection, vault: Vault, run_id: str) -> list[tuple[str, str]]:
    """What must not be read in anything that a run says: all that any of its attempts was given, since one
    finds the files of those before it."""
    values = list(secrets_of(connection, vault, queue.find(connection, run_id)).items())
    for given in attempts.given(connection, vault, run_id).values():
        values += given.items()
    return values


def owner_may_write(connection: Connection, row: Row[Any]) -> bool:
    """Secrets of an environment reach the runs of those only who may change it."""
    environment = connection.execute(
        select(environments).where(environments.c.id == row.environment_id)
    ).one_or_none()
    if environment is None:
        return False
    role = role_of(connection, caller_named(connection, row.owner), environment)
    return RANK.get(role or "", 0) >= RANK["write"]
