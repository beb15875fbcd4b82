"""Who may run an environment: its readers or its writers, as its owner or the operator says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from proctor.cli.commands.hub import run_policy_command
from tests.server.hub.packages import made, push
from tests.server.runs.test_former_members import MODELS
from tests.server.serving import Answer, Api, Served, serving, settings_in

GREET = "/environments/ada/greet"
ASKED = {"environment": "ada/greet", "model": "parrot"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as server:
        yield server


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    push(api, made(tmp_path / "p"))
    api.ok("PATCH", GREET, {"visibility": "public"})
    return api


@pytest.fixture
def bob(served: Served) -> Api:
    return served.user("bob")


def start(user: Api) -> Answer:
    return user("POST", "/runs", ASKED)


def test_everyone_who_may_read_an_environment_may_run_it_unless_its_owner_says_otherwise(
    ada: Api, bob: Api
) -> None:
    assert start(bob).status == 201

    told = ada.ok("PATCH", GREET, {"run_policy": "writers"})
    refused = start(bob)

    assert (told["run_policy"], told["run_policy_is_default"]) == ("writers", False)
    assert (refused.status, refused.code) == (403, "run_policy")
    assert "proctor env fork ada/greet" in refused.body["message"]
    assert start(ada).status == 201
    ada.ok("PUT", f"{GREET}/collaborators", {"name": "bob", "role": "write"})
    assert start(bob).status == 201


def test_only_the_owner_of_an_environment_changes_who_may_run_it(ada: Api, bob: Api) -> None:
    ada.ok("PUT", f"{GREET}/collaborators", {"name": "bob", "role": "write"})
    assert bob("PATCH", GREET, {"run_policy": "readers"}).status == 403
    assert ada("PATCH", GREET, {"run_policy": "friends"}).status == 422


def test_a_run_that_waits_or_is_resumed_needs_what_the_policy_says_by_then(
    served: Served, ada: Api, bob: Api
) -> None:
    stopped, waiting = start(bob).body["id"], start(bob).body["id"]
    bob.post(f"/runs/{stopped}/stop", {})
    ada.ok("PATCH", GREET, {"run_policy": "writers"})

    assert bob("POST", f"/runs/{stopped}/resume", {}).code == "run_policy"
    assert served.call(served.platform.runs.claim, "host") is None
    told = bob.get(f"/runs/{waiting}")
    assert (told["status"], told["cause"]["code"]) == ("failed", "missing_permission")


def test_a_session_is_served_only_to_those_who_may_run_the_environment(ada: Api, bob: Api) -> None:
    ada.ok("PATCH", GREET, {"run_policy": "writers"})
    assert bob("POST", "/runtime/sessions/", {"environment": "ada/greet"}).code == "run_policy"


def test_the_operator_chooses_who_may_run_environments_without_a_policy(tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    settings = settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml", run_policy="writers")
    with serving(settings) as server:
        ada, bob = server.user("ada"), server.user("bob")
        push(ada, made(tmp_path / "p"))
        told = ada.ok("PATCH", GREET, {"visibility": "public"})

        assert (told["run_policy"], told["run_policy_is_default"]) == ("writers", True)
        assert start(bob).code == "run_policy"
        ada.ok("PATCH", GREET, {"run_policy": "readers"})
        assert start(bob).status == 201
        ada.ok("PATCH", GREET, {"run_policy": "default"})
        assert start(bob).code == "run_policy"


def test_the_command_line_shows_and_changes_who_may_run_an_environment(
    served: Served, ada: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", ada.token)

    shown = CliRunner().invoke(run_policy_command, ["ada/greet"])
    changed = CliRunner().invoke(run_policy_command, ["ada/greet", "writers"])

    assert shown.output == (
        "ada/greet may be run by its readers (the server's default): everyone who may read it.\n"
    )
    assert changed.output == "ada/greet may be run by its writers: only those who may change it.\n"
    assert ada.get(GREET)["run_policy"] == "writers"
