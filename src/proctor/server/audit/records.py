"""Entries of the audit log in the database. Knows nothing of HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, delete, insert, select

from proctor.api.audit import AuditAction, AuditEntry
from proctor.api.common import new_id
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import audit_entries
from proctor.server.people.tokens import Caller

DAY = 86_400.0
KEPT_DAYS = 400
"""A year, and time to look at the same month of the last one."""
LONGEST_TARGET = 500


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to list; None for any."""

    user: str | None = None
    action: str | None = None
    """One action, or a kind of thing with its dot: `token.`."""
    target: str | None = None
    """A part of it."""
    since: float | None = None
    until: float | None = None


def add_entry(
    connection: Connection,
    caller: Caller,
    action: AuditAction,
    target: str,
    *,
    address: str = "",
    details: Mapping[str, Any] | None = None,
) -> None:
    """Names and ids only: no values of secrets, no tokens."""
    connection.execute(
        insert(audit_entries).values(
            id=new_id("aud"),
            at=time.time(),
            user=caller.user,
            action=action,
            target=target[:LONGEST_TARGET],
            details=dict(details or {}),
            token_id=caller.token_id,
            address=address,
        )
    )


def list_audit(
    connection: Connection, wanted: AuditFilter, after: tuple[float, str] | None, limit: int
) -> list[AuditEntry]:
    """The newest first, and one more than the limit if there is one."""
    query = narrow(select(audit_entries), wanted)
    if after is not None:
        at, id_ = after
        is_older = (audit_entries.c.at < at) | ((audit_entries.c.at == at) & (audit_entries.c.id < id_))
        query = query.where(is_older)
    query = query.order_by(audit_entries.c.at.desc(), audit_entries.c.id.desc()).limit(limit + 1)
    return [describe_entry(row) for row in connection.execute(query)]


def narrow(query: Select[Any], wanted: AuditFilter) -> Select[Any]:
    columns = audit_entries.c
    if wanted.user is not None:
        query = query.where(columns.user == wanted.user)
    if wanted.action is not None:
        is_kind = wanted.action.endswith(".")
        query = query.where(
            columns.action.startswith(wanted.action, autoescape=True)
            if is_kind
            else columns.action == wanted.action
        )
    if wanted.target is not None:
        query = query.where(columns.target.contains(wanted.target, autoescape=True))
    if wanted.since is not None:
        query = query.where(columns.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(columns.at < wanted.until)
    return query


def describe_entry(row: Row[Any]) -> AuditEntry:
    return struct_from_row(AuditEntry, row, token=row.token_id)


def delete_old(connection: Connection, now: float) -> None:
    connection.execute(delete(audit_entries).where(audit_entries.c.at < now - KEPT_DAYS * DAY))
