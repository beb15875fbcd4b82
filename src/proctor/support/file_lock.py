"""Hold a lock on a file against all other processes on this machine; the kernel releases it when one dies."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

LOCK_POLL_SECONDS = 0.1


@asynccontextmanager
async def hold_file_lock(file: Path) -> AsyncIterator[None]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("w") as opened_file:
        while True:
            try:
                fcntl.flock(opened_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
