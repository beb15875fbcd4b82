"""Queue checks after a push: lease each to a host, and record its result.

A host that does not report before its lease ends may have died; the check is leased again, a limited number
of times. Knows nothing of HTTP, nor of how a version is checked.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, or_, select, update

from proctor.api.hub import CheckAssignment, CheckResult, CheckStatus
from proctor.packages.loading import module_name
from proctor.server.announcements import announce_environment
from proctor.server.db.tables import environments, versions
from proctor.server.hub.tasks import store_tasks
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, NotFoundError
from proctor.server.secrets.redaction import Redactor
from proctor.server.secrets.resolution import variables_of_environment

LEASE_SECONDS = 900.0
MOST_LEASES = 3
NO_SECRETS = Redactor({})
"""A check has no secrets; anything that looks like a token is redacted all the same."""
GAVE_UP = f"Its check did not finish in {MOST_LEASES} attempts: does it hang, or use up all memory?"


def claim_check(connection: Connection, caller: Caller, now: float | None = None) -> CheckAssignment | None:
    """Lease the oldest version that waits for its check; None if none waits."""
    now = time.time() if now is None else now
    give_up(connection, now)
    query = (
        select(versions.c.id)
        .where(claimable_condition(now))
        .order_by(versions.c.created_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    id_ = connection.execute(query).scalar()
    if id_ is None:
        return None
    connection.execute(
        update(versions)
        .where(versions.c.id == id_)
        .values(
            check_status="running",
            check_host=caller.token_id,
            check_lease_until=now + LEASE_SECONDS,
            check_leases=versions.c.check_leases + 1,
        )
    )
    order = build_assignment(connection, id_)
    announce_environment(connection, order.environment)
    return order


def claimable_condition(now: float) -> ColumnElement[bool]:
    waits = versions.c.check_status == "pending"
    return or_(waits, and_(versions.c.check_status == "running", versions.c.check_lease_until < now))


def give_up(connection: Connection, now: float) -> None:
    connection.execute(
        update(versions)
        .where(claimable_condition(now), versions.c.check_leases >= MOST_LEASES)
        .values(check_status="failed", check_message=GAVE_UP, check_lease_until=None, check_host=None)
    )


def build_assignment(connection: Connection, version_id: str) -> CheckAssignment:
    row = find_version_row(connection, version_id)
    return CheckAssignment(
        version_id=row.id,
        environment=f"{row.owner}/{row.name}",
        version=row.version,
        module=module_name(row.name),
        wheel_name=row.wheel_name,
        wheel_sha256=row.wheel_sha256,
        variables=variables_of_environment(connection, row.environment_id),
        secrets=row.secrets,
        lease_seconds=LEASE_SECONDS,
    )


def record_result(connection: Connection, caller: Caller, version_id: str, result: CheckResult) -> None:
    """Record what a host found; only the host with the lease may."""
    row = find_version_row(connection, version_id)
    if row.check_status != "running" or row.check_host != caller.token_id:
        raise ConflictError("This check was leased to another host, or is finished.", code="lease_lost")
    store_tasks(connection, version_id, result.task_list)
    connection.execute(
        update(versions)
        .where(versions.c.id == version_id)
        .values(
            check_status=status_of(result, row.secrets),
            check_message=strip_unstorable(NO_SECRETS.text(result.message)),
            check_tasks=result.tasks,
            check_seconds=result.seconds,
            check_log=strip_unstorable(NO_SECRETS.text(result.log)),
            check_facts=dict(result.facts),
            check_details=result.details and msgspec.json.encode(result.details),
            check_lease_until=None,
            check_host=None,
            lock=result.lock and strip_unstorable(result.lock),
        )
    )
    announce_environment(connection, f"{row.owner}/{row.name}")


def status_of(result: CheckResult, declared: Collection[str]) -> CheckStatus:
    if result.passed:
        return "passed"
    return "inconclusive" if result.needs_secret in declared else "failed"


def strip_unstorable(text: str) -> str:
    """An environment's output, without what PostgreSQL cannot store."""
    return text.replace("\0", "")


def requeue(connection: Connection, version_id: str) -> None:
    """Have a version checked again."""
    connection.execute(
        update(versions)
        .where(versions.c.id == version_id)
        .values(check_status="pending", check_message="", check_leases=0, check_lease_until=None)
    )


def find_version_row(connection: Connection, version_id: str) -> Row[Any]:
    query = (
        select(versions, environments.c.owner, environments.c.name)
        .join(environments, environments.c.id == versions.c.environment_id)
        .where(versions.c.id == version_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no version {version_id!r}; it may have been deleted.")
    return row
