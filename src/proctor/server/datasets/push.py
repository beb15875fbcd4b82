"""Publish a version of a dataset: whole, or not at all. Knows nothing of HTTP.

The server never reads a dataset's rows: a file made to exhaust its reader does no harm here.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from sqlalchemy import Connection, Row, func, insert, select, update

from proctor.api.bounds import LONGEST_NAME
from proctor.api.common import new_id
from proctor.api.datasets import DATASET_NAME, DatasetFormat, DatasetPushResult
from proctor.api.hub import Visibility
from proctor.server.announcements import announce_dataset
from proctor.server.datasets.access import find_dataset, need_dataset
from proctor.server.datasets.records import LONGEST_DESCRIPTION, describe_datasets, describe_version
from proctor.server.db.tables import dataset_versions, datasets
from proctor.server.hub.access import need_namespace
from proctor.server.names import LINES, check_text
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, InvalidError
from proctor.server.quotas import check_storage
from proctor.server.settings import Quotas
from proctor.server.storage.blobs import SHA256, Blob

MOST_VERSIONS = 1_000
MOST_ROWS = 2**53
Columns = list[Annotated[str, Meta(max_length=LONGEST_NAME)]]


class DatasetPush(msgspec.Struct, frozen=True, kw_only=True):
    """What is pushed, besides the file."""

    owner: str
    name: str
    sha256: str
    format: DatasetFormat
    rows: int | None = None
    columns: list[str] = []
    visibility: Visibility | None = None
    """None: unchanged; private if it is new."""
    description: str | None = None


def parse_columns(text: str) -> list[str]:
    try:
        columns = msgspec.json.decode(text, type=Columns)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidError(f"columns must be a list of names as JSON: {error}.", field="columns") from error
    for column in columns:
        check_text(column, "columns")
    return columns


def check_push(push: DatasetPush) -> None:
    """What can be refused without any lookup."""
    if not DATASET_NAME.fullmatch(push.name):
        raise InvalidError(
            f"{push.name!r} is not a name for a dataset: use up to 100 letters, digits, '.', '_' and '-', "
            f"and begin and end with a letter or digit.",
            field="name",
        )
    if not SHA256.fullmatch(push.sha256):
        raise InvalidError("The version must be the SHA-256 of the file, in lower case.", field="sha256")
    if push.rows is not None and not 0 <= push.rows <= MOST_ROWS:
        raise InvalidError(f"rows must be between 0 and {MOST_ROWS}.", field="rows")
    check_text(push.description or "", "description", longest=LONGEST_DESCRIPTION, allowed=LINES)


def check_may_push(connection: Connection, caller: Caller, push: DatasetPush) -> Row[Any] | None:
    """Refuse callers who may not push this; the dataset, if it exists."""
    need_namespace(connection, caller, push.owner)
    if find_dataset(connection, push.owner, push.name) is None:
        return None
    row = need_dataset(connection, caller, push.owner, push.name, "write")
    if push.visibility not in (None, row.visibility):
        need_dataset(connection, caller, push.owner, push.name, "owner")
    return row


def check_room(connection: Connection, caller: Caller, push: DatasetPush, size: int, quotas: Quotas) -> None:
    """Refuse a push for which its user has no room left; content that the dataset has takes none."""
    dataset = check_may_push(connection, caller, push)
    if dataset is None or find_content(connection, dataset.id, push.sha256) is None:
        check_storage(connection, caller.user, quotas, size)


def publish(connection: Connection, caller: Caller, push: DatasetPush, blob: Blob) -> DatasetPushResult:
    """Make the file a version; the same content again becomes the latest version."""
    dataset = check_may_push(connection, caller, push) or add_dataset(connection, push)
    same = find_content(connection, dataset.id, push.sha256)
    now = time.time()
    number, known = count_versions(connection, dataset.id)
    if same is None:
        refuse_many(known, dataset)
        add_version(connection, caller, push, blob, dataset.id, number + 1, now)
    else:
        refuse_other_format(same, push)
        latest = {"number": number + 1, "pushed_at": now}
        connection.execute(update(dataset_versions).where(dataset_versions.c.id == same.id).values(latest))
    refresh_dataset(connection, push, dataset.id, now)
    row = find_dataset(connection, push.owner, push.name)
    version = find_content(connection, dataset.id, push.sha256)
    assert row is not None
    assert version is not None
    announce_dataset(connection, row)
    return DatasetPushResult(
        dataset=describe_datasets(connection, caller, [row])[0],
        version=describe_version(version),
        created=same is None,
    )


def find_content(connection: Connection, dataset_id: str, sha256: str) -> Row[Any] | None:
    query = select(dataset_versions).where(
        dataset_versions.c.dataset_id == dataset_id, dataset_versions.c.sha256 == sha256
    )
    return connection.execute(query).one_or_none()


def count_versions(connection: Connection, dataset_id: str) -> tuple[int, int]:
    """The highest number, and how many versions there are."""
    query = select(func.coalesce(func.max(dataset_versions.c.number), 0), func.count())
    highest, count = connection.execute(query.where(dataset_versions.c.dataset_id == dataset_id)).one()
    return int(highest), int(count)


def refuse_many(known: int, dataset: Row[Any]) -> None:
    if known >= MOST_VERSIONS:
        raise ConflictError(
            f"{dataset.owner}/{dataset.name} has {MOST_VERSIONS:,} versions, which is the most there may be; "
            f"delete some first.",
            code="too_many_versions",
        )


def refuse_other_format(same: Row[Any], push: DatasetPush) -> None:
    if same.format != push.format:
        raise ConflictError(
            f"{push.owner}/{push.name} has exactly this content as {same.format}, not as {push.format}."
        )


def add_dataset(connection: Connection, push: DatasetPush) -> Row[Any]:
    now = time.time()
    connection.execute(
        insert(datasets).values(
            id=new_id("data"),
            owner=push.owner,
            name=push.name,
            visibility=push.visibility or "private",
            description=push.description or "",
            created_at=now,
            updated_at=now,
        )
    )
    row = find_dataset(connection, push.owner, push.name)
    assert row is not None
    return row


def add_version(
    connection: Connection,
    caller: Caller,
    push: DatasetPush,
    blob: Blob,
    dataset_id: str,
    number: int,
    now: float,
) -> None:
    connection.execute(
        insert(dataset_versions).values(
            id=new_id("content"),
            dataset_id=dataset_id,
            number=number,
            sha256=blob.sha256,
            size=blob.size,
            format=push.format,
            rows=push.rows,
            columns=push.columns,
            pushed_by=caller.user,
            created_at=now,
            pushed_at=now,
        )
    )


def refresh_dataset(connection: Connection, push: DatasetPush, dataset_id: str, now: float) -> None:
    values: dict[str, Any] = {"updated_at": now}
    if push.visibility is not None:
        values["visibility"] = push.visibility
    if push.description is not None:
        values["description"] = push.description
    connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(values))
