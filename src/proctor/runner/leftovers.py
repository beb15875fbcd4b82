"""Remove folders of runs that no host will continue: their own host was killed before it could."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set
from pathlib import Path

from proctor.api.runner import LeftoverRuns
from proctor.client.connection import ServerConnection
from proctor.runner.folder_lock import remove_unlocked

OLD_DAYS = 7


async def remove_leftovers(server: ServerConnection, work: Path, played: Set[str]) -> None:
    """Remove those that the server says are over, and those that no host has continued for days."""
    await asyncio.to_thread(remove_old_folders, work)
    names = {folder.name for folder in work.iterdir()} - played
    if not names:
        return
    over = await server.post("/hosts/leftovers", LeftoverRuns(sorted(names)), LeftoverRuns)
    for name in names.intersection(over.runs):
        await asyncio.to_thread(remove_unlocked, work / name)


def remove_old_folders(work: Path) -> None:
    too_old = time.time() - OLD_DAYS * 86_400
    for folder in work.iterdir():
        if folder.stat().st_mtime < too_old:
            remove_unlocked(folder)
