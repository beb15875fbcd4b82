"""Turn a claimed run into an assignment: everything a host needs to play it. Knows nothing of HTTP."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from proctor.api.hub import ROLE_RANK
from proctor.api.people import Scope
from proctor.api.runner import LostRun, RunAssignment
from proctor.api.runs import Cause, Permissions
from proctor.errors import ProctorError
from proctor.runner.inside.attempt_input import TOKEN_VARIABLE
from proctor.server.db.availability import is_connection_lost
from proctor.server.db.tables import environments, versions
from proctor.server.hub.access import role_of
from proctor.server.people.tokens import find_user_caller, make_token
from proctor.server.problems import ForbiddenError, InvalidError, NotFoundError
from proctor.server.runs import queue
from proctor.server.runs.causes import build_cause
from proctor.server.runs.rights import NEXT_STEP
from proctor.server.runs.submission import check_resumable
from proctor.server.secrets import attempts, resolution
from proctor.server.secrets.vault import Vault
from proctor.server.settings import Settings
from proctor.support.logs import log

RUN_SCOPES: list[Scope] = ["inference"]
"""A run acts as itself for everything else: it does not inherit its owner's permissions."""
SPARE_SECONDS = 3600.0
"""How long a token outlives the deadline, for final reports; it is revoked with the attempt anyway."""


def claim_assignment(
    connection: Connection, vault: Vault, settings: Settings, host: str, delegate: bool = False
) -> RunAssignment | None:
    """Claim the next run for a host, with a token of its own; None if none waits. With `delegate`, also with
    a token for the machine that will stand in for the host."""
    now = time.time()
    row = queue.claim_run(connection, host, now, settings.lease_seconds, settings.runs_per_user)
    if row is None:
        return None
    why = find_refusal(connection, row)
    if why is not None:
        queue.report_lost(connection, row.id, LostRun(why, retry=False), now, settings.most_crashes)
        return None
    try:
        with connection.begin_nested():
            made = build_assignment(connection, vault, row, settings.lease_seconds)
            return replace(made, delegate_token=make_delegate_token(connection, row)) if delegate else made
    except Exception as error:  # a run that cannot be assigned must not block all others
        if is_connection_lost(error):
            raise
        if not isinstance(error, ProctorError):
            log.exception("%s could not be assigned to a host", row.id)
        why = build_cause(
            "internal", f"The run could not be assigned to a host: {error or type(error).__name__}"
        )
        queue.report_lost(connection, row.id, LostRun(why, retry=False), now, settings.most_crashes)
        return None


def find_refusal(connection: Connection, row: Row[Any]) -> Cause | None:
    """Why a pending run may no longer be played: its owner lost a permission in the meantime."""
    try:
        check_resumable(connection, row)
    except InvalidError as error:
        return build_cause("missing_secret", str(error))
    except (ForbiddenError, NotFoundError) as error:
        return Cause(code="missing_permission", message=str(error), next_step=NEXT_STEP)
    return None


def build_assignment(
    connection: Connection, vault: Vault, row: Row[Any], lease_seconds: float
) -> RunAssignment:
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
    handed_over = resolve_secrets(connection, vault, row)
    attempts.save_attempt_secrets(
        connection, vault, row.id, row.attempt, {**handed_over, TOKEN_VARIABLE: made.secret}
    )
    return RunAssignment(
        run_id=row.id,
        attempt=row.attempt,
        token=made.secret,
        environment=row.environment,
        version=version.version,
        content_hash=version.content_hash,
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


def make_delegate_token(connection: Connection, row: Row[Any]) -> str:
    """What lets another machine act as the host of one attempt, and of nothing else."""
    made = make_token(
        connection,
        kind="delegate",
        user=None,
        name=row.id,
        scopes=[],
        expires_at=row.deadline_at + SPARE_SECONDS,
        run_id=row.id,
        attempt=row.attempt,
    )
    return made.secret


def resolve_variables(connection: Connection, vault: Vault, row: Row[Any]) -> dict[str, str]:
    """The variables of the current attempt, whatever was changed since it received its secrets."""
    given = attempts.read_attempt_secrets(connection, vault, row.id).get(row.attempt)
    values = resolve_secrets(connection, vault, row) if given is None else given
    own = {name: value for name, value in values.items() if name != TOKEN_VARIABLE}
    return resolution.variables_of_run(connection, row, own)


def resolve_secrets(connection: Connection, vault: Vault, row: Row[Any]) -> dict[str, str]:
    """The secrets of a run's next attempt."""
    may_write = owner_may_write(connection, row)
    return resolution.secret_values_of_run(connection, vault, row, may_write=may_write)


def values_to_redact(connection: Connection, vault: Vault, run_id: str) -> list[tuple[str, str]]:
    """What to redact from a run's output: the secrets of all of its attempts, because a later attempt finds
    the files of earlier ones."""
    values = list(resolve_secrets(connection, vault, queue.find_run(connection, run_id)).items())
    for given in attempts.read_attempt_secrets(connection, vault, run_id).values():
        values += given.items()
    return values


def owner_may_write(connection: Connection, row: Row[Any]) -> bool:
    """Secrets of an environment reach only the runs of users who may change it."""
    environment = connection.execute(
        select(environments).where(environments.c.id == row.environment_id)
    ).one_or_none()
    if environment is None:
        return False
    role = role_of(connection, find_user_caller(connection, row.owner), environment)
    return ROLE_RANK.get(role or "", 0) >= ROLE_RANK["write"]
