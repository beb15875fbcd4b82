"""Whoever left a team or was disabled spends none of its money: at a resume, in the queue, while it plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, update

from proctor.api.people import Member
from proctor.server.db.database import Database
from proctor.server.db.tables import members, roles, users
from proctor.server.people.records import add_team, put_member, remove_member
from proctor.server.people.tokens import resolve_caller
from proctor.server.problems import ApiError
from proctor.server.runs import assignments, queue, rights
from proctor.server.secrets.vault import open_vault
from proctor.server.settings import Settings
from tests.server.hub.packages import made, push
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in
from tests.waiting import wait_for

MODELS = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'


@pytest.fixture
def served(tmp_path: Path, database_url: str) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    settings = settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml", database=database_url)
    with serving(settings) as server:
        yield server


@pytest.fixture
def lab(served: Served, tmp_path: Path) -> tuple[Api, Api]:
    """An admin of a team, and a member of it, with a public environment."""
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    push(ada, made(tmp_path / "p"))
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "read"})
    return ada, bob


def started(member: Api) -> str:
    asked = {"environment": "ada/greet", "model": "parrot", "team": "lab"}
    return str(member.post("/runs", asked)["id"])


def test_a_former_member_cannot_resume_a_run_that_the_team_pays_for(lab: tuple[Api, Api]) -> None:
    ada, bob = lab
    run_id = started(bob)
    bob.post(f"/runs/{run_id}/stop", {})
    ada.ok("DELETE", "/teams/lab/members/bob")

    assert bob("POST", f"/runs/{run_id}/resume", {}).status == 404
    assert ada.get(f"/runs/{run_id}")["status"] == "stopped"


def test_nobody_else_resumes_a_run_in_the_name_of_a_former_member(lab: tuple[Api, Api]) -> None:
    ada, bob = lab
    run_id = started(bob)
    bob.post(f"/runs/{run_id}/stop", {})
    ada.ok("DELETE", "/teams/lab/members/bob")

    refused = ada("POST", f"/runs/{run_id}/resume", {})

    assert (refused.status, refused.code) == (403, "not_a_member")
    assert "bob is no longer a member of team 'lab'" in refused.body["message"]


def test_nobody_else_resumes_a_run_of_a_disabled_user(served: Served, lab: tuple[Api, Api]) -> None:
    ada, bob = lab
    run_id = started(bob)
    bob.post(f"/runs/{run_id}/stop", {})
    served.root.ok("PATCH", "/users/bob?disabled=true")

    assert ada("POST", f"/runs/{run_id}/resume", {}).code == "user_disabled"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/events", None),
        ("GET", "/events/stream", None),
        ("GET", "/rows", None),
        ("GET", "/results.jsonl", None),
        ("GET", "/metadata.json", None),
        ("POST", "/stop", {}),
        ("DELETE", "", None),
    ],
)
def test_a_former_member_has_no_part_in_the_teams_runs(
    lab: tuple[Api, Api], method: str, path: str, body: Any
) -> None:
    ada, bob = lab
    run_id = started(bob)
    ada.ok("DELETE", "/teams/lab/members/bob")

    assert bob(method, f"/runs/{run_id}{path}", body).status == 404
    assert ada.get(f"/runs/{run_id}")["id"] == run_id
    assert bob.get("/runs")["items"] == []


def test_a_former_member_adds_nothing_to_an_upload_of_the_team(lab: tuple[Api, Api]) -> None:
    ada, bob = lab
    upload = {
        "client_run_id": "one",
        "environment": "greet",
        "model": "parrot",
        "team": "lab",
        "metadata": {},
    }
    run_id = bob.post("/uploads", upload)["id"]
    ada.ok("DELETE", "/teams/lab/members/bob")

    assert bob("POST", f"/uploads/{run_id}/reports", {"batch": 1}).status == 404
    assert bob("POST", "/uploads", {**upload, "team": None}).status == 404


def test_runs_that_wait_end_when_their_owner_leaves_the_team(lab: tuple[Api, Api]) -> None:
    ada, bob = lab
    run_id = started(bob)

    ada.ok("DELETE", "/teams/lab/members/bob")

    run = ada.get(f"/runs/{run_id}")
    assert run["status"] == "stopped"
    assert run["cause"]["message"] == "bob is no longer a member of team 'lab'."


@pytest.mark.parametrize(
    "change",
    [
        delete(members).where(members.c.user == "bob"),
        update(users).where(users.c.name == "bob").values(disabled_at=1.0),
    ],
)
def test_runs_that_wait_end_although_another_server_took_the_right_away(
    served: Served, lab: tuple[Api, Api], change: Any
) -> None:
    ada, bob = lab
    run_id = started(bob)

    served.platform.database.write_now(lambda connection: connection.execute(change))

    wait_for(lambda: ada.get(f"/runs/{run_id}")["status"] == "stopped")


def team_run(connection: Connection) -> str:
    for name in ("ada", "bob"):
        making.user(connection, name)
    making.environment(connection)
    add_team(connection, "lab", "ada")
    put_member(connection, "lab", Member(user="bob"))
    connection.execute(roles.insert().values(environment_id="env-ada-sums", holder="bob", role="read"))
    return making.run(connection, "bob", team="lab", environment_id="env-ada-sums")


def test_a_host_is_not_given_a_run_whose_owner_left_the_team_a_moment_ago(
    database: Database, tmp_path: Path
) -> None:
    run_id = database.write_now(team_run)
    database.write_now(remove_member, "lab", "bob")

    order = database.write_now(
        assignments.claim_assignment, open_vault(tmp_path, {}), Settings(data=tmp_path), "h1"
    )

    assert order is None
    row = database.read_now(queue.find_run, run_id)
    assert (row.status, row.cause["code"]) == ("failed", "missing_permission")


def test_a_run_under_way_is_stopped_and_spends_nothing_more(database: Database, tmp_path: Path) -> None:
    run_id = database.write_now(team_run)
    order = database.write_now(
        assignments.claim_assignment, open_vault(tmp_path, {}), Settings(data=tmp_path), "h1"
    )
    assert order is not None
    database.read_now(resolve_caller, order.token).need("inference")

    database.write_now(remove_member, "lab", "bob")

    with pytest.raises(ApiError, match="inference"):
        database.read_now(resolve_caller, order.token).need("inference")
    assert database.write_now(rights.stop_disallowed, 1.0) == [run_id]
    assert database.read_now(queue.find_run, run_id).status == "stopping"
    assert database.write_now(rights.stop_disallowed, 2.0) == []
