"""Following a run over HTTP: every event once and in order, live, late, and after a break."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection

from proctor.api.runner import Ending, LogText, Report
from proctor.api.runs import ResumeRequest
from proctor.server.runs import incoming, queue, reports
from proctor.server.runs.causes import build_cause
from tests.server.runs import making
from tests.server.serving import Api, Served

SECONDS = 20


@pytest.fixture
def ada(served_on_both: Served) -> Api:
    return served_on_both.user("ada")


@pytest.fixture
def run_id(served_on_both: Served, ada: Api) -> str:
    def make(connection: Connection) -> str:
        making.environment(connection)
        run_id = making.run(connection)
        queue.claim_run(connection, "h1", time.time(), 3600.0)
        return run_id

    return served_on_both.platform.database.write_now(make)


def say(served: Served, run_id: str, batch: int, *lines: str) -> None:
    told = Report(batch=batch, logs=[LogText("INFO", line, 1.0) for line in lines])
    served.call(served.platform.runs.change, reports.take_report, run_id, 1, incoming.prepare(told), 101.0)


def finish(served: Served, run_id: str) -> None:
    work = reports.take_ending
    served.call(served.platform.runs.change, work, run_id, 1, Ending(status="finished"), 102.0, 3)


class Stream:
    """One follower's connection."""

    def __init__(self, api: Api, run_id: str, after: int = 0) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=SECONDS)
        path = f"/api/v1/runs/{run_id}/events/stream?after={after}"
        self.connection.request("GET", path, headers={"authorization": f"Bearer {api.token}"})
        self.response = self.connection.getresponse()

    def frames(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Number and content of each event, until the end is told or the connection is."""
        seq = 0
        for raw in self.response:
            line = raw.decode().rstrip("\n")
            if line.startswith("id: "):
                seq = int(line[4:])
            elif line == "event: end":
                return
            elif line.startswith("data: "):
                yield seq, json.loads(line[6:])

    def close(self) -> None:
        self.connection.close()


def test_a_follower_hears_everything_live_and_is_told_the_end(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    stream = Stream(ada, run_id)
    frames = stream.frames()
    first = [next(frames) for _ in range(2)]
    say(served_on_both, run_id, 1, "hello", "world")
    heard = [next(frames) for _ in range(2)]
    finish(served_on_both, run_id)
    rest = list(frames)
    every = [*first, *heard, *rest]
    assert [seq for seq, _ in every] == list(range(1, len(every) + 1))
    assert [event.get("text") for _, event in heard] == ["hello", "world"]
    assert rest[-1][1]["status"] == "finished"
    stream.close()


def test_who_comes_back_goes_on_after_the_last_event_they_saw(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    say(served_on_both, run_id, 1, *(f"line {number}" for number in range(10)))
    finish(served_on_both, run_id)
    stream = Stream(ada, run_id)
    frames = stream.frames()
    seen = [next(frames)[0] for _ in range(5)]
    stream.close()
    again = Stream(ada, run_id, after=seen[-1])
    rest = [seq for seq, _ in again.frames()]
    again.close()
    assert [*seen, *rest] == list(range(1, 14))


def test_a_late_follower_of_a_long_run_hears_it_from_the_beginning(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    early = Stream(ada, run_id)
    frames = early.frames()
    next(frames)
    for batch in range(1, 6):
        say(served_on_both, run_id, batch, *(f"{batch}-{number}" for number in range(700)))
    finish(served_on_both, run_id)
    late = Stream(ada, run_id)
    assert [seq for seq, _ in late.frames()] == list(range(1, 3504))
    assert [seq for seq, _ in frames] == list(range(2, 3504))
    early.close()
    late.close()


def test_many_followers_at_once_hear_the_same(served_on_both: Served, ada: Api, run_id: str) -> None:
    heard: list[list[int]] = [[] for _ in range(20)]
    streams = [Stream(ada, run_id) for _ in heard]

    def follow(place: int) -> None:
        heard[place] = [seq for seq, _ in streams[place].frames()]

    threads = [threading.Thread(target=follow, args=(place,)) for place in range(len(heard))]
    for thread in threads:
        thread.start()
    for batch in range(1, 11):
        say(served_on_both, run_id, batch, f"line {batch}")
    finish(served_on_both, run_id)
    for thread in threads:
        thread.join(SECONDS)
    assert all(each == list(range(1, 14)) for each in heard)
    for stream in streams:
        stream.close()


def test_nobody_follows_the_run_of_another(served_on_both: Served, run_id: str) -> None:
    bob = served_on_both.user("bob")
    assert bob("GET", f"/runs/{run_id}").status == 404
    assert bob("GET", f"/runs/{run_id}/events").status == 404
    assert bob("GET", f"/runs/{run_id}/events/stream").status == 404
    assert bob("GET", f"/runs/{run_id}/results.jsonl").status == 404
    assert bob("POST", f"/runs/{run_id}/stop", {}).status == 404
    assert bob("DELETE", f"/runs/{run_id}").status == 404
    assert bob.get("/runs")["items"] == []


def test_a_resumed_run_is_followed_anew_although_somebody_still_hangs_on(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    feed = served_on_both.platform.runs.feed
    finish(served_on_both, run_id)
    lingering = feed.follow(run_id, 0)
    served_on_both.call(anext, lingering)
    served_on_both.platform.database.write_now(queue.resume, run_id, 103.0, ResumeRequest())
    stream = Stream(ada, run_id)
    frames = stream.frames()
    assert [next(frames)[1]["status"] for _ in range(4)][-1] == "pending"
    served_on_both.platform.database.write_now(
        queue.stop, run_id, build_cause("stopped_by_user", "enough"), 104.0
    )
    assert [event["status"] for _, event in frames] == ["stopped"]
    served_on_both.call(lingering.aclose)
    stream.close()
