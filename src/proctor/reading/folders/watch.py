"""Watch run folders for changes by looking at them while there are followers: four times a second at runs in
progress, twice at others.

Each follower has a queue; one that does not keep up is asked to read everything again. Knows nothing of
HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import msgspec

from proctor.api.feed import FeedEvent, RunChange, describe_change
from proctor.api.runs import RunInfo
from proctor.reading.feed_queue import FeedQueue
from proctor.reading.folders.reader import FolderReader, Stamp, stamp_of
from proctor.store.folder import METADATA, RESULTS
from proctor.store.labels import LABELS
from proctor.support.logs import log

LOOK_SECONDS = 0.25
ENDED_EVERY = 2
"""Finished runs are checked once in this many rounds."""
FIND_EVERY = 8
"""New folders are searched for once in this many rounds."""

Stamps = dict[str, tuple[Stamp | None, ...]]
Readers = Callable[..., Awaitable[Mapping[str, FolderReader]]]
Describe = Callable[[FolderReader], Awaitable[RunInfo]]


class FolderWatch:
    def __init__(self, readers: Readers, describe: Describe) -> None:
        self._readers = readers
        self._describe = describe
        self._queues: set[FeedQueue] = set()
        self._task: asyncio.Task[None] | None = None
        self._has_looked = asyncio.Event()

    async def follow(self) -> AsyncIterator[FeedEvent | None]:
        """What changes from now on, which is the first None; others come while nothing does."""
        queue = FeedQueue()
        self._queues.add(queue)
        if self._task is None:
            self._has_looked.clear()
            self._task = asyncio.create_task(self._look())
        try:
            await self._has_looked.wait()
            yield None
            async for event in queue.events():
                yield event
        finally:
            self._queues.discard(queue)
            if not self._queues and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look(self) -> None:
        known: Stamps | None = None
        looks = 0
        while True:
            try:
                readers = await self._readers(anew=looks % FIND_EVERY == 0)
                rest = keep_ended(readers, known) if known and looks % ENDED_EVERY else {}
                looked_at = {run_id: reader for run_id, reader in readers.items() if run_id not in rest}
                stamps = rest | await asyncio.to_thread(take_stamps, looked_at)
                if known is not None:
                    await self._send_changes(readers, known, stamps)
                known = stamps
                self._has_looked.set()
            except Exception:
                log.exception("could not look at the run folders; trying again")
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)

    async def _send_changes(self, readers: Mapping[str, FolderReader], known: Stamps, stamps: Stamps) -> None:
        now = time.time()
        for run_id in known.keys() - stamps.keys():
            self._send(FeedEvent(kind="run_deleted", at=now, run_id=run_id))
        for run_id, stamp in stamps.items():
            before = known.get(run_id)
            if before is None or before[:-1] != stamp[:-1]:
                readers[run_id].note_change()
                info = await self._describe(readers[run_id])
                self._send(FeedEvent(kind="run", at=now, run=build_change(info, stamp)))
            if before is not None and before[-1] != stamp[-1]:
                self._send(FeedEvent(kind="labels", at=now, run_id=run_id))

    def _send(self, event: FeedEvent) -> None:
        for queue in self._queues:
            queue.send(event)


def keep_ended(readers: Mapping[str, FolderReader], known: Stamps) -> Stamps:
    """What is known of runs that have ended and are still there."""
    return {
        run_id: stamps
        for run_id, stamps in known.items()
        if (reader := readers.get(run_id)) is not None and reader.has_ended
    }


def take_stamps(readers: Mapping[str, FolderReader]) -> Stamps:
    """The labels come last: they are announced by an event of their own."""
    return {
        run_id: tuple(
            stamp_of(path)
            for path in (
                reader.folder / METADATA,
                reader.folder / RESULTS,
                reader.log_path,
                reader.folder / LABELS,
            )
        )
        for run_id, reader in readers.items()
    }


def build_change(info: RunInfo, stamps: tuple[Stamp | None, ...]) -> RunChange:
    """The sizes of its files tell that something was added; labels are announced apart."""
    reached = sum(stamp[1] for stamp in stamps[:-1] if stamp is not None)
    return msgspec.structs.replace(describe_change(info), last_seq=reached)
