"""The queue of runs: claims, leases, crashes, stops, time limits.

    pending → running → finished | failed
    running → stopping → stopped | timed_out
    pending → stopped
    running → pending      its host or its process died: it continues elsewhere

Every change of status is appended to the run's event log in the same transaction. A host holds a run by a
lease that it renews; an attempt has a number, and reports of older attempts are refused. Knows nothing of
HTTP.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, case, func, select, update

from proctor.api.runner import Lease, LostRun
from proctor.api.runs import Cause, ResumeRequest, RunEvent
from proctor.run import ACTIVE, ENDED, RunStatus
from proctor.server.db.locks import Lock, lock
from proctor.server.db.tables import runs
from proctor.server.people.tokens import has_host
from proctor.server.problems import ConflictError, NotFoundError
from proctor.server.runs.causes import build_cause, with_next_step
from proctor.server.runs.event_log import append_events, build_log_event
from proctor.server.runs.rows import progress_of

MINUTE = 60.0
MILLION = 1_000_000
NO_HOST = (
    "No host that can play runs is connected to this server, so the run waits. The server's operator can "
    "start one with `proctor runner` (one that runs already logs what it lacks), or restart the server with "
    "--runs-at-once above 0."
)
ONE_RUN = select(runs).where(runs.c.id == bindparam("run_id"))
LOCKED_RUN = ONE_RUN.with_for_update()
SPARE_ATTEMPTS = 100
"""A run that makes no progress is not restarted forever, even if nothing is its fault."""


def claim_run(
    connection: Connection, host: str, now: float, lease_seconds: float, most_per_user: int | None = None
) -> Row[Any] | None:
    """Claim the next run for this host. Users take turns: first the one with the fewest active runs, then the
    one whose last start is longest ago."""
    if most_per_user is not None:
        lock(connection, Lock.CLAIMS)  # one after the other, so that no server starts one too many
    by_owner = (
        select(
            runs.c.owner,
            func.sum(case((runs.c.status.in_(ACTIVE), 1), else_=0)).label("active"),
            func.min(case((runs.c.status == "pending", runs.c.created_at))).label("waits_since"),
        )
        .where(runs.c.kind == "hosted", runs.c.status.in_(("pending", *ACTIVE)))
        .group_by(runs.c.owner)
    )
    waiting = [each for each in connection.execute(by_owner) if each.waits_since is not None]
    last = last_starts(connection, [each.owner for each in waiting])
    for each in sorted(waiting, key=lambda each: (each.active, last[each.owner], each.waits_since)):
        if most_per_user is not None and each.active >= most_per_user:
            continue
        query = (
            select(runs)
            .where(runs.c.owner == each.owner, runs.c.kind == "hosted", runs.c.status == "pending")
            .order_by(runs.c.created_at, runs.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        row = connection.execute(query).one_or_none()
        if row is not None:
            return start_attempt(connection, row, host, now, lease_seconds)
    return None


def last_starts(connection: Connection, owners: Collection[str]) -> dict[str, float]:
    query = (
        select(runs.c.owner, func.max(runs.c.started_at).label("at"))
        .where(runs.c.owner.in_(owners), runs.c.kind == "hosted")
        .group_by(runs.c.owner)
    )
    return {each.owner: each.at or 0.0 for each in connection.execute(query)}


def start_attempt(
    connection: Connection, row: Row[Any], host: str, now: float, lease_seconds: float
) -> Row[Any]:
    deadline = row.deadline_at or now + row.timeout_minutes * MINUTE
    change_status(
        connection,
        row.id,
        "running",
        now,
        attempt=row.attempt + 1,
        host=host,
        lease_until=now + lease_seconds,
        started_at=row.started_at or now,
        deadline_at=deadline,
        last_batch=0,
        cause=None,
    )
    return find_run(connection, row.id)


def renew_lease(
    connection: Connection, run_id: str, host: str | None, attempt: int, now: float, seconds: float
) -> Lease:
    """Renew the lease of a run, and tell its holder what to do. Without a host, for the delegate of this
    attempt."""
    held = (runs.c.id == run_id) & (runs.c.attempt == attempt)
    if host is not None:
        held &= runs.c.host == host
    renewed = update(runs).where(held, runs.c.status.in_(ACTIVE)).values(lease_until=now + seconds)
    status = connection.execute(renewed.returning(runs.c.status)).scalar_one_or_none()
    return Lease(lost=True) if status is None else Lease(stop=status == "stopping")


def extend_leases(connection: Connection, now: float, seconds: float) -> None:
    """Extend all leases at the start of a server: while none was running, no host could renew its lease."""
    silent = runs.c.status.in_(ACTIVE) & (runs.c.lease_until < now + seconds)
    connection.execute(update(runs).where(silent).values(lease_until=now + seconds))


def find_abandoned(connection: Connection, run_ids: Collection[str]) -> list[str]:
    """Which of these runs no host will continue: they are finished or deleted."""
    kept = select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.status != "finished")
    return sorted(set(run_ids) - set(connection.execute(kept).scalars()))


def find_attempts_over(
    connection: Connection, attempts: Collection[tuple[str, int]]
) -> list[tuple[str, int]]:
    """Which of these attempts are no longer needed. Those of runs that this server does not know may be
    another server's, and are not among them."""
    asked = select(runs.c.id, runs.c.attempt, runs.c.status).where(
        runs.c.id.in_({run_id for run_id, _ in attempts})
    )
    known = {row.id: row for row in connection.execute(asked)}
    return sorted(
        (run_id, attempt)
        for run_id, attempt in attempts
        if (row := known.get(run_id)) is not None and (row.attempt != attempt or row.status not in ACTIVE)
    )


def stop(connection: Connection, run_id: str, why: Cause, now: float) -> None:
    """Ask a run to end; a pending run ends at once. A run that has ended stays as it is."""
    row = lock_run(connection, run_id)
    why = with_next_step(why, run_id, row.environment)
    if row.status == "pending":
        end_run(connection, row, "stopped", why, now)
    elif row.status == "running":
        change_status(connection, run_id, "stopping", now, why, cause=msgspec.to_builtins(why))


def record_cause(connection: Connection, run_id: str, why: Cause, now: float) -> None:
    """Record what explains a possible failure of the run, and report it once."""
    row = lock_run(connection, run_id)
    why = with_next_step(why, run_id, row.environment)
    lost = msgspec.to_builtins(why)
    if row.status == "running" and row.cause != lost:
        connection.execute(update(runs).where(runs.c.id == run_id).values(cause=lost))
        append_events(
            connection, run_id, [build_log_event(f"{why.message} {why.next_step}", at=now, level="WARNING")]
        )


def report_lost(
    connection: Connection,
    run_id: str,
    lost: LostRun,
    now: float,
    most_crashes: int,
    host: str | None = None,
    attempt: int | None = None,
) -> bool:
    """The process of a run is gone without a final report; False if that is already known. With a host or an
    attempt, only if those still have the run."""
    row = lock_run(connection, run_id)
    is_held = host in (None, row.host) and attempt in (None, row.attempt)
    if row.status not in ACTIVE or not is_held:
        return False
    requeue_or_fail(connection, row, lost, now, most_crashes)
    return True


def requeue_or_fail(
    connection: Connection, row: Row[Any], lost: LostRun, now: float, most_crashes: int
) -> None:
    """Requeue a run without a process, if another attempt may help."""
    run_id = row.id
    if row.status == "stopping":
        end_run(connection, row, "stopped", None, now)
        return
    kept = row.settled + row.failed
    got_on = kept > row.rows_at_crash
    crashes = (0 if got_on else row.crashes) + (not lost.blameless)
    if not lost.retry or crashes >= most_crashes or (row.attempt >= SPARE_ATTEMPTS and not got_on):
        often = f" ({crashes} times in a row, with nothing finished in between)" if crashes > 1 else ""
        why = msgspec.structs.replace(lost.cause, message=lost.cause.message + often)
        end_run(connection, row, "failed", why, now)
        return
    change_status(
        connection,
        run_id,
        "pending",
        now,
        with_next_step(lost.cause, run_id, row.environment),
        host=None,
        lease_until=None,
        crashes=crashes,
        rows_at_crash=kept,
    )


def end_run(connection: Connection, row: Row[Any], status: RunStatus, why: Cause | None, now: float) -> None:
    """The final status of a run, or of this attempt to complete it. A request made while it was played
    decides."""
    if row.cause is not None and status != "finished":
        why = msgspec.convert(row.cause, Cause)
        if row.status == "stopping":
            status = "timed_out" if why.code == "time_limit" else "stopped"
    why = None if why is None else with_next_step(why, row.id, row.environment)
    change_status(
        connection,
        row.id,
        status,
        now,
        why,
        ended_at=now,
        host=None,
        lease_until=None,
        cause=None if why is None else msgspec.to_builtins(why),
    )


def resume(connection: Connection, run_id: str, now: float, asked: ResumeRequest) -> None:
    """Queue a run again that has ended without settling everything."""
    row = lock_run(connection, run_id)
    if row.kind != "hosted":
        raise ConflictError(f"{run_id} was played elsewhere; resume it there.", code="not_hosted")
    if row.status not in ENDED:
        raise ConflictError(
            f"{run_id} is {row.status}; only a run that has ended can be resumed.", code="not_ended"
        )
    if row.planned is not None and row.settled >= row.planned:
        raise ConflictError(f"{run_id} has no rollouts left to play.", code="nothing_owed")
    if row.version_id is None:
        raise ConflictError(f"{row.environment}@{row.version} was deleted from the hub.", code="version_gone")
    change_status(
        connection,
        run_id,
        "pending",
        now,
        cause=None,
        ended_at=None,
        deadline_at=None,
        crashes=0,
        rows_at_crash=0,
        summary=None,
        score=None,
        timeout_minutes=asked.timeout_minutes or row.timeout_minutes,
        max_cost=row.max_cost if asked.max_cost_usd is None else round(asked.max_cost_usd * MILLION),
    )


def sweep(connection: Connection, now: float, most_crashes: int) -> list[str]:
    """Handle runs whose host is silent and runs whose time is up; returns the ids of those that changed."""
    changed = []
    silent = select(runs.c.id).where(runs.c.status.in_(ACTIVE), runs.c.lease_until < now)
    why_silent = LostRun(
        build_cause("crashed", "The host that played the run stopped answering."), blameless=True
    )
    for run_id in connection.execute(silent).scalars().all():
        row = lock_run(connection, run_id)  # it may have reported since
        if row.status in ACTIVE and row.lease_until < now:
            requeue_or_fail(connection, row, why_silent, now, most_crashes)
            changed.append(run_id)
    late = select(runs.c.id).where(runs.c.status.in_(("pending", "running")), runs.c.deadline_at < now)
    for run_id in connection.execute(late).scalars().all():
        row = lock_run(connection, run_id)
        if row.deadline_at is None or row.deadline_at >= now:
            continue
        why = build_cause("time_limit", f"The run exceeded its time limit of {row.timeout_minutes} min.")
        if row.status == "pending":
            end_run(connection, row, "timed_out", why, now)
        else:
            stop(connection, run_id, why, now)
        changed.append(run_id)
    return changed


def explain_waiting(connection: Connection, row: Row[Any], now: float) -> str:
    return NO_HOST if row.status == "pending" and not has_host(connection, now) else ""


def warn_without_host(connection: Connection, run_id: str, now: float) -> None:
    """Say in a waiting run's event log that nothing will play it."""
    if why := explain_waiting(connection, find_run(connection, run_id), now):
        append_events(connection, run_id, [build_log_event(why, at=now, level="WARNING")])


def change_status(
    connection: Connection,
    run_id: str,
    status: RunStatus,
    now: float,
    why: Cause | None = None,
    **values: Any,
) -> None:
    """Set a status and append the event."""
    connection.execute(update(runs).where(runs.c.id == run_id).values(status=status, **values))
    row = find_run(connection, run_id)
    event = RunEvent(seq=0, at=now, kind="status", status=status, cause=why, progress=progress_of(row))
    append_events(connection, run_id, [event])


def find_run(connection: Connection, run_id: str) -> Row[Any]:
    row = connection.execute(ONE_RUN, {"run_id": run_id}).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no run {run_id!r}.")
    return row


def lock_run(connection: Connection, run_id: str) -> Row[Any]:
    row = connection.execute(LOCKED_RUN, {"run_id": run_id}).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no run {run_id!r}.")
    return row
