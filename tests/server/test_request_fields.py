"""Requests with fields that do not exist are refused by name, with the field that was probably meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.api import field_problems
from proctor.api.people import NewToken
from proctor.api.runs import NewRun, NewUpload, Permissions
from proctor.client.connection import encode_body
from proctor.config import hosted
from proctor.errors import did_you_mean
from tests.server.hub.packages import made, push
from tests.server.serving import Answer, Api, Served


@pytest.fixture
def ada(served: Served) -> Api:
    return served.user("ada")


def fields(answer: Answer) -> list[str]:
    assert (answer.status, answer.code) == (422, "invalid"), answer
    return [problem["field"] for problem in answer.body["details"]["problems"]]


def test_misspelt_limits_start_no_unlimited_run_and_every_one_of_them_is_named(ada: Api) -> None:
    answer = ada(
        "POST",
        "/runs",
        {
            "environment": "ada/sums",
            "max_cost": 0.01,
            "timeout_minute": 1,
            "setting": {"num_examples": 1},
            "permissions": {"internet": True},
        },
    )
    assert fields(answer) == ["max_cost", "timeout_minute", "setting", "permissions.internet"]
    for meant in ("did you mean 'max_cost_usd'?", "'timeout_minutes'", "'settings'"):
        assert meant in answer.body["message"]
    assert ada.get("/runs")["items"] == []


def test_all_problems_of_a_request_are_reported_at_once(ada: Api) -> None:
    answer = ada("POST", "/runs", {"enviroment": "a/b", "timeout_minutes": "soon", "settings": 5})
    assert sorted(fields(answer)) == ["enviroment", "environment", "settings", "timeout_minutes"]
    assert "environment is required." in answer.body["message"]


def test_a_misspelt_setting_is_answered_with_the_nearest_one(ada: Api) -> None:
    answer = ada("POST", "/runs", {"environment": "a/b", "settings": {"num_example": 1, "num_workers": 2}})
    assert answer.status == 422
    assert (
        "'num_example' is not a setting of a hosted run; did you mean 'num_examples'"
        in answer.body["message"]
    )
    assert "does not take num_workers" in answer.body["message"]


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("/runs?stauts=running", "stauts", "'status'"),
        ("/runs?status=runing", "status", "'running'"),
        ("/runs?kind=hostd", "kind", "'hosted'"),
        ("/environments?visibilty=public", "visibilty", "'visibility'"),
        ("/environments?sort=update_at", "sort", "'updated_at'"),
        ("/runs?limit=many", "limit", "expected `int`"),
        ("/whoami?verbose=1", "verbose", "is not a query parameter"),
    ],
)
def test_a_misspelt_query_does_not_list_everything(ada: Api, path: str, field: str, meant: str) -> None:
    answer = ada("GET", path)
    assert fields(answer) == [field]
    assert meant in answer.body["message"]


def test_a_push_with_a_misspelt_field_publishes_nothing(ada: Api, tmp_path: Path) -> None:
    answer = push(ada, made(tmp_path, "sums"), visibilty="public")
    assert fields(answer) == ["visibilty"]
    assert ada.get("/environments")["items"] == []


def test_an_uploaded_report_with_a_misspelt_part_is_refused(ada: Api) -> None:
    run = ada.post("/uploads", {"client_run_id": "one", "environment": "e", "model": "m"})["id"]
    assert fields(ada("POST", f"/uploads/{run}/reports", {"batch": 1, "row": []})) == ["row"]


def test_a_host_of_a_newer_version_may_send_what_this_server_does_not_know(served: Served) -> None:
    token = served.root.post("/hosts", {"name": "elsewhere"})["token"]
    host = Api(served.url, token, host_key="k" * 64)
    assert host("POST", "/hosts/claims", {"host": "box", "capacity": 4}).status == 204
    assert host("POST", "/hosts/checks/claims?rack=7").status == 204


def test_a_newer_client_sends_an_older_server_only_the_fields_that_are_used() -> None:
    assert json.loads(encode_body(NewRun(environment="a/b"))) == {"environment": "a/b"}
    given = NewRun(environment="a/b", permissions=Permissions(network=True), timeout_minutes=5)
    assert json.loads(encode_body(given)) == {
        "environment": "a/b",
        "permissions": {"network": True},
        "timeout_minutes": 5,
    }
    assert json.loads(encode_body(NewToken(expires_in_days=None))) == {"expires_in_days": None}
    upload = NewUpload(client_run_id="1", environment="e", model="m", metadata={"config": {}})
    assert json.loads(encode_body(upload))["metadata"] == {"config": {}}


def many(name: str, count: int) -> dict[str, str]:
    return {f"{name}{number}": "x" for number in range(count)}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runs", many("environmen", 40_000)),
        ("/runs/run-0/labels", {"labels": [1] * 300_000}),
        ("/runs/check", {"environment": "a/b", "custom_secrets": many("a", 40_000)}),
        ("/runs/check", {"environment": "a/b", "settings": many("max_step", 30_000)}),
        ("/environments?" + "&".join(f"nam{number}=" for number in range(6_000)), None),
    ],
    ids=["names", "items", "secrets", "settings", "parameters"],
)
def test_of_a_request_that_is_all_wrong_no_more_is_looked_at_than_is_named(
    ada: Api, monkeypatch: pytest.MonkeyPatch, path: str, body: object
) -> None:
    """Each sentence takes a while to make, on the loop that serves everyone."""
    made: list[object] = []

    def counted(function: Callable[..., str]) -> Callable[..., str]:
        def call(*args: object) -> str:
            made.append(args)
            return function(*args)

        return call

    for module in (field_problems, hosted):
        monkeypatch.setattr(module, "did_you_mean", counted(did_you_mean))
    monkeypatch.setattr(field_problems, "describe_value", counted(field_problems.describe_value))

    answer = ada("GET" if body is None else "POST", path, body)

    assert answer.status in (200, 413, 422)
    assert len(made) <= 3 * field_problems.MOST_PROBLEMS
    assert len(answer.body.get("details", answer.body).get("problems", [])) <= field_problems.MOST_PROBLEMS
