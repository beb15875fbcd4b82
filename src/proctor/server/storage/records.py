"""Which object holds which file: the database is authoritative.

A file is found by its SHA-256; its object has a key of its own that is never used again. A row is deleted,
and only then its object: a late deletion of an object can therefore hit nothing that is in use. A transaction
that makes something refer to a file touches its row, so that a deletion at the same moment waits, and finds
it in use. Knows nothing of stores.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.server.db.tables import dataset_versions, event_segments, files, run_segments, versions
from proctor.server.problems import ConflictError

AT_ONCE = 500
REFERENCES: tuple[ColumnElement[str], ...] = (
    versions.c.wheel_sha256,
    versions.c.source_sha256,
    dataset_versions.c.sha256,
    run_segments.c.sha256,
    event_segments.c.sha256,
)
"""Every column that names a file."""


def find_file(connection: Connection, sha256: str) -> Row[Any] | None:
    return connection.execute(select(files).where(files.c.sha256 == sha256)).one_or_none()


def touch_file(connection: Connection, sha256: str) -> Row[Any] | None:
    """The file, which now counts as new: nothing deletes it for the grace period."""
    touched = update(files).where(files.c.sha256 == sha256).values(touched_at=time.time())
    return connection.execute(touched.returning(*files.c)).one_or_none()


def refer_to_files(connection: Connection, sha256s: Sequence[str]) -> None:
    """Hold files that the same transaction makes something refer to; refused if one was deleted meanwhile."""
    for sha256 in sorted(set(sha256s)):  # in one order, so that two transactions cannot block each other
        if touch_file(connection, sha256) is None:
            raise ConflictError("A file of this push was deleted at the same moment; push again.")


def save_file(connection: Connection, sha256: str, key: str, size: int) -> str:
    """Record where a file is; returns the key that holds it, which another server may have stored first."""
    known = touch_file(connection, sha256)
    if known is not None:
        return str(known.key)
    try:
        with connection.begin_nested():
            values = {"sha256": sha256, "key": key, "size": size, "touched_at": time.time()}
            connection.execute(insert(files).values(values))
    except IntegrityError:
        known = touch_file(connection, sha256)
        return key if known is None else str(known.key)
    return key


def move_file(connection: Connection, sha256: str, key: str) -> None:
    """The object was missing from the store, and is at another key now."""
    connection.execute(update(files).where(files.c.sha256 == sha256).values(key=key, touched_at=time.time()))


def is_unused() -> ColumnElement[bool]:
    """As a condition: nothing refers to the file."""
    found = ~exists().where(REFERENCES[0] == files.c.sha256)
    for column in REFERENCES[1:]:
        found &= ~exists().where(column == files.c.sha256)
    return found


def forget_unused(connection: Connection, sha256s: Sequence[str]) -> list[str]:
    """Delete the rows of those files that nothing refers to; returns the keys of their objects."""
    keys: list[str] = []
    for start in range(0, len(sha256s), AT_ONCE):
        keys += forget(connection, files.c.sha256.in_(sha256s[start : start + AT_ONCE]))
    return keys


def forget_old(connection: Connection, before: float, limit: int = AT_ONCE) -> list[str]:
    """The same for files that nothing refers to and that were not touched since."""
    old = select(files.c.sha256).where(files.c.touched_at < before, is_unused()).limit(limit)
    found = list(connection.execute(old).scalars())
    return forget(connection, files.c.sha256.in_(found), files.c.touched_at < before)


def forget(connection: Connection, *which: ColumnElement[bool]) -> list[str]:
    # Locked first: PostgreSQL would judge a row that another transaction holds by the references that there
    # were before that transaction.
    rows = select(files.c.sha256).where(*which).order_by(files.c.sha256).with_for_update()
    locked = list(connection.execute(rows).scalars())
    gone = delete(files).where(files.c.sha256.in_(locked), is_unused())
    return list(connection.execute(gone.returning(files.c.key)).scalars())


def adopt_known(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those of the keys that must stay: a row names them, or something refers to their file, which then gets
    its row back."""
    known = set(connection.execute(select(files.c.key).where(files.c.key.in_(keys))).scalars())
    by_hash = {file_of_key(key): key for key in keys if key not in known}
    rows = select(files.c.sha256).where(files.c.sha256.in_(by_hash))
    for sha256 in connection.execute(rows).scalars():
        del by_hash[sha256]  # another object holds it
    for column, size in (
        (versions.c.wheel_sha256, versions.c.wheel_size),
        (versions.c.source_sha256, versions.c.source_size),
        (dataset_versions.c.sha256, dataset_versions.c.size),
        (run_segments.c.sha256, run_segments.c.size),
        (event_segments.c.sha256, event_segments.c.size),
    ):
        for sha256, bytes_ in connection.execute(select(column, size).where(column.in_(by_hash))).all():
            if sha256 in by_hash:
                key = by_hash.pop(sha256)
                known.add(save_file(connection, sha256, key, bytes_))
    return known


def file_of_key(key: str) -> str:
    return key.rpartition("/")[2].partition("-")[0]


def list_files(connection: Connection, after: str = "", limit: int = AT_ONCE) -> list[Row[Any]]:
    query = select(files).where(files.c.sha256 > after).order_by(files.c.sha256).limit(limit)
    return list(connection.execute(query))
