"""Move the files of a stopped server from one store to another; stopped halfway, it continues where it was.

Each file is copied and verified; those that are there already are not copied again. The server uses the other
store only once everything is there, and the old copies stay. Knows nothing of terminals.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from proctor.errors import ConfigError
from proctor.server.db.database import Database
from proctor.server.private_files import create_private, make_private_folder
from proctor.server.storage import opening, records
from proctor.server.storage.blobs import verify
from proctor.server.storage.contract import BlobStore


class Moved(NamedTuple):
    """What a move found."""

    copied: int
    there_before: int
    missing: list[str]
    """Hashes of files that the old store has lost."""


async def move_files(
    database: Database,
    source: BlobStore,
    target: BlobStore,
    work: Path,
    report: Callable[[int, int], None],
) -> Moved:
    """Copy every file, and make the target the server's store."""
    if source.address == target.address:
        raise ConfigError(f"The files are in {opening.describe_address(target.address)} already.")
    make_private_folder(work)
    total = database.read_now(opening.find_recorded)[1]
    copied, there, missing = 0, 0, list[str]()
    after = ""
    while rows := database.read_now(records.list_files, after):
        for row in rows:
            if await target.find_size(row.key) == row.size:
                there += 1
            else:
                try:
                    await copy_file(source, target, row.key, row.sha256, work)
                    copied += 1
                except FileNotFoundError:
                    missing.append(row.sha256)
            report(copied + there + len(missing), total)
        after = rows[-1].sha256
    database.write_now(opening.save_setting, opening.STORAGE, target.address)
    return Moved(copied, there, missing)


async def copy_file(source: BlobStore, target: BlobStore, key: str, sha256: str, work: Path) -> None:
    place = work / secrets.token_hex(8)
    try:
        with create_private(place) as file:
            async for block in verify(source.read(key), sha256):
                file.write(block)
        await target.put(key, place)
    finally:
        place.unlink(missing_ok=True)
