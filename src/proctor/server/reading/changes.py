"""What has changed since the last look, and who may know. Functions of a connection.

Knows nothing of followers or HTTP.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import msgspec
from sqlalchemy import Connection, Row, or_, select

from proctor.run import ENDED, RunStatus
from proctor.server.db.tables import accounts, environments, runs, versions
from proctor.server.hub.access import readable_condition
from proctor.server.people.tokens import Caller
from proctor.server.runs import records, sharing
from proctor.server.runs.sharing import Access

MILLION = 1_000_000
AT_ONCE = 500
CHECK_EVERY = 4
"""Checks take longer than runs change: they are looked at every so many looks."""
OVERLAP_SECONDS = 5.0
"""A run may be stored this long after the time at which it says it was created."""
UNCHECKED = ("pending", "running")
NOT_ENDED = [status for status in get_args(RunStatus) if status not in ENDED]
STAMP = ("status", "last_seq", "cost", "input_tokens", "output_tokens", "planned", "visibility")
COLUMNS = [runs.c[name] for name in (*STAMP, "id", "owner", "team", "environment_id", "created_at")]

Stamp = tuple[Any, ...]


class CheckState(msgspec.Struct, frozen=True):
    """A version whose check is under way, or has just ended."""

    environment_id: str
    environment: str
    version: str
    status: str


class ChangeState(msgspec.Struct, frozen=True, kw_only=True):
    """What a look saw, for the next to compare with."""

    at: float
    number: int = 0
    live: Mapping[str, tuple[Stamp, Row[Any]]]
    """The runs that had not ended, and those created since the look before."""
    checks: Mapping[str, CheckState]
    balances: Mapping[str, int | None]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    state: ChangeState
    changed: Sequence[Row[Any]] = ()
    deleted: Sequence[Row[Any]] = ()
    checks: Sequence[CheckState] = ()
    balances: Mapping[str, float | None] = {}


class Audience(msgspec.Struct, frozen=True):
    """What one caller may know of."""

    runs: dict[str, Access]
    environments: set[str]


def look_for_changes(
    connection: Connection,
    before: ChangeState | None,
    woken: Collection[str],
    users: Collection[str],
    now: float,
) -> Look:
    """The first look only remembers."""
    since = now if before is None else before.at
    known = {} if before is None else before.live
    found = read_candidates(connection, {*known, *woken}, since - OVERLAP_SECONDS)
    stamps = {run_id: (stamp_of(row), row) for run_id, row in found.items()}
    number = 0 if before is None else before.number + 1
    checks = (
        before.checks
        if before is not None and number % CHECK_EVERY
        else read_checks(connection, {} if before is None else before.checks)
    )
    balances = read_balances(connection, users)
    state = ChangeState(
        at=now,
        number=number,
        live={
            run_id: each
            for run_id, each in stamps.items()
            if each[1].status not in ENDED or each[1].created_at >= since - OVERLAP_SECONDS
        },
        checks={version_id: check for version_id, check in checks.items() if check.status in UNCHECKED},
        balances=balances,
    )
    if before is None:
        return Look(state=state)
    return Look(
        state=state,
        changed=[row for run_id, (stamp, row) in stamps.items() if is_changed(before, run_id, stamp, woken)],
        deleted=[row for run_id, (_, row) in known.items() if run_id not in found],
        checks=[check for version_id, check in checks.items() if before.checks.get(version_id) != check],
        balances={
            user: None if balance is None else balance / MILLION
            for user, balance in balances.items()
            if user in before.balances and before.balances[user] != balance
        },
    )


def is_changed(before: ChangeState, run_id: str, stamp: Stamp, woken: Collection[str]) -> bool:
    if run_id in before.live:
        return before.live[run_id][0] != stamp
    return run_id in woken or stamp[-1] >= before.at - OVERLAP_SECONDS or stamp[0] not in ENDED


def stamp_of(row: Row[Any]) -> Stamp:
    return (*(getattr(row, name) for name in STAMP), row.created_at)


def read_candidates(connection: Connection, ids: Collection[str], since: float) -> dict[str, Row[Any]]:
    """The runs that have not ended, that are new, or that are named."""
    recent = or_(runs.c.status.in_(NOT_ENDED), runs.c.created_at >= since)
    found = {row.id: row for row in connection.execute(select(*COLUMNS).where(recent))}
    missing = sorted(set(ids) - found.keys())
    for start in range(0, len(missing), AT_ONCE):
        query = select(*COLUMNS).where(runs.c.id.in_(missing[start : start + AT_ONCE]))
        found |= {row.id: row for row in connection.execute(query)}
    return found


def read_whole_rows(connection: Connection, ids: Sequence[str]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for start in range(0, len(ids), AT_ONCE):
        found += connection.execute(select(runs).where(runs.c.id.in_(ids[start : start + AT_ONCE])))
    return found


def read_checks(connection: Connection, known: Mapping[str, CheckState]) -> dict[str, CheckState]:
    columns = (versions.c.id, versions.c.version, versions.c.check_status, versions.c.environment_id)
    query = (
        select(*columns, environments.c.owner, environments.c.name)
        .join(environments, environments.c.id == versions.c.environment_id)
        .where(or_(versions.c.check_status.in_(UNCHECKED), versions.c.id.in_(list(known)[:AT_ONCE])))
    )
    return {
        row.id: CheckState(row.environment_id, f"{row.owner}/{row.name}", row.version, row.check_status)
        for row in connection.execute(query)
    }


def read_balances(connection: Connection, users: Collection[str]) -> dict[str, int | None]:
    query = select(accounts.c.owner, accounts.c.balance).where(accounts.c.owner.in_(list(users)[:AT_ONCE]))
    return {row.owner: row.balance for row in connection.execute(query)}


# Who may know


def find_audience(
    connection: Connection,
    callers: Mapping[Any, Caller],
    changed: Sequence[Row[Any]],
    deleted: Sequence[Row[Any]],
    checks: Sequence[CheckState],
) -> dict[Any, Audience]:
    checked = {check.environment_id for check in checks}
    return {
        name: Audience(
            {
                **find_readable(connection, caller, changed),
                **find_readable_before(connection, caller, deleted),
            },
            find_environments(connection, caller, checked) if checked else set(),
        )
        for name, caller in callers.items()
    }


def find_readable(connection: Connection, caller: Caller, rows: Sequence[Row[Any]]) -> dict[str, Access]:
    """Which runs a caller may read, and as what."""
    found: dict[str, Access] = {row.id: "owner" for row in rows if records.may_change(caller, row)}
    others = [row.id for row in rows if row.id not in found]
    seen = sharing.readable_runs(connection, caller) if others else None
    for start in range(0, len(others), AT_ONCE):
        query = select(runs.c.id).where(runs.c.id.in_(others[start : start + AT_ONCE]))
        if seen is not None:
            query = query.where(seen)
        found |= dict.fromkeys(connection.execute(query).scalars(), "reader")
    return found


def find_readable_before(
    connection: Connection, caller: Caller, rows: Sequence[Row[Any]]
) -> dict[str, Access]:
    """The same of runs that are gone."""
    found = ((row.id, sharing.find_access(connection, caller, row, "")) for row in rows)
    return {run_id: access for run_id, access in found if access is not None}


def find_environments(connection: Connection, caller: Caller, ids: Collection[str]) -> set[str]:
    if "environments:read" not in caller.scopes:
        return set()
    query = select(environments.c.id).where(
        environments.c.id.in_(ids), readable_condition(connection, caller)
    )
    return set(connection.execute(query).scalars())
