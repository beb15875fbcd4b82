"""How many bytes a server stores, and for whom: sums of columns; no file is read, only the disk's free space.

Knows nothing of HTTP.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, func, select

from proctor.api.admin import Storage, StoredKind, UserStorage
from proctor.server.db.tables import dataset_versions, runs, versions

MOST_USERS = 50


def measure_storage(connection: Connection) -> tuple[list[StoredKind], list[UserStorage]]:
    """By kind, and by user; a file that several versions share counts once by kind."""
    return [
        sum_packages(connection),
        sum_column(connection, "rows", runs, runs.c.row_bytes),
        sum_column(connection, "logs", runs, runs.c.log_bytes),
        sum_datasets(connection),
    ], list_largest(connection)


def sum_packages(connection: Connection) -> StoredKind:
    wheels = select(versions.c.wheel_sha256.label("sha"), versions.c.wheel_size.label("size"))
    sources = select(versions.c.source_sha256, versions.c.source_size)
    files = wheels.union(sources).subquery()
    size = connection.execute(select(func.coalesce(func.sum(files.c.size), 0))).scalar_one()
    count = connection.execute(select(func.count()).select_from(versions)).scalar_one()
    return StoredKind(kind="packages", count=count, bytes=int(size))


def sum_datasets(connection: Connection) -> StoredKind:
    files = select(dataset_versions.c.sha256, dataset_versions.c.size).distinct().subquery()
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(files.c.size), 0)).select_from(files)
    ).one()
    return StoredKind(kind="datasets", count=row[0], bytes=int(row[1]))


def sum_column(connection: Connection, kind: Any, table: FromClause, size: ColumnElement[int]) -> StoredKind:
    query = select(func.count(), func.coalesce(func.sum(size), 0)).select_from(table)
    row = connection.execute(query).one()
    return StoredKind(kind=kind, count=row[0], bytes=int(row[1]))


def list_largest(connection: Connection) -> list[UserStorage]:
    total: Counter[str] = Counter()
    for user, size in (
        (versions.c.pushed_by, versions.c.wheel_size + versions.c.source_size),
        (dataset_versions.c.pushed_by, dataset_versions.c.size),
        (runs.c.owner, runs.c.row_bytes + runs.c.log_bytes),
    ):
        for name, stored in connection.execute(select(user, func.sum(size)).group_by(user)):
            total[name] += int(stored or 0)
    return [UserStorage(user=user, bytes=size) for user, size in total.most_common(MOST_USERS)]


def describe_storage(
    measured: tuple[list[StoredKind], list[UserStorage]], data: Path, database: Path | None, quota_bytes: int
) -> Storage:
    disk = shutil.disk_usage(data)
    return Storage(
        kinds=measured[0],
        users=measured[1],
        quota_bytes=quota_bytes,
        database_bytes=None if database is None else database.stat().st_size,
        disk_free_bytes=disk.free,
        disk_bytes=disk.total,
    )
