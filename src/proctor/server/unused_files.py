"""Remove files that nothing refers to any more: a version of an environment, or of a dataset.

Knows nothing of what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from proctor.server.db.tables import dataset_versions, versions
from proctor.server.platform import Platform


async def remove_unused_files(platform: Platform, files: Sequence[str]) -> None:
    """Remove those of the files that no version uses."""
    if not files:
        return
    async with platform.publishing:
        for sha256 in await platform.database.read(find_unused_files, files):
            platform.blobs.remove(sha256)


def find_unused_files(connection: Connection, files: Sequence[str]) -> list[str]:
    used: set[str] = set()
    for column in (versions.c.wheel_sha256, versions.c.source_sha256, dataset_versions.c.sha256):
        used.update(connection.execute(select(column).where(column.in_(files))).scalars())
    return [sha256 for sha256 in files if sha256 not in used]
