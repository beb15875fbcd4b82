"""Going on with a run: what it needed when it was asked for must still be there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.hub.packages import made, push
from tests.server.serving import Served, serving, settings_in

MODELS = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as server:
        yield server


def test_who_may_no_longer_read_the_environment_cannot_go_on_with_it(served: Served, tmp_path: Path) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    push(ada, made(tmp_path / "p"))
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "read"})
    run_id = bob.post("/runs", {"environment": "ada/greet", "model": "parrot"})["id"]
    bob.post(f"/runs/{run_id}/stop", {})
    assert bob.post(f"/runs/{run_id}/resume", {})["status"] == "pending"
    bob.post(f"/runs/{run_id}/stop", {})

    ada.ok("DELETE", "/environments/ada/greet/collaborators/bob")

    assert bob("POST", f"/runs/{run_id}/resume", {}).status == 404


def test_a_run_whose_own_secrets_were_forgotten_is_not_started_without_them(
    served: Served, tmp_path: Path
) -> None:
    ada = served.user("ada")
    push(ada, made(tmp_path / "p", project='\n[tool.proctor]\nsecrets = ["KEY"]\n'))
    asked = {"environment": "ada/greet", "model": "parrot", "custom_secrets": {"KEY": "tomatoes"}}
    run_id = ada.post("/runs", asked)["id"]
    ada.post(f"/runs/{run_id}/stop", {})
    assert ada.post(f"/runs/{run_id}/resume", {})["status"] == "pending"
    ada.post(f"/runs/{run_id}/stop", {})
    with served.platform.database._writing.begin() as connection:
        connection.exec_driver_sql("DELETE FROM run_secrets")

    refused = ada("POST", f"/runs/{run_id}/resume", {})

    assert (refused.status, refused.code) == (422, "missing_secret")
