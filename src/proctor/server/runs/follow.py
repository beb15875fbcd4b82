"""Follow runs: one reader of the database per run, however many followers it has.

A follower is a generator of bytes, made of frames that are encoded once for all followers. Events of this
process arrive at once, and so do those of another server, which notifies this one. Knows nothing of HTTP but
the format of server-sent events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress

import msgspec
from sqlalchemy import Connection, select

from proctor.run import ENDED
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.tables import runs
from proctor.server.notifier import Notifier
from proctor.server.runs import event_log
from proctor.server.runs.stored_events import EventLogs
from proctor.server.storage.contract import StorageAwayError
from proctor.support.logs import log

LOOK_SECONDS = 1.0
"""How often to look at a run without being notified."""
LISTENING_LOOK_SECONDS = 4.0
"""The same while other servers can notify this one: one of them may be killed before it does."""
PAUSE_SECONDS = 0.05
"""At least this long between two looks: events in quick succession are passed on together."""
PAUSE_PER_FOLLOWER_SECONDS = 0.0002
"""More followers get larger batches: waking them must not take up the server's time."""
ROWS = 32
QUIET_SECONDS = 15.0
KEPT_FRAMES = 2_000
KEPT_BYTES = 4 * 2**20
PIECE_BYTES = 256 * 1024
"""How much to pass to one follower at once, which may be slow to read."""
AT_ONCE = 500
KEEP_ALIVE = b": still here\n\n"
END = b"event: end\ndata: {}\n\n"


class EventSequence(msgspec.Struct, frozen=True):
    seq: int


_seq = msgspec.json.Decoder(EventSequence).decode


class NewFrames(msgspec.Struct, frozen=True):
    """The events after a number."""

    frames: list[tuple[int, bytes]]
    ended: bool
    more: bool = False
    """There was more than could be read at once."""


def read_new_frames(connection: Connection, run_id: str, after: int) -> NewFrames:
    row = connection.execute(select(runs.c.last_seq, runs.c.status).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        return NewFrames([], True)
    frames = [encode_frame(raw) for raw in event_log.read_raw_events(connection, run_id, after, AT_ONCE)]
    reached = frames[-1][0] if frames else after
    return NewFrames(frames, row.status in ENDED and reached >= row.last_seq, more=reached < row.last_seq)


def encode_frame(raw: bytes) -> tuple[int, bytes]:
    seq = _seq(raw).seq
    return seq, b"id: %d\ndata: %b\n\n" % (seq, raw)


def pieces(frames: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """Frames joined into chunks."""
    joined: list[bytes] = []
    size = 0
    for _, each in frames:
        joined.append(each)
        size += len(each)
        if size >= PIECE_BYTES:
            yield b"".join(joined)
            joined, size = [], 0
    if joined:
        yield b"".join(joined)


class Topic:
    """One run that is followed: its newest frames, and the followers that wait for more.

    Followers wait in several groups that are woken one after the other, so that other work can run in
    between.
    """

    def __init__(self, after: int) -> None:
        self.frames: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self.last = after
        self.ended = False
        self.followers = 0
        self.wanted = asyncio.Event()
        self.rows = [asyncio.Event() for _ in range(ROWS)]
        self.pump: asyncio.Task[None] | None = None

    def take(self, new_frames: NewFrames) -> None:
        self.frames.extend(new_frames.frames)
        self._size += sum(len(each) for _, each in new_frames.frames)
        while len(self.frames) > KEPT_FRAMES or self._size > KEPT_BYTES:
            self._size -= len(self.frames.popleft()[1])
        if new_frames.frames:
            self.last = new_frames.frames[-1][0]
        self.ended = new_frames.ended

    async def call_up(self) -> None:
        for index, row in enumerate(self.rows):
            self.rows[index] = asyncio.Event()
            row.set()
            await asyncio.sleep(0)

    def after(self, seq: int) -> list[tuple[int, bytes]] | None:
        """Frames after a number; None if they are no longer cached."""
        if seq >= self.last:
            return []
        if not self.frames or self.frames[0][0] > seq + 1:
            return None
        first = self.frames[0][0]
        return [self.frames[index] for index in range(max(0, seq + 1 - first), len(self.frames))]


class Feed:
    """All runs that have followers."""

    def __init__(self, database: Database, notifier: Notifier, event_logs: EventLogs) -> None:
        self._database = database
        self._event_logs = event_logs
        self._notifier = notifier
        self._topics: dict[str, Topic] = {}
        self.closing = False
        self.on_wake: list[Callable[[str], None]] = []
        """Also told which run has new events."""

    def wake(self, run_id: str) -> None:
        """A run has new events."""
        for tell in self.on_wake:
            tell(run_id)
        topic = self._topics.get(run_id)
        if topic is not None:
            topic.wanted.set()

    @property
    def followers(self) -> int:
        return sum(topic.followers for topic in self._topics.values())

    def wake_all(self) -> None:
        """Notifications may have been missed."""
        for topic in self._topics.values():
            topic.wanted.set()

    @property
    def _look_seconds(self) -> float:
        can_miss = self._database.is_sqlite or not self._notifier.is_listening
        return LOOK_SECONDS if can_miss else LISTENING_LOOK_SECONDS

    async def close(self) -> None:
        """Disconnect every follower; they will ask the next server for what comes after."""
        self.closing = True
        for topic in list(self._topics.values()):
            await topic.call_up()

    async def rouse(self, run_id: str) -> None:
        """Wake the followers of a run, because one of them was cut off."""
        topic = self._topics.get(run_id)
        if topic is not None:
            await topic.call_up()

    async def follow(
        self, run_id: str, after: int, is_cut: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[bytes, None]:
        """Frames after a number until the run has ended, with keep-alives while nothing happens."""
        topic = self._join(run_id, after)
        index = topic.followers % ROWS
        try:
            while not self.closing and not is_cut():
                called_up = topic.rows[index]
                found = topic.after(after)
                if found is None:  # too old for the cache: read for this follower alone
                    found = (await self._event_logs.read(read_new_frames, run_id, after)).frames
                if found:
                    for piece in pieces(found):
                        yield piece
                    after = found[-1][0]
                elif topic.ended:
                    yield END
                    return
                else:
                    await called_up.wait()
                    if is_cut():
                        return
                    if after == topic.last and not topic.ended:
                        yield KEEP_ALIVE
        finally:
            self._leave(run_id, topic)

    def _join(self, run_id: str, after: int) -> Topic:
        topic = self._topics.get(run_id)
        if topic is None or topic.ended:  # a reader that has ended does not see that its run was resumed
            topic = self._topics[run_id] = Topic(after)
            topic.pump = asyncio.create_task(self._look(run_id, topic))
        topic.followers += 1
        return topic

    def _leave(self, run_id: str, topic: Topic) -> None:
        topic.followers -= 1
        if not topic.followers and self._topics.get(run_id) is topic:
            del self._topics[run_id]
            if topic.pump is not None:
                topic.pump.cancel()

    async def _look(self, run_id: str, topic: Topic) -> None:
        clock = asyncio.get_running_loop().time
        said_at = clock()
        while not topic.ended and not self.closing:
            topic.wanted.clear()
            try:
                async with asyncio.timeout(QUIET_SECONDS):  # followers get their keep-alive all the same
                    new_frames = await self._event_logs.read(read_new_frames, run_id, topic.last)
            except (TimeoutError, DatabaseAwayError, StorageAwayError):
                new_frames = NewFrames([], False)
            except Exception:
                log.exception("could not read a followed run; trying again")
                new_frames = NewFrames([], False)
            topic.take(new_frames)
            if new_frames.frames or new_frames.ended or clock() - said_at > QUIET_SECONDS:
                said_at = clock()
                await topic.call_up()
            if new_frames.more and new_frames.frames:
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(topic.wanted.wait(), self._look_seconds)
            await asyncio.sleep(PAUSE_SECONDS + PAUSE_PER_FOLLOWER_SECONDS * topic.followers)
