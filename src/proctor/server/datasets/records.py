"""Datasets and their versions in the database. Knows nothing of HTTP or of files."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, select, tuple_, update

from proctor.api.common import Page
from proctor.api.datasets import DatasetChange, DatasetInfo, DatasetVersion
from proctor.api.hub import Visibility
from proctor.run import ENDED
from proctor.server.announcements import announce_dataset
from proctor.server.datasets.access import (
    list_roles,
    need_dataset,
    ownership_condition,
    readable_condition,
)
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import dataset_versions, datasets, run_datasets, runs
from proctor.server.hub.access import check_scope
from proctor.server.names import LINES, check_text
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, NotFoundError

LATEST = "latest"
LONGEST_DESCRIPTION = 2_000
MOST_RUNS = 100
"""Of a dataset, in its list."""
HASH_PREFIX = re.compile(r"[0-9a-f]{8,64}")
SHORT_HASH = 12


# Finding


def resolve_version(
    connection: Connection, caller: Caller, owner: str, name: str, wanted: str
) -> tuple[Row[Any], Row[Any]]:
    """A dataset, and its version by `latest` or a prefix of its hash."""
    dataset = need_dataset(connection, caller, owner, name)
    return dataset, find_version(connection, dataset, wanted)


def find_version(connection: Connection, dataset: Row[Any], wanted: str) -> Row[Any]:
    query = newest_first(select(dataset_versions).where(dataset_versions.c.dataset_id == dataset.id))
    slug = f"{dataset.owner}/{dataset.name}"
    if wanted == LATEST:
        found = connection.execute(query.limit(1)).all()
    elif HASH_PREFIX.fullmatch(wanted):
        found = connection.execute(query.where(dataset_versions.c.sha256.startswith(wanted)).limit(2)).all()
    else:
        found = []
    if len(found) > 1:
        raise ConflictError(f"{slug} has several versions that begin with {wanted}; write more of the hash.")
    if not found:
        raise NotFoundError(
            f"{slug} has no version {wanted!r}; a version is `latest`, or its hash or the first 8 or more "
            f"characters of it.",
            version=wanted,
        )
    return found[0]


def newest_first(query: Any) -> Any:
    return query.order_by(dataset_versions.c.number.desc())


def versions_of(connection: Connection, dataset_ids: Sequence[str]) -> list[Row[Any]]:
    """All versions of some datasets, those that were pushed last first."""
    query = select(dataset_versions).where(dataset_versions.c.dataset_id.in_(dataset_ids))
    return list(connection.execute(newest_first(query)))


def find_latest(connection: Connection, dataset_ids: Sequence[str]) -> dict[str, Row[Any]]:
    latest: dict[str, Row[Any]] = {}
    for row in versions_of(connection, dataset_ids):
        latest.setdefault(row.dataset_id, row)
    return latest


# Building answers


def describe_version(row: Row[Any]) -> DatasetVersion:
    return struct_from_row(DatasetVersion, row)


def describe_datasets(connection: Connection, caller: Caller, rows: Sequence[Row[Any]]) -> list[DatasetInfo]:
    held = list_roles(connection, caller, rows)
    latest = find_latest(connection, [row.id for row in rows])
    return [
        struct_from_row(
            DatasetInfo,
            row,
            role=held[row.id],
            latest=describe_version(latest[row.id]) if row.id in latest else None,
        )
        for row in rows
    ]


def describe_dataset(connection: Connection, caller: Caller, owner: str, name: str) -> DatasetInfo:
    return describe_datasets(connection, caller, [need_dataset(connection, caller, owner, name)])[0]


class DatasetQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which datasets to list."""

    owner: str | None = None
    name: str | None = None
    visibility: Visibility | None = None
    mine: bool = False
    limit: int = 50
    cursor: str | None = None


def list_datasets(connection: Connection, caller: Caller, wanted: DatasetQuery) -> Page[DatasetInfo]:
    check_scope(caller)
    query = select(datasets).where(readable_condition(caller))
    if wanted.mine:
        query = query.where(ownership_condition(caller))
    for column in ("owner", "name", "visibility"):
        if value := getattr(wanted, column):
            query = query.where(datasets.c[column] == value)
    key = tuple_(datasets.c.updated_at, datasets.c.id)
    if position := decode_cursor(wanted.cursor, float, str):
        query = query.where(key < position)
    limit = check_limit(wanted.limit)
    newest = (datasets.c.updated_at.desc(), datasets.c.id.desc())
    rows = connection.execute(query.order_by(*newest).limit(limit + 1)).all()
    found = describe_datasets(connection, caller, rows)
    return build_page(found, limit, lambda item: (item.updated_at, item.id))


def list_runs(connection: Connection, dataset_id: str, readable: ColumnElement[bool] | None) -> list[str]:
    """The ids of runs that use a version of a dataset, those started last first."""
    query = (
        select(runs.c.id)
        .join(run_datasets, run_datasets.c.run_id == runs.c.id)
        .join(dataset_versions, dataset_versions.c.id == run_datasets.c.version_id)
        .where(dataset_versions.c.dataset_id == dataset_id)
        .distinct()
        .add_columns(runs.c.created_at)
        .order_by(runs.c.created_at.desc())
        .limit(MOST_RUNS)
    )
    return list(connection.execute(query if readable is None else query.where(readable)).scalars())


def save_count(connection: Connection, version_id: str, rows: int, columns: list[str]) -> None:
    """What was counted of a version that was pushed without."""
    uncounted = (dataset_versions.c.id == version_id) & dataset_versions.c.rows.is_(None)
    connection.execute(update(dataset_versions).where(uncounted).values(rows=rows, columns=columns))


# Changing


def change_dataset(
    connection: Connection, caller: Caller, owner: str, name: str, wanted: DatasetChange
) -> DatasetInfo:
    row = need_dataset(connection, caller, owner, name, "owner")
    announce_dataset(connection, row, wanted.visibility)
    check_text(wanted.description or "", "description", longest=LONGEST_DESCRIPTION, allowed=LINES)
    given = {"visibility": wanted.visibility, "description": wanted.description}
    values = {name: value for name, value in given.items() if value is not None}
    connection.execute(
        update(datasets).where(datasets.c.id == row.id).values(**values, updated_at=time.time())
    )
    return describe_dataset(connection, caller, owner, name)


def remove_dataset(connection: Connection, caller: Caller, owner: str, name: str) -> list[str]:
    """Returns the hashes of its files."""
    row = need_dataset(connection, caller, owner, name, "owner")
    known = versions_of(connection, [row.id])
    refuse_in_use(connection, f"{owner}/{name}", known)
    connection.execute(delete(datasets).where(datasets.c.id == row.id))
    announce_dataset(connection, row)
    return [each.sha256 for each in known]


def remove_version(connection: Connection, caller: Caller, owner: str, name: str, wanted: str) -> list[str]:
    dataset = need_dataset(connection, caller, owner, name, "owner")
    row = find_version(connection, dataset, wanted)
    refuse_in_use(connection, f"{owner}/{name}@{row.sha256[:SHORT_HASH]}", [row])
    connection.execute(delete(dataset_versions).where(dataset_versions.c.id == row.id))
    announce_dataset(connection, dataset)
    return [row.sha256]


def refuse_in_use(connection: Connection, what: str, versions: Sequence[Row[Any]]) -> None:
    query = (
        select(runs.c.id)
        .join(run_datasets, run_datasets.c.run_id == runs.c.id)
        .where(run_datasets.c.version_id.in_([row.id for row in versions]), runs.c.status.not_in(ENDED))
    )
    run = connection.execute(query.limit(1)).scalar()
    if run is not None:
        raise ConflictError(f"{what} is used by the run {run}; stop it first.", code="in_use", run=run)
