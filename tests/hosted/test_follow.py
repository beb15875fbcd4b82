"""Following a run: every event once and in order, whatever happens in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.client.follow import FollowTimings, follow
from tests.hosted.double import TOKEN, Double
from tests.waiting import SECONDS, wait_for

QUICK = FollowTimings(poll=0.01, silence=2.0, first_pause=0.005, longest_pause=0.02, notify_after=0.0)


def read_all(
    server: Double, run_id: str = "run-1", after: int = 0, notify: Callable[[str], None] = lambda _: None
) -> list[str]:
    async def main() -> list[str]:
        async with ServerConnection(Context(url=server.url, token=TOKEN)) as connection:
            events = follow(connection, run_id, after, patience=QUICK, notify=notify)
            return [f"{event.seq} {event.text or event.status}" async for event in events]

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


def told(server: Double, count: int = 20) -> list[str]:
    server.add_run()
    server.say("run-1", *(f"line {number}" for number in range(1, count + 1)))
    server.end("run-1")
    return [*(f"{number} line {number}" for number in range(1, count + 1)), f"{count + 1} finished"]


def test_every_line_comes_once_and_in_order(server: Double) -> None:
    expected = told(server)
    assert read_all(server) == expected


def test_a_stream_that_is_cut_again_and_again_loses_and_repeats_nothing(server: Double) -> None:
    expected = told(server)
    server.stream_cuts_after = 3
    assert read_all(server) == expected
    assert server.requests.count("GET /runs/run-1/events/stream") > 5


def test_a_stream_that_breaks_before_its_first_line_is_replaced_by_asking(server: Double) -> None:
    expected = told(server)
    server.stream_cuts_after = 0
    assert read_all(server) == expected
    assert "GET /runs/run-1/events" in server.requests


def test_without_any_stream_events_are_asked_for_and_the_stream_is_tried_again(server: Double) -> None:
    server.add_run()
    server.has_stream = False
    lines: list[str] = []

    def happens() -> None:
        for number in range(1, 30):
            server.say("run-1", f"line {number}")
            clock.wait(0.01)
        wait_for(lambda: server.requests.count("GET /runs/run-1/events/stream") > 3)
        server.end("run-1")

    clock = threading.Event()
    thread = threading.Thread(target=happens)
    thread.start()
    lines = read_all(server)
    thread.join()
    assert lines == [*(f"{number} line {number}" for number in range(1, 30)), "30 finished"]
    assert server.requests.count("GET /runs/run-1/events/stream") > 3


def test_a_server_that_restarts_is_waited_for(server: Double) -> None:
    server.add_run()
    server.say("run-1", "before")
    said: list[str] = []

    def happens() -> None:
        seen.wait(SECONDS)
        server.call(server.go())
        wait_for(lambda: said)
        server.say("run-1", "meanwhile")
        server.end("run-1")
        server.call(server.come())

    seen = threading.Event()
    thread = threading.Thread(target=happens)
    thread.start()

    async def main() -> list[str]:
        lines = []
        async with ServerConnection(Context(url=server.url, token=TOKEN)) as connection:
            async for event in follow(connection, "run-1", patience=QUICK, notify=said.append):
                lines.append(event.text or str(event.status))
                seen.set()
        return lines

    assert asyncio.run(asyncio.wait_for(main(), SECONDS)) == ["before", "meanwhile", "finished"]
    thread.join()
    assert "does not answer" in said[0]
    assert "is back" in said[-1]
    assert len(said) == 2  # once a minute, not once a try


def test_what_was_seen_before_is_not_told_again(server: Double) -> None:
    expected = told(server)
    assert read_all(server, after=15) == expected[15:]


def test_a_run_that_is_not_there_ends_it_at_once(server: Double) -> None:
    with pytest.raises(ServerError, match="no such run"):
        read_all(server, "run-9")
    assert len(server.requests) == 1
