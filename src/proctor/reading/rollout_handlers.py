"""Handlers of the routes that read a run's rollouts. What takes long is done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from proctor.api.refusals import InvalidError, NotFoundError
from proctor.api.rollout_list import (
    Distribution,
    FailureGroup,
    RolloutPage,
    RolloutViewQuery,
    TaskPage,
)
from proctor.api.rollout_view import EventWindow, RolloutDiff, RolloutView, SearchHit, SearchQuery, SentCall
from proctor.reading.diffs import build_diff
from proctor.reading.distribution import compute_distribution
from proctor.reading.event_window import (
    read_file_change,
    read_image_of_event,
    read_sent_call,
    read_window,
)
from proctor.reading.exchange import JSON, NDJSON, Download, ReadRequest
from proctor.reading.failures import find_end_time, list_failures
from proctor.reading.library import Batch, RunLibrary, RunReader
from proctor.reading.neighbors import find_neighbors
from proctor.reading.replay_view import build_view
from proctor.reading.replays import ReplayCache, UnreadableRowError
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import list_rollouts
from proctor.reading.search import MOST_HITS_PER_ROLLOUT, Needle, find_hits
from proctor.reading.task_groups import list_tasks
from proctor.store.replay import RolloutReplay
from proctor.trace import FileChange

IMAGE_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "content-disposition": "inline",
    "cache-control": "private, max-age=3600",
}

FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.05, 0.4
"""How long a search waits for rows that are still being read, before it looks at those that were."""

replays = ReplayCache()
_encode_line = msgspec.json.Encoder().encode


# Lists


async def get_rollouts(library: RunLibrary, request: ReadRequest) -> RolloutPage:
    return await asyncio.to_thread(list_rollouts, await open_index(library, request), request.query)


async def get_tasks(library: RunLibrary, request: ReadRequest) -> TaskPage:
    return await asyncio.to_thread(list_tasks, await open_index(library, request), request.query)


async def get_distribution(library: RunLibrary, request: ReadRequest) -> Distribution:
    return await asyncio.to_thread(compute_distribution, await open_index(library, request), request.query)


async def get_failures(library: RunLibrary, request: ReadRequest) -> list[FailureGroup]:
    reader = await library.open(request.path["run_id"])
    groups = await asyncio.to_thread(list_failures, await reader.index(whole=True))
    return [await add_log_line(reader, group) for group in groups]


async def add_log_line(reader: RunReader, group: FailureGroup) -> FailureGroup:
    at = find_end_time(group)
    number = None if at is None else await reader.log_number_at(at)
    return msgspec.structs.replace(group, log_at=number)


async def open_index(library: RunLibrary, request: ReadRequest) -> RolloutIndex:
    reader = await library.open(request.path["run_id"])
    return await reader.index()


# One rollout


class OpenRollout(msgspec.Struct, frozen=True):
    """One rollout, found."""

    reader: RunReader
    index: RolloutIndex
    slot: int

    async def raw(self) -> bytes:
        return await self.reader.row(
            self.index.tasks[self.index.task[self.slot]], self.index.number[self.slot]
        )

    async def replay(self) -> RolloutReplay:
        return await asyncio.to_thread(self.decode, await self.raw())

    def decode(self, raw: bytes) -> RolloutReplay:
        return decode_slot(self.index, self.slot, raw)

    async def view(self, query: RolloutViewQuery) -> RolloutView:
        raw = await self.raw()
        return await asyncio.to_thread(self.build, raw, query)

    def build(self, raw: bytes, query: RolloutViewQuery) -> RolloutView:
        entry = self.index.entry(self.slot)
        replay = self.decode(raw)
        view = build_view(self.reader.id, entry, replay, self.reader.price_of, len(raw), query.most_events)
        return msgspec.structs.replace(view, neighbours=find_neighbors(self.index, self.slot, query))


def decode_slot(index: RolloutIndex, slot: int, raw: bytes) -> RolloutReplay:
    return replays.decode(raw, index.tasks[index.task[slot]], index.number[slot])


async def open_rollout(library: RunLibrary, run_id: str, key: str, number: int) -> OpenRollout:
    reader = await library.open(run_id)
    index = await reader.index()
    slot = index.find_slot(key, number)
    if slot is None and not index.complete:
        index = await reader.index(whole=True)
        slot = index.find_slot(key, number)
    if slot is None:
        raise NotFoundError(f"Run {run_id} has no rollout {key}/{number}.")
    return OpenRollout(reader, index, slot)


async def find_rollout(library: RunLibrary, request: ReadRequest) -> OpenRollout:
    return await open_rollout(library, request.path["run_id"], request.path["key"], request.number("number"))


async def get_rollout(library: RunLibrary, request: ReadRequest) -> RolloutView:
    return await (await find_rollout(library, request)).view(request.query)


async def get_events(library: RunLibrary, request: ReadRequest) -> EventWindow:
    replay = await (await find_rollout(library, request)).replay()
    return await asyncio.to_thread(read_window, replay, request.query)


async def get_call(library: RunLibrary, request: ReadRequest) -> SentCall:
    rollout = await find_rollout(library, request)
    tools = (await rollout.reader.metadata()).get("tools")
    shared = tools if isinstance(tools, list) else []
    return read_sent_call(await rollout.replay(), request.number("index"), shared)


async def get_file(library: RunLibrary, request: ReadRequest) -> FileChange:
    return read_file_change(await (await find_rollout(library, request)).replay(), request.number("index"))


async def get_image(library: RunLibrary, request: ReadRequest) -> Download:
    replay = await (await find_rollout(library, request)).replay()
    image = read_image_of_event(replay, request.number("event"), request.number("part"))
    return Download(image.media_type, image.data, IMAGE_HEADERS)


async def get_raw(library: RunLibrary, request: ReadRequest) -> Download:
    return Download(JSON, await (await find_rollout(library, request)).raw())


# Two rollouts


async def get_diff(library: RunLibrary, request: ReadRequest) -> RolloutDiff:
    one = await open_rollout(library, *split_address(request.query.a, "a"))
    other = await open_rollout(library, *split_address(request.query.b, "b"))
    raws = await one.raw(), await other.raw()

    def build() -> RolloutDiff:
        a, b = one.decode(raws[0]), other.decode(raws[1])
        everything = RolloutViewQuery()
        return build_diff(a, b, one.build(raws[0], everything), other.build(raws[1], everything))

    return await asyncio.to_thread(build)


def split_address(word: str, field: str) -> tuple[str, str, int]:
    """Run, key and number."""
    run, _, rest = word.partition("/")
    key, _, number = rest.partition("/")
    if not (run and key and number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidError(f"{field} is RUN/KEY/NUMBER, as in the address of a rollout.", field=field)
    return run, key, int(number)


# Search


async def search_run(library: RunLibrary, request: ReadRequest) -> Download:
    reader = await library.open(request.path["run_id"])
    await reader.index(patience_seconds=0)  # one that cannot be read is refused before the answer begins
    return Download(NDJSON, stream_hits(reader, request.query), {"x-accel-buffering": "no"})


async def stream_hits(reader: RunReader, query: SearchQuery) -> AsyncIterator[bytes]:
    """One hit per line, as they are found. The search stops when the client stops reading.

    While the rows of a large run are still being read for the first time, it searches those that were.
    """
    needle, left = Needle(query.q), query.limit
    most = MOST_HITS_PER_ROLLOUT if query.number is None else query.limit
    start, look_seconds = 0, FIRST_LOOK_SECONDS
    while True:
        index = await reader.index(patience_seconds=look_seconds)
        look_seconds = min(2 * look_seconds, LONGEST_LOOK_SECONDS)
        is_whole = index.complete
        slots, start = list_searched(index, query, start)
        async for batch in reader.batches(index, slots):
            hits = (await asyncio.to_thread(search_batch, needle, index, batch, most))[:left]
            if hits:
                yield b"".join(_encode_line(hit) + b"\n" for hit in hits)
            left -= len(hits)
            if left <= 0:
                return
        if is_whole:
            return


def list_searched(index: RolloutIndex, query: SearchQuery, start: int) -> tuple[list[int], int]:
    """The slots, from one on, of the rollouts to search, in task order; and where to continue."""
    with index.lock:
        found = [
            slot
            for slot in index.in_task_order
            if slot >= start
            and (not query.key or f"{index.keys[index.task[slot]]:016x}" == query.key)
            and (query.number is None or index.number[slot] == query.number)
        ]
        return found, len(index.alive)


def search_batch(needle: Needle, index: RolloutIndex, batch: Batch, most: int) -> list[SearchHit]:
    hits: list[SearchHit] = []
    for slot, raw in batch:
        if needle.may_be_in(raw):
            hits += search_row(needle, index, slot, raw, most)
    return hits


def search_row(needle: Needle, index: RolloutIndex, slot: int, raw: bytes, most: int) -> list[SearchHit]:
    try:
        replay = decode_slot(index, slot, raw)
    except UnreadableRowError:
        return []
    key, number = f"{index.keys[index.task[slot]]:016x}", index.number[slot]
    return list(find_hits(needle, replay, key, number, most))
