"""What an attempt was given is not read in its log, whatever has become of the secret since."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Connection, select

from proctor.api.runner import RunAssignment
from proctor.server.db.tables import attempt_secrets, runs
from proctor.server.runs import queue
from proctor.server.runs.service import KEPT_SECRETS_SECONDS, settle_ended_runs
from proctor.server.secrets.resolution import save_run_secrets
from proctor.server.settings import Settings
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

OLD, NEW = "old-value-of-the-secret/+", "new-value-of-the-secret/+"
PLACE = "/environments/ada/sums"


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return settings_in(tmp_path, database=database_url)


@pytest.fixture
def attempt(settings: Settings) -> Iterator[tuple[Served, Api, RunAssignment]]:
    """A run under way that was given one secret of each kind; and its owner."""
    with serving(settings) as served:
        ada = served.user("ada")
        served.platform.database.write_now(making.environment)
        ada.post(f"{PLACE}/secrets", {"name": "OWN", "value": OLD})
        linked = ada.post("/secrets", {"name": "LINKED", "value": f"linked-{OLD}"})
        ada.ok("PUT", f"{PLACE}/secrets/links/{linked['id']}")
        run_id = served.platform.database.write_now(making.run)
        custom = {"CUSTOM": f"custom-{OLD}"}
        served.platform.database.write_now(save_run_secrets, served.platform.vault, run_id, custom)
        assignment = served.call(served.platform.runs.claim, "h1")
        assert assignment.variables == {"OWN": OLD, "LINKED": f"linked-{OLD}", **custom}
        yield served, ada, assignment


def rotate_all(ada: Api) -> None:
    """One is changed, the other deleted."""
    for secret in ada.get(f"{PLACE}/secrets")["items"]:
        if secret["kind"] == "environment":
            ada.ok("PATCH", f"{PLACE}/secrets/{secret['id']}", {"value": NEW})
        else:
            ada.ok("DELETE", f"/secrets/{secret['id']}")


def report(served: Served, assignment: RunAssignment, batch: int, *lines: str) -> list[str]:
    """The log after these lines were reported."""
    logs = [{"level": "INFO", "text": line, "at": time.time()} for line in lines]
    Api(served.url, assignment.token).post("/runner/reports", {"batch": batch, "logs": logs})
    events = served.root.get(f"/runs/{assignment.run_id}/events")["items"]
    return [event["text"] for event in events if event["kind"] == "log"]


def test_old_values_stay_out_of_the_log_after_a_rotation_and_a_restart(
    attempt: tuple[Served, Api, RunAssignment], settings: Settings
) -> None:
    before, ada, assignment = attempt
    rotate_all(ada)
    before.platform.data_lock.close()  # as if it had ended
    with serving(settings) as served:  # it knows only what is in the database
        served = served._replace(root=Api(served.url, before.root.token))
        encoded = base64.b64encode(f"--{OLD}--".encode()).decode()
        log = report(
            served,
            assignment,
            1,
            f"own {OLD}",
            f"linked-{OLD}",
            f"custom-{OLD}",
            encoded,
            quote(OLD, safe=""),
        )
        token = base64.b64encode(assignment.token.encode()).decode()
        log += report(served, assignment, 2, f"token {assignment.token}", f"encoded {token}")

    assert log
    told = "\n".join(log)
    assert "old-value" not in told
    assert base64.b64encode(OLD.encode()).decode()[:20] not in told
    assert encoded not in told
    assert quote(OLD, safe="") not in told
    assert assignment.token not in told
    assert token not in told


def test_the_next_attempt_does_not_tell_what_the_one_before_it_left_behind(
    attempt: tuple[Served, Api, RunAssignment],
) -> None:
    served, ada, assignment = attempt
    rotate_all(ada)

    def crash(connection: Connection) -> None:
        from proctor.api.runner import LostRun
        from proctor.server.runs.causes import build_cause

        queue.report_lost(
            connection, assignment.run_id, LostRun(build_cause("crashed", "It died.")), time.time(), 3
        )

    served.platform.database.write_now(crash)
    second = served.call(served.platform.runs.claim, "h1")
    assert (second.attempt, second.variables["OWN"]) == (2, NEW)

    log = report(served, second, 1, f"a file says {OLD}", f"and {NEW}")

    assert log == ["a file says [secret OWN]", "and [secret OWN]"]


def test_the_gateway_asks_with_what_the_attempt_was_given(attempt: tuple[Served, Api, RunAssignment]) -> None:
    served, ada, assignment = attempt
    rotate_all(ada)

    found = served.call(served.platform.runs.variables, assignment.run_id)

    assert found == assignment.variables


def test_what_was_given_is_sealed_and_forgotten_once_nobody_can_go_on_with_the_run(
    attempt: tuple[Served, Api, RunAssignment],
) -> None:
    served, _, assignment = attempt
    database = served.platform.database

    def kept(connection: Connection) -> list[Any]:
        return list(connection.execute(select(attempt_secrets.c.sealed)).scalars())

    (sealed,) = database.read_now(kept)
    assert OLD.encode() not in sealed
    stopped = runs.update().where(runs.c.id == assignment.run_id).values(status="stopped", ended_at=1.0)
    database.write_now(lambda connection: connection.execute(stopped))
    database.write_now(settle_ended_runs, KEPT_SECRETS_SECONDS)
    assert len(database.read_now(kept)) == 1

    database.write_now(settle_ended_runs, KEPT_SECRETS_SECONDS + 2)

    assert database.read_now(kept) == []
