"""Files that arrive in parts: what has arrived stays, and the next part continues there.

An upload belongs to one person, is dropped when nothing arrives for a day, and becomes a version only when it
is whole. Knows nothing of HTTP.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from proctor.api.common import new_id
from proctor.api.datasets import DatasetUploadInfo, NewDatasetUpload
from proctor.server.datasets.push import DatasetPush, check_may_push
from proctor.server.datasets.upload_parts import KEPT_SECONDS
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import dataset_uploads
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, NotFoundError
from proctor.server.quotas import check_storage
from proctor.server.settings import Quotas

MOST_OPEN = 8
"""Of one person."""
UNKNOWN_HASH = "0" * 64
"""Stands for the hash of a file that has not arrived."""


# In the database


def add_upload(
    connection: Connection, caller: Caller, owner: str, name: str, new: NewDatasetUpload, quotas: Quotas
) -> Row[Any]:
    """Reserve room for a file; refused if its person has none left, or too many files under way."""
    check_may_push(connection, caller, describe_push(owner, name, UNKNOWN_HASH, new))
    check_storage(connection, caller.user, quotas, new.size)  # locks what they store, and so the count below
    mine = select(func.count()).where(dataset_uploads.c.person == caller.user)
    if connection.execute(mine).scalar_one() >= MOST_OPEN:
        raise ConflictError(
            f"You have {MOST_OPEN} uploads under way, the most there may be; finish or cancel one.",
            code="too_many",
        )
    now = time.time()
    id_ = new_id("upload")
    values = {
        "id": id_,
        "person": caller.user,
        "owner": owner,
        "name": name,
        "format": new.format,
        "size": new.size,
        "visibility": new.visibility,
        "description": new.description,
        "created_at": now,
        "touched_at": now,
    }
    connection.execute(insert(dataset_uploads).values(values))
    return need_upload(connection, caller, id_)


def describe_push(
    owner: str,
    name: str,
    sha256: str,
    wanted: NewDatasetUpload | Row[Any],
    rows: int | None = None,
    columns: list[str] | None = None,
) -> DatasetPush:
    """The push that a whole upload is."""
    return DatasetPush(
        owner=owner,
        name=name,
        sha256=sha256,
        format=wanted.format,
        rows=rows,
        columns=columns or [],
        visibility=wanted.visibility,
        description=wanted.description,
    )


def need_upload(connection: Connection, caller: Caller, upload_id: str) -> Row[Any]:
    caller.need("environments:write")
    mine = (dataset_uploads.c.id == upload_id) & (dataset_uploads.c.person == caller.user)
    row = connection.execute(select(dataset_uploads).where(mine)).one_or_none()
    if row is None or caller.kind != "user":
        raise NotFoundError(
            "There is no such upload of yours: it was finished, cancelled, or dropped after a day without a "
            "part. Start again."
        )
    return row


def list_uploads(connection: Connection, caller: Caller) -> list[Row[Any]]:
    caller.need("environments:write")
    query = select(dataset_uploads).where(dataset_uploads.c.person == caller.user)
    return list(connection.execute(query.order_by(dataset_uploads.c.created_at)))


def touch_upload(connection: Connection, upload_id: str) -> bool:
    """Whether the upload is still there."""
    mine = dataset_uploads.c.id == upload_id
    touched = connection.execute(update(dataset_uploads).where(mine).values(touched_at=time.time()))
    return bool(touched.rowcount)


def remove_upload(connection: Connection, upload_id: str) -> None:
    connection.execute(delete(dataset_uploads).where(dataset_uploads.c.id == upload_id))


def remove_old(connection: Connection, now: float) -> None:
    """Drop abandoned uploads."""
    connection.execute(delete(dataset_uploads).where(dataset_uploads.c.touched_at < now - KEPT_SECONDS))


def describe_upload(row: Row[Any], received: int) -> DatasetUploadInfo:
    return struct_from_row(
        DatasetUploadInfo, row, received=received, expires_at=row.touched_at + KEPT_SECONDS
    )
