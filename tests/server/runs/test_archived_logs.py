"""The events of runs that have ended are in the store, and are read as before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, func, select

from proctor.api.runner import Ending, LogText, Report
from proctor.api.runs import ResumeRequest
from proctor.server.db.tables import event_segments, events
from proctor.server.runs import archive, incoming, queue, reports
from proctor.server.runs.archive import archive_ended_runs, point_events, read_events_to_move
from proctor.server.runs.causes import build_cause
from proctor.server.runs.follow import read_new_frames
from proctor.server.runs.stored_events import EventLogs, find_last_segment, put_back
from proctor.server.storage.contract import StorageAwayError
from proctor.server.storage.garbage import GRACE_SECONDS, collect_garbage
from tests.server.runs import making
from tests.server.runs.test_following import Stream
from tests.server.serving import Api, Served

LATER = 2 * archive.QUIET_SECONDS
LINES = 30


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log is moved, in several segments."""
    monkeypatch.setattr(archive, "KEPT_LOG_BYTES", 1)
    monkeypatch.setattr(archive, "SEGMENT_BYTES", 800)
    monkeypatch.setattr(archive, "EVENTS_AT_ONCE", 7)


class Workshop:
    """A server with one hosted run that has ended, and its owner."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.database = served.platform.database
        self.store = served.platform.blobs.store
        self.ada: Api = served.user("ada")
        self.run_id = self.database.write_now(self._make)
        self.play(1, "first")

    def _make(self, connection: Connection) -> str:
        making.environment(connection)
        return making.run(connection, planned=5)

    def play(self, attempt: int, word: str) -> None:
        change = self.served.platform.runs.change
        lines = [LogText("INFO", f"{word} line {number} — ü\n", float(number)) for number in range(LINES)]
        failed = making.row(word, reward=None, outcome="model_error", timing={"start_time": 5.0})
        told = incoming.prepare(Report(batch=1, logs=lines, rows=[msgspec.Raw(failed)]))
        self.database.write_now(queue.claim_run, "h1", time.time(), 3600.0)
        self.served.call(change, reports.take_report, self.run_id, attempt, told, time.time())
        ending = Ending(status="failed", cause=build_cause("crashed", "It crashed."))
        self.served.call(change, reports.take_ending, self.run_id, attempt, ending, time.time(), 1)

    def move(self) -> int:
        moved: int = self.served.call(
            archive_ended_runs, self.database, self.served.platform.blobs, time.time() + LATER
        )
        return moved

    def read_pages(self) -> list[Any]:
        found: list[Any] = []
        while True:
            page = self.ada.get(f"/runs/{self.run_id}/events?limit=11&after={len(found)}")
            found += page["items"]
            assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
            assert page["items"]
            if page["ended"]:
                return found

    def read_log(self) -> list[Any]:
        return [
            self.ada.get(f"/runs/{self.run_id}/log?{query}")
            for query in ("limit=5", "limit=4&after=9", "limit=3&q=LINE+7&around=1")
        ]

    def read_failure_lines(self) -> list[int | None]:
        """The line of the log that each group of failures leads to."""
        return [group["log_at"] for group in self.ada.get(f"/runs/{self.run_id}/failures")]

    def follow(self, after: int = 0) -> list[Any]:
        stream = Stream(self.ada, self.run_id, after)
        frames = [event for _, event in stream.frames()]
        stream.close()
        return frames

    def read_everything(self) -> list[list[Any]]:
        return [self.read_log(), self.read_pages(), self.follow(), self.follow(after=20)]

    def count(self, table: Any) -> int:
        query = select(func.count()).select_from(table).where(table.c.run_id == self.run_id)
        return int(self.database.read_now(lambda connection: connection.execute(query).scalar_one()))

    def collect(self) -> None:
        self.served.call(collect_garbage, self.database, self.store, time.time() + 3 * GRACE_SECONDS)

    async def count_objects(self) -> int:
        return sum([len(page) async for page in self.store.list_objects()])


@pytest.fixture
def workshop(served: Served) -> Workshop:
    return Workshop(served)


@pytest.fixture
def either(served_on_both: Served) -> Workshop:
    """On either database."""
    return Workshop(served_on_both)


def test_a_log_that_was_moved_is_read_as_before_by_whichever_way_comes_first(either: Workshop) -> None:
    ways = either.read_log, either.read_pages, either.follow
    before = either.read_everything()
    total = either.count(events)
    assert [event["seq"] for event in before[1]] == list(range(1, total + 1))
    assert total > LINES

    for read, expected in zip(ways, before, strict=False):
        assert either.move() == 1
        assert either.count(events) == 1
        assert either.count(event_segments) > 2
        assert read() == expected
        assert either.count(events) == total
        assert either.count(event_segments) == 0
        assert either.read_everything() == before

    either.move()
    opened = either.served.platform.reading.opened
    opened.forget(either.run_id)  # as after a restart
    assert either.read_log() == before[0]
    either.move()
    assert either.follow(after=total - 3) == before[2][-3:]
    assert 1 < either.count(events) < total  # only what was asked for came back
    assert either.read_everything() == before


def test_what_was_fetched_stays_for_an_hour_and_a_small_log_for_ever(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, blobs = workshop.database, workshop.served.platform.blobs
    total = workshop.count(events)
    workshop.move()
    workshop.read_pages()
    fetched_at = time.time()

    assert workshop.served.call(archive_ended_runs, database, blobs, fetched_at + 1) == 0
    assert workshop.count(events) == total
    assert workshop.move() == 1
    assert workshop.count(events) == 1

    workshop.read_pages()
    monkeypatch.setattr(archive, "KEPT_LOG_BYTES", 2**16)
    assert workshop.move() == 1
    assert workshop.count(events) == total
    assert workshop.move() == 0


def test_a_move_that_dies_or_is_made_by_two_servers_loses_and_doubles_nothing(either: Workshop) -> None:
    before = either.read_everything()
    database, blobs = either.database, either.served.platform.blobs
    moment = time.time() + archive.QUIET_SECONDS
    batch = database.read_now(read_events_to_move, either.run_id, moment)
    assert batch is not None
    blob = either.served.call(blobs.add, batch.pack())  # and the server dies
    assert either.read_everything() == before

    database.write_now(point_events, either.run_id, batch, blob, moment)  # and the next dies here
    assert either.count(event_segments) == 1
    first = database.read_now(find_last_segment, either.run_id, 0)
    second = database.read_now(read_events_to_move, either.run_id, moment)
    assert first is not None
    assert second is not None
    assert either.read_everything() == before

    # What another server began earlier and ends now would leave a gap, or double something.
    database.write_now(point_events, either.run_id, second, blob, moment)
    assert either.count(event_segments) == 0
    either.move()
    segments = either.count(event_segments)
    database.write_now(point_events, either.run_id, batch, blob, moment)
    database.write_now(put_back, first, batch.raw_events, time.time())
    assert either.count(event_segments) == segments
    assert either.read_everything() == before


def test_two_servers_that_fetch_a_log_at_once_put_it_back_once(either: Workshop) -> None:
    before = either.read_everything()
    either.move()
    database, blobs = either.database, either.served.platform.blobs

    async def read_at_once() -> list[Any]:
        servers = [EventLogs(database, blobs) for _ in range(2)]
        reads = [server.read(read_new_frames, either.run_id, after) for server in servers for after in (0, 9)]
        return await asyncio.gather(*reads)

    first, _, second, _ = either.served.call(read_at_once)

    assert first == second
    assert [seq for seq, _ in first.frames] == [event["seq"] for event in before[1]]
    assert either.read_everything() == before


def test_while_the_store_is_away_readers_are_told_and_afterwards_everything_is_there(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = workshop.read_everything()
    lines = workshop.read_failure_lines()
    workshop.move()
    workshop.served.platform.reading.opened.forget(workshop.run_id)

    def refuse(*_: Any) -> AsyncGenerator[bytes, None]:
        raise StorageAwayError("The store does not answer; try again later.")

    with monkeypatch.context() as away:
        away.setattr(workshop.store, "read", refuse)
        for way in ("log", "events", "events/stream"):
            answer = workshop.ada("GET", f"/runs/{workshop.run_id}/{way}")
            assert (answer.status, answer.code) == (503, "storage_away"), way
            assert "does not answer" in answer.body["message"]
        assert workshop.read_failure_lines() == [None]  # a list does without its links
        last = before[1][-1]
        page = workshop.ada.get(f"/runs/{workshop.run_id}/events?after={last['seq'] - 1}")
        assert (page["items"], page["ended"]) == ([last], True)  # the last event needs no store
    assert workshop.read_failure_lines() == lines != [None]
    assert workshop.read_everything() == before

    workshop.move()
    segment = workshop.database.read_now(find_last_segment, workshop.run_id, 0)
    assert segment is not None
    key = workshop.served.call(workshop.served.platform.blobs.find, segment.sha256).key
    workshop.served.call(workshop.store.remove, [key])
    answer = workshop.ada("GET", f"/runs/{workshop.run_id}/events")
    assert (answer.status, answer.body["message"]) == (
        503,
        "Events of this run are missing from the store; restore them.",
    )


def test_a_run_that_is_resumed_after_the_move_goes_on_counting_and_is_followed_from_its_first_event(
    either: Workshop,
) -> None:
    before = either.read_pages()
    either.move()
    database = either.database

    database.write_now(queue.resume, either.run_id, time.time(), ResumeRequest())
    live = Stream(either.ada, either.run_id)
    frames = live.frames()
    assert next(frames)[1] == before[0]  # else the others would never come
    assert [next(frames)[1] for _ in before[1:]] == before[1:]
    either.play(2, "second")

    whole = [*before, *(event for _, event in frames)]
    live.close()
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    assert len(whole) > len(before) + LINES
    assert either.read_pages() == whole
    assert either.move() == 1
    assert either.count(events) == 1
    assert either.read_pages() == either.follow() == whole


def test_a_moved_log_is_in_use_until_its_run_is_deleted(workshop: Workshop) -> None:
    before = workshop.read_everything()
    workshop.move()
    workshop.collect()
    rows = 1  # a segment of them
    assert workshop.served.call(workshop.count_objects) == workshop.count(event_segments) + rows
    assert workshop.read_everything() == before

    workshop.move()
    workshop.ada.ok("DELETE", f"/runs/{workshop.run_id}")
    workshop.collect()
    assert workshop.served.call(workshop.count_objects) == 0
