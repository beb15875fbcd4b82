"""Keep a folder that untrusted commands write within its share of the disk.

No quota of the kernel does that for an ordinary folder, so it is measured: now and then while a command runs,
and before the next one starts. Knows nothing of commands.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from proctor.isolation.command_line import MEGABYTE
from proctor.isolation.untrusted_tree import occupied_bytes
from proctor.support.threads import Threads

WATCH_SECONDS = 1.0
WATCH_SHARE = 0.05
"""The share of time that may be spent measuring: a tree of many files is measured less often."""


class DiskWatch:
    """Measures what some folders occupy, against a limit."""

    def __init__(self, folders: Sequence[Path], disk_mb: int, threads: Threads) -> None:
        self.disk_mb = disk_mb
        self.is_overfull = False
        self._folders = folders
        self._threads = threads
        self._pause_seconds = 0.0
        self._measured_at = float("-inf")

    async def measure(self, times: int = 1) -> bool:
        """Whether the folders hold more than this multiple of the limit."""
        limit, began = self.disk_mb * MEGABYTE, time.monotonic()
        occupied = await self._threads.run(lambda: occupied_bytes(self._folders, times * limit))
        self.is_overfull = occupied > limit
        self._measured_at = time.monotonic()
        self._pause_seconds = (self._measured_at - began) / WATCH_SHARE
        return occupied > times * limit

    async def measure_if_due(self) -> None:
        """Before a command starts. An overfull folder is always due: what was freed must count at once."""
        if self.is_overfull or time.monotonic() - self._measured_at >= self._pause_seconds:
            await self.measure()

    async def watch(self, end: Callable[[], Awaitable[None]]) -> None:
        """Call `end` once the folders hold too much; runs until it is cancelled or that happened."""
        times = 2 if self.is_overfull else 1  # leaves time to delete what is too much
        while True:
            await asyncio.sleep(max(WATCH_SECONDS, self._pause_seconds))
            if await self.measure(times):
                await end()
                return
