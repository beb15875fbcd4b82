"""Who plays which run: turns, leases, crashes, stops, time limits; on both databases."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection

from proctor.api.runner import LostRun, Report
from proctor.api.runs import NewUpload, ResumeRequest
from proctor.server.db.database import Database
from proctor.server.people.tokens import find_user_caller, make_token, record_token_use, resolve_caller
from proctor.server.problems import ConflictError, UnauthenticatedError
from proctor.server.runs import event_log, incoming, queue, records, reports
from proctor.server.runs.causes import build_cause
from tests.server.runs import making

LEASE = 30.0
CRASH = LostRun(build_cause("crashed", "It was killed."))


@pytest.fixture
def ready(database: Database) -> Database:
    def people(connection: Connection) -> None:
        for name in ("ada", "bob"):
            making.user(connection, name)
        making.environment(connection)

    database.write_now(people)
    return database


def claim(database: Database, host: str = "h1", now: float = 100.0, **limits: Any) -> Any:
    return database.write_now(queue.claim_run, host, now, LEASE, **limits)


def status(database: Database, run_id: str) -> str:
    return str(database.read_now(queue.find_run, run_id).status)


def test_the_oldest_run_of_a_user_is_played_first(ready: Database) -> None:
    first = ready.write_now(making.run, now=1.0)
    ready.write_now(making.run, now=2.0)
    assert claim(ready).id == first


def test_a_user_with_many_runs_does_not_keep_others_waiting(ready: Database) -> None:
    for moment in range(5):
        ready.write_now(making.run, "ada", now=float(moment))
    late = ready.write_now(making.run, "bob", now=50.0)
    assert claim(ready, now=100.0).owner == "ada"
    assert claim(ready, now=101.0).id == late


def test_users_take_turns_one_run_at_a_time(ready: Database) -> None:
    for moment in range(4):
        ready.write_now(making.run, "ada", now=float(moment))
        ready.write_now(making.run, "bob", now=10.0 + moment)
    owners = []
    for moment in range(8):
        row = claim(ready, now=100.0 + moment)
        owners.append(row.owner)
        ready.write_now(queue.end_run, row, "finished", None, 200.0)
    assert sorted(owners[:2]) == ["ada", "bob"]
    assert all(one != other for one, other in itertools.pairwise(owners))


def test_a_user_may_have_only_so_many_runs_at_once(ready: Database) -> None:
    for moment in range(3):
        ready.write_now(making.run, now=float(moment))
    assert claim(ready, most_per_user=2) is not None
    assert claim(ready, most_per_user=2) is not None
    assert claim(ready, most_per_user=2) is None


def test_no_run_is_given_to_two_hosts(ready: Database) -> None:
    made = {ready.write_now(making.run, now=float(moment)) for moment in range(20)}
    with ThreadPoolExecutor(8) as crowd:
        got = list(crowd.map(lambda number: claim(ready, f"h{number}"), range(40)))
    ids = [row.id for row in got if row is not None]
    assert len(ids) == len(set(ids))
    while (row := claim(ready)) is not None:
        ids.append(row.id)
    assert sorted(ids) == sorted(made)


def test_a_lease_is_renewed_by_its_holder_only(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    claim(ready, "h1", 100.0)
    assert not ready.write_now(queue.renew_lease, run_id, "h1", 1, 120.0, LEASE).lost
    assert ready.write_now(queue.renew_lease, run_id, "h2", 1, 120.0, LEASE).lost
    assert ready.write_now(queue.sweep, 140.0, 3) == []


def test_a_run_whose_host_is_silent_goes_on_elsewhere_and_the_old_host_is_not_heard(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    claim(ready, "h1", 100.0)
    assert ready.write_now(queue.sweep, 131.0, 3) == [run_id]
    assert claim(ready, "h2", 132.0).attempt == 2
    assert ready.write_now(queue.renew_lease, run_id, "h1", 1, 133.0, LEASE).lost
    with pytest.raises(UnauthenticatedError):
        ready.write_now(reports.take_report, run_id, 1, incoming.prepare(Report(batch=1, rows=[])), 133.0)


def test_a_run_that_crashes_again_and_again_without_progress_has_failed(
    ready: Database,
) -> None:
    run_id = ready.write_now(making.run)
    for moment in range(3):
        claim(ready, "h1", 100.0 + moment)
        ready.write_now(queue.report_lost, run_id, CRASH, 100.5 + moment, 3)
    row = ready.read_now(queue.find_run, run_id)
    assert row.status == "failed"
    assert row.cause["code"] == "crashed"
    assert "3 times in a row" in row.cause["message"]


def test_crashes_with_progress_in_between_do_not_add_up(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    for number in range(6):
        row = claim(ready, "h1", 100.0 + number)
        told = Report(batch=1, rows=[making.row(number)])  # type: ignore[list-item]
        ready.write_now(reports.take_report, run_id, row.attempt, incoming.prepare(told), 100.2 + number)
        ready.write_now(queue.report_lost, run_id, CRASH, 100.5 + number, 3)
    assert status(ready, run_id) == "pending"


def test_the_token_of_an_attempt_is_good_for_nothing_once_the_attempt_is_lost(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    attempt = claim(ready).attempt
    made = ready.write_now(
        make_token, kind="run", user="ada", scopes=[], expires_at=None, run_id=run_id, attempt=attempt
    )
    assert ready.read_now(resolve_caller, made.secret).run_id == run_id
    ready.write_now(queue.report_lost, run_id, CRASH, 101.0, 3)
    assert status(ready, run_id) == "pending"
    with pytest.raises(UnauthenticatedError, match="The run of this token is over"):
        ready.read_now(resolve_caller, made.secret)


def test_a_run_that_gets_on_is_resumed_however_often_its_host_is_killed(
    ready: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "SPARE_ATTEMPTS", 4)
    run_id = ready.write_now(making.run)
    gone = LostRun(CRASH.cause, blameless=True)
    for number in range(6):
        row = claim(ready, "h1", 100.0 + number)
        told = Report(batch=1, rows=[making.row(number)])  # type: ignore[list-item]
        ready.write_now(reports.take_report, run_id, row.attempt, incoming.prepare(told), 100.2 + number)
        ready.write_now(queue.report_lost, run_id, gone, 100.5 + number, 3)
    assert status(ready, run_id) == "pending"
    claim(ready, "h1", 900.0)
    ready.write_now(queue.report_lost, run_id, gone, 901.0, 3)
    assert status(ready, run_id) == "failed"


def test_a_server_that_was_away_gives_hosts_time_to_be_heard(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    claim(ready, "h1", 100.0)
    ready.write_now(queue.extend_leases, 500.0, LEASE / 2)
    assert ready.write_now(queue.sweep, 501.0, 3) == []
    assert not ready.write_now(queue.renew_lease, run_id, "h1", 1, 507.0, LEASE).lost
    assert ready.write_now(queue.sweep, 530.0, 3) == []
    assert ready.write_now(queue.sweep, 538.0, 3) == [run_id]


def test_a_host_may_remove_what_it_has_of_runs_that_are_finished_or_gone(ready: Database) -> None:
    finished, waiting = ready.write_now(making.run), ready.write_now(making.run)
    ready.write_now(lambda connection: queue.change_status(connection, finished, "finished", 100.0))
    assert ready.read_now(queue.find_abandoned, [waiting, finished, "run-gone"]) == sorted(
        [finished, "run-gone"]
    )


def test_a_host_that_is_shut_down_does_not_count_against_the_run(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    for number in range(5):
        claim(ready, "h1", 100.0 + number)
        gone = LostRun(CRASH.cause, blameless=True)
        ready.write_now(queue.report_lost, run_id, gone, 100.5 + number, 3)
    assert status(ready, run_id) == "pending"


def test_a_pending_run_is_stopped_at_once_and_a_running_one_by_its_process(ready: Database) -> None:
    why = build_cause("stopped_by_user", "ada stopped the run.")
    waiting = ready.write_now(making.run, now=2.0)
    ready.write_now(queue.stop, waiting, why, 100.0)
    assert status(ready, waiting) == "stopped"
    running = ready.write_now(making.run, now=1.0)
    claim(ready)
    ready.write_now(queue.stop, running, why, 101.0)
    assert status(ready, running) == "stopping"
    assert ready.write_now(queue.renew_lease, running, "h1", 1, 102.0, LEASE).stop
    ready.write_now(queue.report_lost, running, CRASH, 103.0, 3)
    assert status(ready, running) == "stopped"
    assert ready.read_now(queue.find_run, running).cause["code"] == "stopped_by_user"


def test_a_run_beyond_its_time_is_stopped_and_has_timed_out(ready: Database) -> None:
    run_id = ready.write_now(making.run, timeout_minutes=1)
    claim(ready, "h1", 100.0)
    ready.write_now(queue.renew_lease, run_id, "h1", 1, 155.0, LEASE)
    ready.write_now(queue.sweep, 161.0, 3)
    assert status(ready, run_id) == "stopping"
    ready.write_now(queue.report_lost, run_id, CRASH, 162.0, 3)
    assert status(ready, run_id) == "timed_out"
    assert "time limit of 1 min" in ready.read_now(queue.find_run, run_id).cause["message"]


def test_a_stopped_run_is_resumed_with_more_time_and_a_finished_one_is_not(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    ready.write_now(queue.stop, run_id, build_cause("stopped_by_user", "stopped"), 100.0)
    ready.write_now(queue.resume, run_id, 101.0, ResumeRequest(timeout_minutes=90))
    row = ready.read_now(queue.find_run, run_id)
    assert (row.status, row.timeout_minutes, row.cause) == ("pending", 90, None)
    with pytest.raises(ConflictError, match="pending"):
        ready.write_now(queue.resume, run_id, 102.0, ResumeRequest())


def test_every_change_of_status_is_told_in_the_story_without_a_gap(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    row = claim(ready)
    ready.write_now(lambda connection: queue.end_run(connection, row, "finished", None, 101.0))
    told = ready.read_now(event_log.read_events, run_id, 0, 100)
    assert [event.seq for event in told] == [1, 2, 3]
    assert [event.status for event in told] == ["pending", "running", "finished"]


def test_uploads_take_nobodys_turn_and_are_never_given_to_a_host(ready: Database) -> None:
    def upload(connection: Connection) -> None:
        new = NewUpload(client_run_id="x", environment="sums", model="m", started_at=1e12)
        records.add_upload(connection, find_user_caller(connection, "ada"), new)

    ready.write_now(upload)
    run_id = ready.write_now(making.run)
    assert claim(ready, most_per_user=1).id == run_id


def test_what_an_older_attempt_says_of_its_end_changes_nothing(ready: Database) -> None:
    run_id = ready.write_now(making.run)
    claim(ready, "h1", 100.0)
    ready.write_now(queue.sweep, 131.0, 3)
    claim(ready, "h2", 132.0)
    assert not ready.write_now(queue.report_lost, run_id, CRASH, 133.0, 3, "h1", 1)
    assert status(ready, run_id) == "running"
    assert ready.write_now(queue.report_lost, run_id, CRASH, 134.0, 3, "h2", 2)


def test_a_run_that_nothing_will_play_says_so_until_a_host_is_connected(ready: Database) -> None:
    run_id = ready.write_now(making.run, now=1000.0)

    def waiting_because(now: float) -> str:
        return str(
            ready.read_now(lambda found: queue.explain_waiting(found, queue.find_run(found, run_id), now))
        )

    def add_host(connection: Connection) -> str:
        made = make_token(connection, kind="host", user=None, name="big", scopes=[], expires_at=None)
        return made.secret.split("_")[1]

    assert waiting_because(1001.0).startswith(
        "No host that can play runs is connected to this server, so the run waits."
    )
    ready.write_now(queue.warn_without_host, run_id, 1001.0)
    events = ready.read_now(event_log.read_events, run_id, 0, 10)
    assert [event.text for event in events if event.level == "WARNING"] == [queue.NO_HOST]

    host = ready.write_now(add_host)
    assert waiting_because(1001.0)  # enrolled, but never seen
    ready.write_now(record_token_use, host, 1002.0)
    assert waiting_because(1100.0) == ""
    assert waiting_because(2000.0) == queue.NO_HOST
