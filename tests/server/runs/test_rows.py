"""Rollouts and log lines as they arrive: each once, in order, counted right; on both databases."""

from __future__ import annotations

import json
import zlib

import pytest
from sqlalchemy import Connection

from proctor.api.runner import Ending, LogText, Report
from proctor.server.db.database import Database
from proctor.server.problems import InvalidError
from proctor.server.runs import event_log, incoming, queue, records, reports, rows, task_rows
from tests.server.runs import making


@pytest.fixture
def run_id(database: Database) -> str:
    def make(connection: Connection) -> str:
        making.user(connection)
        making.environment(connection)
        run_id = making.run(connection)
        queue.claim_run(connection, "h1", 100.0, 30.0)
        return run_id

    return database.write_now(make)


def report(database: Database, run_id: str, batch: int, *raws: bytes, logs: tuple[str, ...] = ()) -> None:
    told = Report(batch=batch, rows=list(raws), logs=[LogText("INFO", text, 1.0) for text in logs])  # type: ignore[arg-type]
    database.write_now(reports.take_report, run_id, 1, incoming.prepare(told), 101.0)


def kept(database: Database, run_id: str) -> list[bytes]:
    found = database.read_now(rows.read_rows, run_id, 0, 1000)
    return [zlib.decompress(row.packed) for _, row in found]


def test_a_row_that_is_sent_twice_is_kept_once(database: Database, run_id: str) -> None:
    report(database, run_id, 1, making.row("a"))
    report(database, run_id, 1, making.row("a"))
    report(database, run_id, 2, making.row("a", reward=0.0), making.row("b"))
    assert kept(database, run_id) == [making.row("a"), making.row("b")]
    row = database.read_now(queue.find_run, run_id)
    assert (row.settled, row.scored, row.failed, row.reward_sum) == (2, 2, 0, 2.0)


def test_a_failed_rollout_gives_way_to_a_later_try(database: Database, run_id: str) -> None:
    report(database, run_id, 1, making.row("a", outcome="model_error", reward=None))
    row = database.read_now(queue.find_run, run_id)
    assert (row.settled, row.failed) == (0, 1)
    report(database, run_id, 2, making.row("a", reward=0.5))
    row = database.read_now(queue.find_run, run_id)
    assert (row.settled, row.failed, row.reward_sum) == (1, 0, 0.5)
    assert len(kept(database, run_id)) == 1


def test_a_failed_rollout_that_is_sent_twice_is_told_once(database: Database, run_id: str) -> None:
    for _ in range(2):
        report(database, run_id, 1, making.row("a", outcome="model_error", reward=None))
    told = [
        event for event in database.read_now(event_log.read_events, run_id, 0, 100) if event.kind == "rollout"
    ]
    assert len(told) == 1


def test_the_task_1_is_not_the_task_called_1(database: Database, run_id: str) -> None:
    report(database, run_id, 1, making.row(1), making.row("1"))
    assert len(kept(database, run_id)) == 2


def test_log_lines_of_a_report_that_is_sent_again_are_not_told_again(database: Database, run_id: str) -> None:
    report(database, run_id, 1, logs=("one", "two"))
    report(database, run_id, 1, logs=("one", "two"))
    report(database, run_id, 2, logs=("three",))
    lines = [
        event.text
        for event in database.read_now(event_log.read_events, run_id, 0, 100)
        if event.kind == "log"
    ]
    assert lines == ["one", "two", "three"]


def test_a_line_without_end_is_cut(database: Database, run_id: str) -> None:
    report(database, run_id, 1, logs=("x" * 1_000_000,))
    line = database.read_now(event_log.read_events, run_id, 0, 100)[-1].text
    assert len(line) < 20_000
    assert line.endswith("characters more)")


def test_what_is_no_row_is_refused_whole(database: Database, run_id: str) -> None:
    with pytest.raises(InvalidError, match="row"):
        report(database, run_id, 1, making.row("a"), b'{"example_id": 1}')
    assert kept(database, run_id) == []


def test_a_finished_run_tells_its_report_computed_from_rows(database: Database, run_id: str) -> None:
    report(database, run_id, 1, making.row("a"), making.row("b", reward=0.0))
    database.write_now(reports.take_ending, run_id, 1, Ending(status="finished"), 102.0, 3)
    made = database.read_now(records.summarize, run_id)
    assert made is not None
    assert made[1].reward.mean == 0.5
    database.write_now(records.save_summary, run_id, *made)
    row = database.read_now(queue.find_run, run_id)
    assert (row.status, row.summary["reward"]["mean"], row.score["mean"]) == ("finished", 0.5, 0.5)


def test_a_run_without_a_single_score_has_failed_by_its_provider(database: Database, run_id: str) -> None:
    report(database, run_id, 1, *(making.row(n, outcome="model_error", reward=None) for n in range(3)))
    database.write_now(reports.take_ending, run_id, 1, Ending(status="finished"), 102.0, 3)
    row = database.read_now(queue.find_run, run_id)
    assert (row.status, row.cause["code"]) == ("failed", "provider")
    assert "503" in row.cause["message"]


def test_a_process_that_stops_unasked_was_stopped_by_its_host_and_goes_on_later(
    database: Database, run_id: str
) -> None:
    database.write_now(reports.take_ending, run_id, 1, Ending(status="stopped"), 102.0, 3)
    assert database.read_now(queue.find_run, run_id).status == "pending"


def test_events_are_polled_without_losing_or_repeating_one(database: Database, run_id: str) -> None:
    for batch in range(1, 8):
        report(database, run_id, batch, making.row(batch), logs=(f"line {batch}",))
    seen, after = [], 0
    while True:
        page = database.read_now(event_log.read_event_page, run_id, after, 3)
        if not page.items:
            break
        seen += [event.seq for event in page.items]
        after = seen[-1]
    assert seen == list(range(1, len(seen) + 1))
    assert not page.ended


def test_rows_come_in_task_order_page_by_page(database: Database, run_id: str) -> None:
    played = [(10, 1), ("b", 0), (2, 0), (10, 0), ("a", 1), (2, 1), ("a", 0), (1, 0)]
    report(database, run_id, 1, *(making.row(task, number) for task, number in played))

    seen: list[tuple[object, int]] = []
    after, more = None, True
    while more:
        page, more = database.read_now(task_rows.read_rows_by_task, run_id, after, 3)
        for _, row in page:
            raw = json.loads(zlib.decompress(row.packed))
            seen.append((raw["example_id"], raw["rollout"]))
        after = page[-1][0]

    assert seen == [(1, 0), (2, 0), (2, 1), (10, 0), (10, 1), ("a", 0), ("a", 1), ("b", 0)]
