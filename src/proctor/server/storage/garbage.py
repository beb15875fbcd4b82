"""Remove files that nothing refers to: those that the database knows, and those that it does not.

It may be killed at any moment, and several servers may do it at once: a row goes first, in a transaction that
finds its file unused and old, and its object after it. An object whose row is gone is found by listing the
store. Nothing younger than the grace period is touched. Knows nothing of HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.server.db.database import Database
from proctor.server.db.tables import dataset_uploads, server_settings
from proctor.server.storage import records
from proctor.server.storage.contract import BlobStore
from proctor.server.storage.opening import MARKER

GRACE_SECONDS = 86_400.0
"""An upload takes less, also one that is published only after a long check."""
LIST_EVERY_SECONDS = 86_400.0
LISTED_AT = "storage_listed_at"
UPLOADS = "uploads/"
"""Keys of parts of files that are still arriving."""


class Removed(NamedTuple):
    unused: int
    unknown: int


async def collect_garbage(database: Database, store: BlobStore, now: float | None = None) -> Removed:
    """Remove what is unused; what the database does not know, once a day."""
    now = time.time() if now is None else now
    unused = await remove_unused(database, store, now - GRACE_SECONDS)
    if await database.write(claim_listing, now):
        return Removed(unused, await remove_unknown(database, store, now - GRACE_SECONDS))
    return Removed(unused, 0)


async def remove_unused(database: Database, store: BlobStore, before: float) -> int:
    count = 0
    while keys := await database.write(records.forget_old, before):
        await store.remove(keys)
        count += len(keys)
    return count


async def remove_unknown(database: Database, store: BlobStore, before: float) -> int:
    count = 0
    async for found in store.list_objects():
        old = [each.key for each in found if each.modified_at < before and each.key != MARKER]
        if not old:
            continue
        parts = [key for key in old if key.startswith(UPLOADS)]
        known = await database.read(find_arriving, parts)
        known |= await database.write(records.adopt_known, [key for key in old if key not in parts])
        unknown = [key for key in old if key not in known]
        await store.remove(unknown)
        count += len(unknown)
    return count


def find_arriving(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those of the keys whose upload is under way."""
    by_upload = {key: key.split("/")[1] for key in keys}
    query = select(dataset_uploads.c.id).where(dataset_uploads.c.id.in_(set(by_upload.values())))
    under_way = set(connection.execute(query).scalars())
    return {key for key, upload in by_upload.items() if upload in under_way}


def claim_listing(connection: Connection, now: float) -> bool:
    """Whether it is this caller's turn to list the store: one in a day, of all servers."""
    mine = server_settings.c.name == LISTED_AT
    known = connection.execute(select(server_settings.c.value).where(mine)).scalar()
    if known is None:
        try:
            with connection.begin_nested():
                connection.execute(insert(server_settings).values(name=LISTED_AT, value=str(now)))
        except IntegrityError:
            return False
        return True
    if float(known) > now - LIST_EVERY_SECONDS:
        return False
    claimed = update(server_settings).where(mine, server_settings.c.value == known).values(value=str(now))
    return connection.execute(claimed).rowcount == 1
