"""Read the rows of datasets for people: in a sandbox, a few files at a time, and one per reader.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from weakref import WeakValueDictionary

from proctor.errors import ConfigError
from proctor.runner.dataset_scan.request import DatasetScan
from proctor.runner.dataset_scan.scan import ScanLimitError, ScanRules, scan_dataset
from proctor.server.private_files import empty_sandbox_folder
from proctor.server.problems import ApiError, InvalidError
from proctor.server.quotas import is_visitor
from proctor.server.settings import Settings

AT_ONCE = 2
PREVIEW_SECONDS = 60.0
COUNT_SECONDS = 300.0
UNAVAILABLE = 503


class DatasetInspector:
    """Previews and counts, for all users of a server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(AT_ONCE)
        self._visitor = asyncio.Lock()
        """All visitors together leave room for those who are logged in."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One per reader, so that a reader with many slow files delays no others."""
        self._work = settings.data / "scans"
        empty_sandbox_folder(self._work)

    async def preview(self, reader: str, file: Path, format_: str, rows: int) -> DatasetScan:
        return await self._scan(reader, file, format_, PREVIEW_SECONDS, rows, counts=False)

    async def count(self, reader: str, file: Path, format_: str) -> DatasetScan:
        """The number of rows and the columns; a row that cannot be read is the scan's problem."""
        return await self._scan(reader, file, format_, COUNT_SECONDS, 0, counts=True)

    async def _scan(
        self, reader: str, file: Path, format_: str, seconds: float, rows: int, *, counts: bool
    ) -> DatasetScan:
        rules = ScanRules(
            seconds=seconds,
            hidden=(self._settings.data,),
            allow_no_sandbox=self._settings.allow_no_sandbox,
            work=self._work,
        )
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._turns.setdefault(reader, asyncio.Lock()))
            if is_visitor(reader):
                await turn.enter_async_context(self._visitor)
            await turn.enter_async_context(self._free)
            try:
                return await scan_dataset(file, format_, rules, shown_rows=rows, counts=counts)
            except ScanLimitError as error:
                raise InvalidError(f"{error} Pull the dataset to look at it.") from error
            except ConfigError as error:  # no sandbox on this machine
                raise ApiError(
                    f"This server cannot read datasets. {error}", code="no_backend", status=UNAVAILABLE
                ) from error
