"""The runs of a server for their readers: live, complete, and only as much as each may see."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Semaphore
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection, delete, func, select, update

from proctor.api.common import BASE
from proctor.reading import export_handler
from proctor.server.db.tables import accounts, rollout_entries, runs
from proctor.server.quotas import EXPORTS_AT_ONCE
from proctor.server.reading import open_run
from proctor.server.runs import queue
from proctor.server.runs.event_log import append_events, build_log_event
from proctor.server.runs.incoming import read_row
from proctor.server.runs.rows import store_rows
from tests.server.runs import making
from tests.server.serving import Api, Served
from tests.waiting import wait_for
from tests.web.lab import add_person

SECONDS = 60.0
PARTS = ("", "/summary", "/rollouts", "/tasks", "/distribution", "/failures", "/search?q=a", "/export")


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_run, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(open_run, "BUSY_SHARE", 0)
    monkeypatch.setattr(open_run, "PATIENCE_SECONDS", SECONDS)


@pytest.fixture
def people(served_on_both: Served) -> dict[str, Api]:
    """ada owns an environment that rita may read; sam knows nothing of it."""
    server = served_on_both
    found = {"root": server.root}
    for name in ("ada", "rita", "sam"):
        found[name] = Api(server.url, server.platform.database.write_now(add_person, name))
    server.platform.database.write_now(making.environment)
    found["ada"].ok("PUT", "/environments/ada/sums/collaborators", {"name": "rita", "role": "read"})
    return found


@pytest.fixture
def ada(people: dict[str, Api]) -> Api:
    return people["ada"]


@pytest.fixture
def run_id(served_on_both: Served, ada: Api) -> str:
    """A run of ada's that is being played."""

    def make(connection: Connection) -> str:
        run_id = making.run(connection, name="one", settings={"headers": {"x": "1"}, "num_examples": 4})
        queue.start_attempt(connection, queue.find_run(connection, run_id), "host", time.time(), 1e6)
        change = {"planned": 4, "cost": 250_000, "model": "gpt-5-mini"}
        connection.execute(update(runs).where(runs.c.id == run_id).values(change))
        return run_id

    return served_on_both.platform.database.write_now(make)


def add_rows(server: Served, run_id: str, *rows: bytes) -> None:
    """As a report of the run's process does."""

    def add(connection: Connection) -> None:
        added = store_rows(connection, run_id, [read_row(row) for row in rows])
        append_events(connection, run_id, [build_log_event("rows", at=time.time()) for _ in added.briefs])

    server.platform.database.write_now(add)
    server.platform.loop.call_soon_threadsafe(server.platform.runs.feed.wake, run_id)


def end(server: Served, run_id: str) -> None:
    def work(connection: Connection) -> None:
        queue.end_run(connection, queue.find_run(connection, run_id), "finished", None, time.time())

    server.platform.database.write_now(work)


# Live


def test_a_run_in_progress_has_the_report_of_its_rollouts_so_far(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    add_rows(served_on_both, run_id, making.row("a"), making.row("b", outcome="model_error", reward=None))
    first = ada.get(f"/runs/{run_id}")
    assert (first["score"]["mean"], first["score"]["coverage"]) == (1.0, 0.25)
    assert (first["progress"]["scored"], first["progress"]["failed"]) == (1, 1)

    add_rows(served_on_both, run_id, making.row("b", reward=0.0))  # a later try of the one that failed
    listed = ada.get("/runs")["items"][0]
    live = ada.get(f"/runs/{run_id}/summary")
    assert (live["finished"], live["scored"], live["errors"], live["reward"]["mean"]) == (2, 2, [], 0.5)
    assert listed["score"]["mean"] == 0.5
    entries = ada.get(f"/runs/{run_id}/rollouts?sort=task")["items"]
    assert [(entry["task"], entry["reward"]) for entry in entries] == [("a", 1.0), ("b", 0.0)]

    end(served_on_both, run_id)
    assert ada.get(f"/runs/{run_id}/summary") == live
    assert ada.get("/runs?status=finished")["items"][0]["score"] == listed["score"]


def test_a_failed_rollout_that_fails_again_is_shown_as_it_failed_last(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    for message in ("the first", "the second"):
        failed = making.row("a", outcome="model_error", reward=None, error={"error": "E", "message": message})
        add_rows(served_on_both, run_id, failed)
        (entry,) = ada.get(f"/runs/{run_id}/rollouts")["items"]
        assert entry["error"] == message
        assert ada.get(f"/runs/{run_id}/rollouts/{entry['key']}/0/raw")["error"]["message"] == message
    assert ada.get(f"/runs/{run_id}/summary")["finished"] == 1


def test_rows_of_an_earlier_version_of_the_server_are_indexed_when_they_are_first_read(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    add_rows(served_on_both, run_id, *(making.row(task) for task in range(5)))
    database = served_on_both.platform.database
    database.write_now(lambda connection: connection.execute(delete(rollout_entries)))

    assert ada.get(f"/runs/{run_id}/rollouts")["total"] == 5
    assert ada.get(f"/runs/{run_id}/summary")["scored"] == 5
    count = select(func.count()).select_from(rollout_entries)
    assert database.read_now(lambda connection: connection.execute(count).scalar_one()) == 5


def test_the_log_is_read_backwards_past_everything_that_is_not_a_line(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    def write(connection: Connection) -> None:
        for number in range(300):
            level = "ERROR" if number % 100 == 7 else "INFO"
            append_events(connection, run_id, [build_log_event(f"line {number}", at=number, level=level)])
            store_rows(connection, run_id, [read_row(making.row(number))])

    served_on_both.platform.database.write_now(write)

    last = ada.get(f"/runs/{run_id}/log?limit=2")
    assert [line["text"] for line in last["items"]] == ["line 298", "line 299"]
    assert (last["more_before"], last["more_after"], last["is_complete"]) == (True, False, False)
    before = ada.get(f"/runs/{run_id}/log?limit=2&before={last['items'][0]['number']}")
    assert [line["text"] for line in before["items"]] == ["line 296", "line 297"]
    errors = ada.get(f"/runs/{run_id}/log?level=ERROR")
    assert [line["text"] for line in errors["items"]] == ["line 7", "line 107", "line 207"]
    assert [line["text"] for line in ada.get(f"/runs/{run_id}/log?q=LINE+25&limit=3")["items"]] == [
        "line 257",
        "line 258",
        "line 259",
    ]


def test_runs_that_were_started_together_are_a_sweep_with_an_axis_per_setting(
    served_on_both: Served, ada: Api
) -> None:
    def make(connection: Connection) -> None:
        for model in ("small", "large"):
            for temperature in (0.0, 0.7):
                settings = {"temperature": temperature, "num_examples": 4, "headers": {"x": "1"}}
                making.run(connection, suite="suite-1", model=model, settings=settings)

    served_on_both.platform.database.write_now(make)

    (suite,) = ada.get("/suites")
    assert suite["axes"] == {"model": ["large", "small"], "temperature": ["0.0", "0.7"]}
    assert ada.get("/suites/suite-1") == suite
    assert ada.get("/runs?suite=suite-1")["total"] == 4
    assert served_on_both.root.get("/suites/suite-1")["id"] == "suite-1"


def test_evaluations_of_an_environment_are_told_apart_by_version_and_model(
    served_on_both: Served, ada: Api, people: dict[str, Api]
) -> None:
    def make(connection: Connection) -> None:
        for version, model in (("1.0", "a"), ("1.0", "b"), ("2.0", "a")):
            making.run(connection, owner="ada", version=version, model=model)

    served_on_both.platform.database.write_now(make)

    found = ada.get("/runs?environment=ada/sums&version=1.0")
    assert {(run["version"], run["model"]) for run in found["items"]} == {("1.0", "a"), ("1.0", "b")}
    assert ada.get("/runs?environment=ada/sums@2.0")["total"] == 1
    facets = ada.get("/runs/facets?environment=ada/sums&version=2.0")
    assert facets["version"] == [{"value": "1.0", "count": 2}, {"value": "2.0", "count": 1}]
    assert people["sam"].get("/runs?environment=ada/sums")["total"] == 0


# Rights


def test_a_stranger_learns_nothing_and_a_reader_sees_neither_money_nor_log(
    served_on_both: Served, people: dict[str, Api], run_id: str
) -> None:
    said = [{"role": "assistant", "content": "a"}]
    used = {"input_tokens": 1_000_000}
    add_rows(served_on_both, run_id, making.row("a", token_usage=used, completion=said))
    ada, rita, sam = people["ada"], people["rita"], people["sam"]
    key = ada.get(f"/runs/{run_id}/rollouts")["items"][0]["key"]
    parts = (*PARTS, f"/rollouts/{key}/0", f"/rollouts/{key}/0/raw", f"/rollouts/{key}/0/events")
    for api in (rita, sam):
        assert {api("GET", f"/runs/{run_id}{part}").status for part in (*parts, "/log")} == {404}
    assert {served_on_both.nobody("GET", f"/runs/{run_id}{part}").status for part in parts} == {401}
    assert sam("GET", f"/diff?a={run_id}/{key}/0&b={run_id}/{key}/0").status == 404
    assert sam("GET", f"/compare?run={run_id}&run=x").status == 404

    ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "readers"})
    assert {rita("GET", f"/runs/{run_id}{part}").status for part in parts} == {200}
    assert rita("GET", f"/runs/{run_id}/log").code == "log_not_shared"
    assert {sam("GET", f"/runs/{run_id}{part}").status for part in parts} == {404}
    own, theirs = (api.get(f"/runs/{run_id}/rollouts")["items"][0] for api in (ada, rita))
    assert (own["cost_usd"], theirs["cost_usd"]) == (pytest.approx(0.25), None)
    assert ada.get(f"/runs/{run_id}")["summary"]["cost_usd"] == 0.25
    assert rita.get(f"/runs/{run_id}")["summary"]["cost_usd"] is None
    assert rita.get(f"/runs/{run_id}/summary")["cost_usd"] is None
    assert rita.get(f"/runs/{run_id}")["settings"] == {"num_examples": 4}
    listed = rita.get("/runs?environment=ada/sums&sort=cost")["items"][0]
    assert (listed["id"], listed["cost_usd"]) == (run_id, None)
    assert rita.get("/runs")["total"] == 0


def test_a_link_opens_every_part_of_one_run_and_of_no_other(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    add_rows(served_on_both, run_id, making.row("a"))
    other = served_on_both.platform.database.write_now(making.run)
    link = ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "link"})["link"].partition("link=")[2]
    nobody = served_on_both.nobody
    for part in PARTS:
        joined = "&" if "?" in part else "?"
        assert nobody("GET", f"/runs/{run_id}{part}{joined}link={link}").status == 200
        assert nobody("GET", f"/runs/{run_id}{part}", headers={"proctor-link": link}).status == 200
        assert nobody("GET", f"/runs/{other}{part}{joined}link={link}").status == 404
    for path in ("/runs", "/runs/facets", "/suites", "/feed"):
        assert nobody("GET", path, headers={"proctor-link": link}).status == 401


# The feed


@contextmanager
def following(api: Api, headers: dict[str, str] | None = None) -> Iterator[Iterator[Any]]:
    """The events of a feed, from its first word on: None for a keep-alive."""
    parts = urlsplit(api.url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)) as connection:
        connection.request("GET", f"{BASE}/feed", headers=headers or {"authorization": f"Bearer {api.token}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        events = read_events(answer)
        assert next(events) is None
        yield events


def read_events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    for raw in answer:
        line = raw.decode().strip()
        if line.startswith(":"):
            yield None
        elif line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def wait_for_event(events: Iterator[Any], kind: str) -> Any:
    return next(event for event in events if event is not None and event["kind"] == kind)


def test_the_feed_tells_of_new_rollouts_new_runs_and_deleted_ones(
    served_on_both: Served, ada: Api, run_id: str
) -> None:
    with following(ada) as events:
        add_rows(served_on_both, run_id, making.row("a"))
        change = wait_for_event(events, "run")["run"]
        assert (change["id"], change["score"]["mean"], change["cost_usd"]) == (run_id, 1.0, 0.25)
        new = served_on_both.platform.database.write_now(making.run)
        assert wait_for_event(events, "run")["run"]["id"] == new
        end(served_on_both, run_id)
        assert wait_for_event(events, "run")["run"]["status"] == "finished"
        ada.ok("DELETE", f"/runs/{run_id}")
        assert wait_for_event(events, "run_deleted")["run_id"] == run_id


def test_the_feed_tells_everyone_what_they_may_read_and_their_own_balance(
    served_on_both: Served, people: dict[str, Api], run_id: str
) -> None:
    people["ada"].ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "readers"})

    def set_balances(connection: Connection, amount: int) -> None:
        connection.execute(update(accounts).values(balance=amount))

    database = served_on_both.platform.database
    database.write_now(set_balances, 1_000_000)
    with following(people["rita"]) as rita, following(people["sam"]) as sam:
        add_rows(served_on_both, run_id, making.row("a"))
        change = wait_for_event(rita, "run")["run"]
        assert (change["id"], change["cost_usd"]) == (run_id, None)
        database.write_now(set_balances, 2_000_000)
        first = next(event for event in sam if event is not None)
        assert (first["kind"], first["balance_usd"]) == ("balance", 2.0)


def test_a_feed_ends_at_once_when_its_token_is_revoked(served_on_both: Served, ada: Api) -> None:
    token = ada.post("/tokens", {"name": "browser"})
    with following(Api(ada.url, token["secret"])) as events, following(ada) as others:
        ada.ok("DELETE", f"/tokens/{token['token']['id']}")
        assert [event for event in events if event is not None] == []  # the stream has ended
        served_on_both.platform.database.write_now(making.run)
        assert wait_for_event(others, "run")["run"]["status"] == "pending"


def test_a_feed_needs_the_scope_to_read_runs(ada: Api, served_on_both: Served) -> None:
    narrow = ada.post("/tokens", {"name": "narrow", "scopes": ["inference"]})["secret"]
    assert Api(ada.url, narrow)("GET", "/feed").status == 403
    assert served_on_both.nobody("GET", "/feed").status == 401


def test_exports_are_limited_while_they_are_written_and_not_only_while_they_are_sent(
    served_on_both: Served, ada: Api, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_rows(served_on_both, run_id, making.row("a"))
    ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "link"})
    link = ada.get(f"/runs/{run_id}/visibility")["link"].partition("?")[2]
    path = f"/runs/{run_id}/export?{link}"
    written, may_end = Semaphore(0), threading.Event()
    write_table = export_handler.write_table

    def write(*given: Any) -> Any:
        written.release()
        assert may_end.wait(SECONDS)
        return write_table(*given)

    monkeypatch.setattr(export_handler, "write_table", write)
    with ThreadPoolExecutor() as pool:
        first = [pool.submit(served_on_both.nobody, "GET", path) for _ in range(EXPORTS_AT_ONCE)]
        assert all(written.acquire(timeout=SECONDS) for _ in first)
        refused = served_on_both.nobody("GET", path)
        may_end.set()
        assert (refused.status, refused.body["details"]["limit"]) == (429, EXPORTS_AT_ONCE)
        assert {each.result().status for each in first} == {200}
    assert wait_for(lambda: not served_on_both.platform.exports._taken)
    assert served_on_both.nobody("GET", path).status == 200
