"""The example evaluation: offered where it can be played, refused with the reason where it cannot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from proctor.server.db.tables import tokens
from tests.server.serving import Api, Served, serving, settings_in

SCRIPTED_LOCAL = """
[[endpoint]]
endpoint_id = "local"
model = "parrot"
type = "scripted"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    registry = tmp_path / "endpoints.toml"
    registry.write_text(SCRIPTED_LOCAL)
    with serving(settings_in(tmp_path, endpoints=registry)) as served:
        yield served


def connect_host(server: Served) -> None:
    server.root.post("/hosts", {"name": "elsewhere"})

    def use(connection: Connection) -> None:
        connection.execute(update(tokens).where(tokens.c.kind == "host").values(last_used_at=time.time()))

    server.platform.database.write_now(use)


def test_a_server_without_the_model_says_who_could_change_that(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server:
        ada = server.user("ada")
        refused = ada("POST", "/example")

        assert "--no-local-model" in ada.get("/example")["problem"]
        assert (refused.status, refused.code) == (409, "no_example")


def test_a_server_without_a_host_says_so_and_so_does_a_session_that_may_only_read(server: Served) -> None:
    ada = server.user("ada")
    made = ada.post("/tokens", {"name": "reader", "scopes": ["environments:read", "runs:read"]})
    reader = Api(server.url, made["secret"])

    assert "No host that can play runs is connected" in ada.get("/example")["problem"]
    connect_host(server)
    assert ada.get("/example")["problem"] == ""
    assert "may not push environments" in reader.get("/example")["problem"]
    assert reader("POST", "/example").code == "missing_scope"
    assert server.nobody("POST", "/example").status == 401


def test_the_example_is_pushed_as_the_caller_s_own_and_only_once(server: Served) -> None:
    ada = server.user("ada")
    connect_host(server)

    first = ada.post("/example", None, **{"idempotency-key": "first"})
    again = ada.post("/example", None, **{"idempotency-key": "first"})
    second = ada.post("/example")

    assert first["id"] == again["id"] != second["id"]
    assert (first["environment"], first["model"]) == ("ada/capitals-example", "local")
    assert first["version"] == second["version"]
    assert len(ada.get("/environments/ada/capitals-example/versions")["items"]) == 1
