"""Runs that are started together: all of them, or none and a reason for each that could not be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served, serving, settings_in

ENDPOINTS = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'
UNPRICED = '[[endpoint]]\nendpoint_id = "unpriced"\nmodel = "new-1"\nurl = "http://127.0.0.1:1/v1"\n'
SECRETIVE = '\n[tool.proctor]\nsecrets = ["SUMS_KEY"]\n'


@pytest.fixture
def server(tmp_path: Path, database_url: str) -> Iterator[Served]:
    registry = tmp_path / "endpoints.toml"
    registry.write_text(ENDPOINTS)
    with serving(settings_in(tmp_path, database=database_url, endpoints=registry)) as served:
        yield served


@pytest.fixture
def ada(server: Served, tmp_path: Path) -> Api:
    api = server.user("ada")
    assert push(api, made(tmp_path / "sums", "sums")).status == 201
    return api


def new(environment: str = "ada/sums", **fields: Any) -> dict[str, Any]:
    return {"environment": environment, "model": "parrot", **fields}


def start(api: Api, *runs: dict[str, Any], **headers: str) -> Any:
    return api("POST", "/runs/batch", {"runs": list(runs)}, headers=headers)


def test_a_suite_is_started_as_a_whole_in_the_order_of_its_blocks_and_only_once(ada: Api) -> None:
    blocks = [new(name="first"), new(name="second"), new(name="third")]
    answer = start(ada, *blocks, **{"Idempotency-Key": "suite"})
    assert (answer.status, [run["name"] for run in answer.body["runs"]]) == (
        201,
        ["first", "second", "third"],
    )
    assert start(ada, *blocks, **{"Idempotency-Key": "suite"}).body == answer.body
    assert len(ada.get("/runs")["items"]) == 3


def test_a_block_that_cannot_run_starts_nothing_and_every_such_block_is_named(
    ada: Api, tmp_path: Path
) -> None:
    assert push(ada, made(tmp_path / "secretive", "secretive", project=SECRETIVE)).status == 201
    answer = start(
        ada,
        new(),
        new("ada/nothing"),
        new(model="no-such-model"),
        new("ada/secretive"),
        new(settings={"num_workers": 3}),
        new(timeout_minutes=0),
        new(custom_secrets={"PATH": "x"}),
    )
    assert answer.status == 422
    assert [refused["index"] for refused in answer.body["details"]["runs"]] == [1, 2, 3, 4, 5, 6]
    assert answer.body["message"].startswith("No run was started. Run 2 of 7 (ada/nothing with parrot): ")
    for word in ("no-such-model", "SUMS_KEY", "num_workers", "timeout_minutes", "PATH"):
        assert word in answer.body["message"], word
    assert ada.get("/runs")["items"] == []


def test_refusals_of_one_kind_keep_their_code(ada: Api) -> None:
    answer = start(ada, new(), new("ada/nothing"), new("ada/nobody"))
    assert (answer.status, answer.code) == (404, "not_found")
    assert ada.get("/runs")["items"] == []


def test_a_suite_that_the_account_cannot_pay_for_as_a_whole_is_not_started(server: Served, ada: Api) -> None:
    server.root.post("/grants", {"owner": "ada", "amount_usd": 5})
    blocks = [new(max_cost_usd=2), new(max_cost_usd=2), new(max_cost_usd=2)]
    answer = start(ada, *blocks)
    assert answer.status == 402, answer
    assert "Run 3 of 3" in answer.body["message"]
    assert (ada.get("/runs")["items"], ada.get("/balance")["held_usd"]) == ([], 0)
    assert start(ada, *blocks[:2]).status == 201
    assert ada.get("/balance")["held_usd"] == 4


def test_a_model_without_a_price_is_refused_before_the_run_starts_if_spending_is_limited(
    tmp_path: Path,
) -> None:
    registry = tmp_path / "endpoints.toml"
    registry.write_text(UNPRICED)
    with serving(settings_in(tmp_path, endpoints=registry)) as served:
        ada = served.user("ada")
        assert push(ada, made(tmp_path / "sums", "sums")).status == 201
        assert ada("POST", "/runs", new(model="unpriced")).status == 201
        served.root.post("/grants", {"owner": "ada", "amount_usd": 5})

        refused = ada("POST", "/runs", new(model="unpriced"))

        assert (refused.status, refused.code) == (403, "no_price")
        assert "proctor wallet price unpriced" in refused.body["message"]
        assert len(ada.get("/runs")["items"]) == 1


def test_a_suite_longer_than_the_queue_is_not_started(tmp_path: Path) -> None:
    registry = tmp_path / "endpoints.toml"
    registry.write_text(ENDPOINTS)
    with serving(settings_in(tmp_path, endpoints=registry)) as served:
        ada = served.user("ada")
        assert push(ada, made(tmp_path / "sums", "sums")).status == 201
        answer = start(ada, *[new() for _ in range(101)])
        assert (answer.status, answer.code) == (409, "quota_exceeded")
        assert "Run 101 of 101" in answer.body["message"]
        assert ada.get("/runs")["items"] == []
        assert start(ada, *[new() for _ in range(201)]).status == 422
        assert start(ada).status == 422


def test_a_run_that_is_refused_can_be_started_with_the_same_key_once_it_is_right(
    ada: Api, tmp_path: Path
) -> None:
    assert start(ada, new(), new("ada/later"), **{"Idempotency-Key": "suite"}).status == 404
    assert push(ada, made(tmp_path / "later", "later")).status == 201
    assert start(ada, new(), new("ada/later"), **{"Idempotency-Key": "suite"}).status == 201
