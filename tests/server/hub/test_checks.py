"""Checks after a push: each is one host's at a time, and none is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.server.hub import checks
from proctor.server.people.tokens import Caller, make_token
from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served

RESULT = {
    "passed": True,
    "message": "Installs, loads, has 3 tasks.",
    "tasks": 3,
    "seconds": 1.5,
    "log": "all of it",
    "lock": "greet==0.1.0",
    "facts": {"mean_prompt_characters": 20},
}


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    push(api, made(tmp_path))
    return api


def host(served: Served) -> Api:
    token = served.platform.database.write_now(
        lambda connection: make_token(connection, kind="host", user=None, scopes=[], expires_at=None)
    )
    return Api(served.url, token.secret, host_key="k" * 64)


def check_of(api: Api) -> Any:
    return api.get("/environments/ada/greet/versions/latest")["check"]


def test_a_host_takes_a_check_and_its_report_is_shown(served: Served, ada: Api) -> None:
    first, second = host(served), host(served)
    order = first.post("/hosts/checks/claims")
    assert (order["environment"], order["version"], order["module"]) == ("ada/greet", "0.1.0", "greet")
    assert check_of(ada)["status"] == "running"
    assert second("POST", "/hosts/checks/claims", {}).status == 204

    assert second("POST", f"/hosts/checks/{order['version_id']}", RESULT).code == "lease_lost"
    first.ok("POST", f"/hosts/checks/{order['version_id']}", RESULT)

    told = check_of(ada)
    assert (told["status"], told["tasks"], told["log"]) == ("passed", 3, "all of it")
    assert ada.get("/environments/ada/greet/versions")["items"][0]["check"]["log"] == ""
    assert first("POST", f"/hosts/checks/{order['version_id']}", RESULT).code == "lease_lost"


def test_only_hosts_take_checks(served: Served, ada: Api) -> None:
    for other in (ada, served.root):
        assert other("POST", "/hosts/checks/claims", {}).status == 403


def test_a_silent_hosts_check_is_given_again_and_fails_after_the_third(served: Served, ada: Api) -> None:
    someone = Caller(user="", kind="host", token_id="t")
    database, late = served.platform.database, 4e9
    for _ in range(checks.MOST_LEASES):
        assert database.write_now(checks.claim_check, someone, late) is not None
        assert database.write_now(checks.claim_check, someone, late) is None
        late += checks.LEASE_SECONDS + 1

    assert database.write_now(checks.claim_check, someone, late) is None
    assert (check_of(ada)["status"], check_of(ada)["message"]) == ("failed", checks.GAVE_UP)


def test_a_check_can_be_asked_for_once_more(served: Served, ada: Api) -> None:
    worker = host(served)
    order = worker.post("/hosts/checks/claims")
    worker.ok("POST", f"/hosts/checks/{order['version_id']}", {**RESULT, "passed": False})
    assert check_of(ada)["status"] == "failed"

    ada.post("/environments/ada/greet/versions/latest/check")

    assert worker.post("/hosts/checks/claims")["version_id"] == order["version_id"]


def test_a_check_is_given_variables_and_no_secrets(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    push(ada, made(tmp_path, project='\n[tool.proctor]\nsecrets = ["JUDGE_KEY"]\n'))
    linked = ada.post("/secrets", {"name": "LINKED_KEY", "value": "tomatoes-and-onions"})
    ada.ok("PUT", f"/environments/ada/greet/secrets/links/{linked['id']}")
    ada.post("/environments/ada/greet/secrets", {"name": "JUDGE_KEY", "value": "potatoes-and-leeks"})
    ada.post("/environments/ada/greet/variables", {"name": "DEPTH", "value": "3"})

    order = host(served).post("/hosts/checks/claims")

    assert order["variables"] == {"DEPTH": "3"}
    assert order["secrets"] == ["JUDGE_KEY"]
    assert "tomatoes" not in str(order)
    assert "potatoes" not in str(order)


@pytest.mark.parametrize(("named", "status"), [("JUDGE_KEY", "inconclusive"), ("UNDECLARED", "failed")])
def test_only_a_declared_secret_makes_a_check_inconclusive(
    served: Served, tmp_path: Path, named: str, status: str
) -> None:
    ada, worker = served.user("ada"), host(served)
    push(ada, made(tmp_path, project='\n[tool.proctor]\nsecrets = ["JUDGE_KEY"]\n'))
    order = worker.post("/hosts/checks/claims")
    result = {**RESULT, "passed": False, "needs_secret": named}

    worker.ok("POST", f"/hosts/checks/{order['version_id']}", result)

    assert check_of(ada)["status"] == status


TASKS = [
    {"slug": "easy", "env": "greet", "template": "hello", "args": {"name": "Ada"}},
    {"slug": "zero\0byte", "prompt": "Say hello."},
    {"slug": "last", "env": "greet", "template": "hello", "columns": {"level": 3}},
]
LIST = "/environments/ada/greet/versions/latest/tasks"


def test_the_tasks_that_a_check_found_are_listed_page_by_page_and_by_slug(
    served_on_both: Served, tmp_path: Path
) -> None:
    ada = served_on_both.user("ada")
    push(ada, made(tmp_path))
    early = ada("GET", LIST)
    assert (early.status, early.code) == (409, "tasks_unknown")
    assert "not started" in early.body["message"]

    worker = host(served_on_both)
    order = worker.post("/hosts/checks/claims")
    worker.ok("POST", f"/hosts/checks/{order['version_id']}", {**RESULT, "task_list": TASKS})

    assert ada.get(LIST)["items"] == TASKS
    page = ada.get(f"{LIST}?limit=2")
    rest = ada.get(f"{LIST}?limit=2&cursor={page['next_cursor']}")
    assert [*page["items"], *rest["items"]] == TASKS
    assert rest["next_cursor"] is None
    assert ada.get(f"{LIST}?slug=last")["items"] == [TASKS[2]]
    assert ada("GET", f"{LIST}?slug=lost").status == 404
    assert served_on_both.user("eve")("GET", LIST).status == 404

    ada.post("/teams", {"name": "lab"})
    ada.post("/environments/ada/greet/fork", {"team": "lab"})
    assert ada.get(LIST.replace("ada/greet", "lab/greet"))["items"] == TASKS


def test_more_tasks_than_are_listed_are_refused_by_name(served: Served, ada: Api) -> None:
    worker = host(served)
    order = worker.post("/hosts/checks/claims")
    many = [{"slug": "x" * 4_000}] * 700
    refused = worker("POST", f"/hosts/checks/{order['version_id']}", {**RESULT, "task_list": many})
    assert (refused.status, refused.body["details"].get("field")) == (413, "task_list"), refused
