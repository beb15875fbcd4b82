"""What has changed since the last look, and who may know. Functions of a connection.

Knows nothing of followers or HTTP.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, get_args

import msgspec
from sqlalchemy import Connection, Row, or_, select

from proctor.run import ENDED, RunStatus
from proctor.server.announcements import Announcement, DeletedRun, read_announcements
from proctor.server.db.tables import accounts, audit_entries, environments, runs, versions
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
ANNOUNCED_SECONDS = 30.0
"""The same of an announcement, whose server may be paused before it commits, and whose clock may differ."""
UNCHECKED = ("pending", "running")
NOT_ENDED = [status for status in get_args(RunStatus) if status not in ENDED]
STAMP = ("status", "last_seq", "cost", "input_tokens", "output_tokens", "planned", "visibility", "revision")
OTHERS = ("id", "owner", "team", "environment_id", "created_at", "edited_at")
COLUMNS = [runs.c[name] for name in (*STAMP, *OTHERS)]

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
    """The runs that had not ended, and those created or edited since the look before."""
    checks: Mapping[str, CheckState]
    balances: Mapping[str, int | None]
    entries: Set[str]
    """Of the audit log, those that may be read again."""
    announced: Set[str]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    state: ChangeState
    changed: Sequence[Row[Any]] = ()
    deleted: Sequence[Row[Any] | DeletedRun] = ()
    checks: Sequence[CheckState] = ()
    balances: Mapping[str, float | None] = {}
    entries: Sequence[Row[Any]] = ()
    """What was added to the audit log."""
    announced: Sequence[Announcement] = ()


class ReadableChanges(msgspec.Struct, frozen=True):
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
    entries = read_entries(connection, since - OVERLAP_SECONDS)
    announced = read_announcements(connection, since - ANNOUNCED_SECONDS)
    state = ChangeState(
        at=now,
        number=number,
        live={
            run_id: each
            for run_id, each in stamps.items()
            if each[1].status not in ENDED or is_recent(each[1], since)
        },
        checks={version_id: check for version_id, check in checks.items() if check.status in UNCHECKED},
        balances=balances,
        entries={entry.id for entry in entries},
        announced={each.id for each in announced},
    )
    if before is None:
        return Look(state=state)
    return Look(
        state=state,
        changed=[row for stamp, row in stamps.values() if is_changed(before, row, stamp, woken)],
        deleted=[row for run_id, (_, row) in known.items() if run_id not in found],
        checks=[check for version_id, check in checks.items() if before.checks.get(version_id) != check],
        balances={
            user: None if balance is None else balance / MILLION
            for user, balance in balances.items()
            if user in before.balances and before.balances[user] != balance
        },
        entries=[entry for entry in entries if entry.id not in before.entries],
        announced=[each for each in announced if each.id not in before.announced],
    )


def is_changed(before: ChangeState, row: Row[Any], stamp: Stamp, woken: Collection[str]) -> bool:
    if row.id in before.live:
        return before.live[row.id][0] != stamp
    return row.id in woken or is_recent(row, before.at) or row.status not in ENDED


def is_recent(row: Row[Any], since: float) -> bool:
    """Created or edited since, or not known to be older."""
    return bool(max(row.created_at, row.edited_at or 0.0) >= since - OVERLAP_SECONDS)


def stamp_of(row: Row[Any]) -> Stamp:
    return tuple(getattr(row, name) for name in STAMP)


def read_candidates(connection: Connection, ids: Collection[str], since: float) -> dict[str, Row[Any]]:
    """The runs that have not ended, that are new or newly edited, or that are named."""
    recent = or_(runs.c.status.in_(NOT_ENDED), runs.c.created_at >= since, runs.c.edited_at >= since)
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


def read_entries(connection: Connection, since: float) -> Sequence[Row[Any]]:
    names = ("id", "user", "action", "target", "details")
    query = (
        select(*(audit_entries.c[name] for name in names))
        .where(audit_entries.c.at >= since)
        .order_by(audit_entries.c.at.desc())
    )
    return connection.execute(query.limit(AT_ONCE)).all()


# Who may know


def may_know_change(caller: Caller, entry: Row[Any]) -> bool:
    """What you change, what is changed of you or of your teams and, for admins, everything."""
    is_of_team = entry.action.startswith(("team.", "member.")) and entry.target in caller.teams
    is_of_user = caller.user in (entry.user, entry.target, entry.details.get("user"))
    return caller.is_admin or is_of_user or is_of_team


def find_audience(
    connection: Connection,
    callers: Mapping[Any, Caller],
    changed: Sequence[Row[Any]],
    deleted: Sequence[Row[Any] | DeletedRun],
    checks: Sequence[CheckState],
) -> dict[Any, ReadableChanges]:
    checked = {check.environment_id for check in checks}
    return {
        name: ReadableChanges(
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
    connection: Connection, caller: Caller, rows: Sequence[Row[Any] | DeletedRun]
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
