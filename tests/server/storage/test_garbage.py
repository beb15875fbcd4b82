"""Garbage is collected on either database: killed at any moment, by two servers at once, and never what is in
use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, update

from proctor.server.db.database import Database
from proctor.server.db.tables import dataset_versions, datasets, files, namespaces
from proctor.server.problems import ConflictError
from proctor.server.storage import records
from proctor.server.storage.blobs import Blob, Blobs
from proctor.server.storage.folder import FolderStore
from proctor.server.storage.garbage import GRACE_SECONDS, Removed, collect_garbage
from proctor.server.storage.local_copies import LocalCopies
from tests.server.storage.looped import in_loop

LATER = 3 * GRACE_SECONDS


class KilledError(BaseException):
    """The process ends here."""


class DyingStore(FolderStore):
    """A store whose server dies before so many objects are removed."""

    lives = 0

    async def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            if self.lives == 0:
                raise KilledError
            self.lives -= 1
            await super().remove([key])


def open_blobs(database: Database, folder: Path, store: FolderStore | None = None) -> Blobs:
    return Blobs(
        database,
        store or FolderStore(folder / "blobs"),
        folder / "incoming",
        LocalCopies(folder / "copies", 2**20),
    )


def refer(connection: Connection, blob: Blob) -> None:
    """What a push does in its transaction."""
    records.refer_to_files(connection, [blob.sha256])
    connection.execute(insert(namespaces).values(name=blob.sha256, kind="user"))
    facts = {"visibility": "private", "description": "", "created_at": 0.0, "updated_at": 0.0}
    connection.execute(insert(datasets).values(id=blob.sha256, owner=blob.sha256, name="data", **facts))
    row = {
        "id": blob.sha256,
        "dataset_id": blob.sha256,
        "number": 1,
        "sha256": blob.sha256,
        "size": blob.size,
    }
    facts = {"format": "jsonl", "columns": [], "pushed_by": "ada", "created_at": 0.0, "pushed_at": 0.0}
    connection.execute(insert(dataset_versions).values(**row, **facts))


def files_in(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in (folder / "blobs").glob("??/*")}


@in_loop
async def test_what_nothing_refers_to_goes_after_the_grace_period_and_what_is_in_use_stays(
    database: Database, tmp_path: Path
) -> None:
    blobs = open_blobs(database, tmp_path)
    used, unused = await blobs.add(b"used"), await blobs.add(b"unused")
    await database.write(refer, used)
    orphan = tmp_path / "blobs" / "ff" / ("f" * 64 + "-0")
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"orphan")

    assert await collect_garbage(database, blobs.store) == Removed(0, 0)
    assert files_in(tmp_path) == {b"used", b"unused", b"orphan"}
    both = await asyncio.gather(
        *(collect_garbage(database, blobs.store, time.time() + LATER) for _ in range(2))
    )

    assert (sum(each.unused for each in both), sum(each.unknown for each in both)) == (1, 1)
    assert files_in(tmp_path) == {b"used"}
    with pytest.raises(FileNotFoundError):
        await blobs.find(unused.sha256)


@in_loop
async def test_a_collection_that_is_killed_anywhere_is_finished_by_the_next(
    database: Database, tmp_path: Path
) -> None:
    store = DyingStore(tmp_path / "blobs")
    blobs = open_blobs(database, tmp_path, store)
    used = await blobs.add(b"used")
    await database.write(refer, used)
    for number in range(4):
        await blobs.add(b"unused %d" % number)

    for day in range(5):  # each dies one object later than the one before
        store.lives = 1
        with suppress(KilledError):
            await collect_garbage(database, store, time.time() + LATER * (day + 1))
        assert b"used" in files_in(tmp_path)

    assert files_in(tmp_path) == {b"used"}


@in_loop
async def test_a_file_that_is_pushed_again_while_it_is_deleted_is_never_lost(
    database: Database, tmp_path: Path
) -> None:
    """The object of the deleted row goes late, after the same content was stored and published again."""
    blobs = open_blobs(database, tmp_path)
    await blobs.add(b"same")
    long_ago = time.time() - LATER
    await database.write(lambda connection: connection.execute(update(files).values(touched_at=long_ago)))
    late = await database.write(records.forget_old, time.time() - GRACE_SECONDS)
    again = await blobs.add(b"same")
    await database.write(refer, again)

    await blobs.store.remove(late)

    async with blobs.local(again.sha256) as path:
        assert path.read_bytes() == b"same"


@in_loop
async def test_a_push_whose_file_was_deleted_before_its_transaction_is_refused(
    database: Database, tmp_path: Path
) -> None:
    blobs = open_blobs(database, tmp_path)
    blob = await blobs.add(b"content")
    await blobs.remove_unused([blob.sha256])

    with pytest.raises(ConflictError, match="push again"):
        await database.write(refer, blob)


@in_loop
async def test_a_deletion_waits_for_the_transaction_that_begins_to_use_the_file(
    database: Database, tmp_path: Path
) -> None:
    blobs = open_blobs(database, tmp_path)
    blob = await blobs.add(b"content")
    begun, wait = asyncio.Event(), time.sleep
    loop = asyncio.get_running_loop()

    def slow_push(connection: Connection) -> None:
        refer(connection, blob)
        loop.call_soon_threadsafe(begun.set)
        wait(0.2)  # the other transaction starts meanwhile, and must wait for this one

    pushing = asyncio.create_task(database.write(slow_push))
    await begun.wait()
    await blobs.remove_unused([blob.sha256])
    await pushing

    async with blobs.local(blob.sha256) as path:
        assert path.read_bytes() == b"content"


@in_loop
async def test_an_object_that_vanished_from_the_store_is_there_again_after_a_push(
    database: Database, tmp_path: Path
) -> None:
    blobs = open_blobs(database, tmp_path)
    blob = await blobs.add(b"content")
    await blobs.store.remove([(await blobs.find(blob.sha256)).key])

    await blobs.add(b"content")

    async with blobs.local(blob.sha256) as path:
        assert path.read_bytes() == b"content"
