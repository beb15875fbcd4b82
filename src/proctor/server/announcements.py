"""Changes that feeds report and no other table shows: written in the transaction of the change.

Knows nothing of followers or HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select

from proctor.api.common import new_id
from proctor.server.db.tables import announcements, sources
from proctor.server.hub.access import Readers, find_readers, list_namespaces
from proctor.server.notifier import notify_everyone
from proctor.server.people.tokens import Caller

KEPT_SECONDS = 3600.0
MOST_AT_ONCE = 500
NOBODY = Readers()

AnnouncedKind = Literal["environment", "dataset", "source", "labels", "run_deleted"]


class DeletedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What decides who could read a run that is gone."""

    id: str
    owner: str
    team: str | None
    environment_id: str | None
    visibility: str

    @staticmethod
    def of(row: Row[Any]) -> DeletedRun:
        return DeletedRun(**{name: getattr(row, name) for name in DeletedRun.__struct_fields__})


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """Whom an announcement is for, unless the run it is about decides that."""

    readers: Readers = Readers()
    run: DeletedRun | None = None


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: AnnouncedKind
    subject: str
    """The id or the name of what has changed."""
    audience: Audience

    def is_for(self, caller: Caller) -> bool:
        if self.kind == "environment" and "environments:read" not in caller.scopes:
            return False
        readers = self.audience.readers
        return readers.everyone or caller.is_admin or not readers.names.isdisjoint(list_namespaces(caller))


def announce(connection: Connection, kind: AnnouncedKind, subject: str, readers: Readers = NOBODY) -> None:
    add(connection, kind, subject, Audience(readers=readers))


def announce_environment(connection: Connection, slug: str, before: Readers = NOBODY) -> None:
    """To those who may read it now, or could before."""
    announce(connection, "environment", slug, before | find_readers(connection, slug))


def announce_dataset(connection: Connection, row: Row[Any], visibility: str | None = None) -> None:
    """To those who may read it, or will with another visibility."""
    everyone = "public" in (row.visibility, visibility)
    readers = Readers(everyone=everyone, names=frozenset({row.owner}))
    announce(connection, "dataset", f"{row.owner}/{row.name}", readers)


def announce_source(connection: Connection, source_id: str) -> None:
    """To its owner, their team and the admins."""
    owner = connection.execute(select(sources.c.owner).where(sources.c.id == source_id)).scalar()
    if owner is not None:
        announce(connection, "source", source_id, Readers(names=frozenset({owner})))


def announce_deleted_run(connection: Connection, row: Row[Any]) -> None:
    add(connection, "run_deleted", row.id, Audience(run=DeletedRun.of(row)))


def add(connection: Connection, kind: AnnouncedKind, subject: str, audience: Audience) -> None:
    values = {"id": new_id("news"), "at": time.time(), "kind": kind, "subject": subject}
    connection.execute(insert(announcements).values(audience=msgspec.to_builtins(audience), **values))
    notify_everyone(connection, "feed")


def read_announcements(connection: Connection, since: float) -> Sequence[Announcement]:
    query = select(announcements).where(announcements.c.at >= since).order_by(announcements.c.at)
    return [describe(row) for row in connection.execute(query.limit(MOST_AT_ONCE))]


def describe(row: Row[Any]) -> Announcement:
    audience = msgspec.convert(row.audience, Audience)
    return Announcement(id=row.id, kind=row.kind, subject=row.subject, audience=audience)


def delete_old_announcements(connection: Connection, now: float) -> None:
    connection.execute(delete(announcements).where(announcements.c.at < now - KEPT_SECONDS))
