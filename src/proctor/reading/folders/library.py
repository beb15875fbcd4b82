"""Run folders as a library: found on disk, described by their metadata, watched while there are followers.

A run is called what its folder is called; of several folders with one name, all but the first also have a
digest of their path. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from proctor.api.feed import FeedEvent
from proctor.api.refusals import NotFoundError
from proctor.api.run_list import RunFacets, RunListQuery, RunPage, SuiteInfo
from proctor.api.runs import RunInfo
from proctor.reading.folders.reader import FolderReader, RowsGoneError
from proctor.reading.folders.watch import FolderWatch
from proctor.reading.run_lists import build_suite, count_facets, list_page, list_suites
from proctor.run import ENDED
from proctor.store.index import run_name

FOUND_SECONDS = 2.0
"""How long a list of folders holds."""
KEPT_RUNS = 32
KEPT_ROLLOUTS = 400_000
"""Of runs whose rows stay indexed in memory; the one asked for last always does."""
MOST_LIVE = 8
"""Runs in progress whose rows a list reads for their scores."""


class FolderLibrary:
    """The runs below some folders."""

    def __init__(self, find: Callable[[], Sequence[Path]]) -> None:
        self._find = find
        """Looks for folders; called in a thread."""
        self._readers: dict[str, FolderReader] = {}
        self._found_at = float("-inf")
        self._finding = asyncio.Lock()
        self._opened: OrderedDict[str, FolderReader] = OrderedDict()
        self._watch = FolderWatch(self.readers, self.describe)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()

    # Finding

    async def readers(self, *, anew: bool = False) -> dict[str, FolderReader]:
        """Every run by its id."""
        async with self._finding:
            if anew or time.monotonic() - self._found_at > FOUND_SECONDS:
                self._take(await asyncio.to_thread(self._find))
                self._found_at = time.monotonic()
        return self._readers

    def _take(self, folders: Sequence[Path]) -> None:
        known = {reader.folder: reader for reader in self._readers.values()}
        found: dict[str, FolderReader] = {}
        for run_id, folder in name_folders(folders).items():
            reader = known.pop(folder, None)
            found[run_id] = (
                reader if reader is not None and reader.id == run_id else FolderReader(run_id, folder)
            )
        for gone in known.values():
            self._opened.pop(gone.id, None)
            gone.close()
        self._readers = found

    async def open(self, run_id: str) -> FolderReader:
        reader = (await self.readers()).get(run_id)
        if reader is None:
            reader = (await self.readers(anew=True)).get(run_id)
        if reader is None:
            raise NotFoundError(f"There is no run {run_id[:200]!r} in these folders.")
        self._keep(reader)
        return reader

    def _keep(self, reader: FolderReader) -> None:
        """Keep the rows of the runs that were asked for last, as many as fit into memory."""
        self._opened[reader.id] = reader
        self._opened.move_to_end(reader.id)
        rollouts = sum(each.indexed for each in self._opened.values())
        while len(self._opened) > 1 and (len(self._opened) > KEPT_RUNS or rollouts > KEPT_ROLLOUTS):
            _, oldest = self._opened.popitem(last=False)
            rollouts -= oldest.indexed
            oldest.forget_rows()

    # Lists

    async def describe_all(self) -> list[RunInfo]:
        readers = list((await self.readers()).values())
        infos = await asyncio.to_thread(lambda: [reader.describe() for reader in readers])
        live = [index for index, info in enumerate(infos) if info.status not in ENDED]
        for index in live[:MOST_LIVE]:
            infos[index] = await self.describe(readers[index])
        return infos

    async def describe(self, reader: FolderReader) -> RunInfo:
        """A run in progress with the score of its rows so far."""
        self._keep(reader)
        try:
            return await reader.info()
        except (RowsGoneError, OSError):
            return await asyncio.to_thread(reader.describe)

    async def list_runs(self, query: RunListQuery) -> RunPage:
        return list_page(await self.describe_all(), query)

    async def facets(self, query: RunListQuery) -> RunFacets:
        return count_facets(await self.describe_all(), query)

    async def suites(self) -> list[SuiteInfo]:
        return list_suites(await self.describe_all(), label_of)

    async def suite(self, suite_id: str) -> SuiteInfo:
        found = [info for info in await self.describe_all() if info.suite == suite_id]
        if not found:
            raise NotFoundError(f"There is no sweep {suite_id[:200]!r} in these folders.")
        return build_suite(suite_id, found, label_of)

    # Watching

    def changes(self) -> AsyncIterator[FeedEvent | None]:
        return self._watch.follow()


def name_folders(folders: Sequence[Path]) -> dict[str, Path]:
    """The id of each folder, in the given order."""
    first = {run_name(folder): folder for folder in sorted(folders, key=str, reverse=True)}
    named: dict[str, Path] = {}
    for folder in folders:
        name = run_name(folder)
        if first[name] != folder:
            name += "-" + hashlib.sha256(str(folder).encode(errors="backslashreplace")).hexdigest()[:6]
        named[name] = folder
    return named


def label_of(run: RunInfo) -> dict[str, str]:
    """What a sweep chose for a run, by setting: its name is `key=value` words."""
    pairs = (word.partition("=") for word in run.name.split())
    return {key: value for key, equals, value in pairs if equals}
