"""Watch run folders for changes by looking at them twice a second, while somebody follows.

Each follower has a queue; one that does not keep up is told to ask for everything again. Knows nothing of
HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from proctor.api.feed import FeedEvent, RunChange
from proctor.api.runs import RunInfo
from proctor.reading.folders.reader import FolderReader, Stamp, stamp_of
from proctor.store.folder import METADATA, RESULTS
from proctor.support.logs import log

LOOK_SECONDS = 0.5
FIND_EVERY = 4
"""New folders are looked for at every so many looks."""
QUIET_SECONDS = 15.0
MOST_WAITING = 500

Stamps = dict[str, tuple[Stamp | None, ...]]
Readers = Callable[..., Awaitable[Mapping[str, FolderReader]]]
Describe = Callable[[FolderReader], Awaitable[RunInfo]]


class FolderWatch:
    def __init__(self, readers: Readers, describe: Describe) -> None:
        self._readers = readers
        self._describe = describe
        self._queues: set[asyncio.Queue[FeedEvent]] = set()
        self._task: asyncio.Task[None] | None = None

    async def follow(self) -> AsyncIterator[FeedEvent | None]:
        """What changes from now on; None while nothing does."""
        queue: asyncio.Queue[FeedEvent] = asyncio.Queue(MOST_WAITING)
        self._queues.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        try:
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), QUIET_SECONDS)
                except TimeoutError:
                    yield None
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
                stamps = await asyncio.to_thread(take_stamps, readers)
                if known is not None:
                    await self._tell(readers, known, stamps)
                known = stamps
            except Exception:
                log.exception("could not look at the run folders; trying again")
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)

    async def _tell(self, readers: Mapping[str, FolderReader], known: Stamps, stamps: Stamps) -> None:
        now = time.time()
        for run_id in known.keys() - stamps.keys():
            self._send(FeedEvent(kind="run_deleted", at=now, run_id=run_id))
        for run_id, stamp in stamps.items():
            if known.get(run_id) != stamp:
                info = await self._describe(readers[run_id])
                self._send(FeedEvent(kind="run", at=now, run=build_change(info, stamp)))

    def _send(self, event: FeedEvent) -> None:
        for queue in self._queues:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(FeedEvent(kind="resync", at=event.at))
            else:
                queue.put_nowait(event)


def take_stamps(readers: Mapping[str, FolderReader]) -> Stamps:
    return {
        run_id: tuple(
            stamp_of(path) for path in (reader.folder / METADATA, reader.folder / RESULTS, reader.log_path)
        )
        for run_id, reader in readers.items()
    }


def build_change(info: RunInfo, stamps: tuple[Stamp | None, ...]) -> RunChange:
    return RunChange(
        id=info.id,
        status=info.status,
        progress=info.progress,
        score=info.score,
        cost_usd=info.cost_usd,
        input_tokens=info.input_tokens,
        output_tokens=info.output_tokens,
        last_seq=sum(stamp[1] for stamp in stamps if stamp is not None),
        cause=info.cause,
        ended_at=info.ended_at,
    )
