"""Secrets that were linked to an environment by somebody who may no longer change it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from proctor.cli.commands.secrets import secret_group
from proctor.server.secrets.resolution import list_available_names, secret_values_of_run
from tests.server.secrets.conftest import AddEnvironment
from tests.server.serving import Api, Served


@pytest.fixture
def team(served: Served) -> tuple[Api, Api]:
    """An admin of a team, and a member of it."""
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    return ada, bob


def link(api: Api, place: str, **changes: str) -> str:
    made = api.post("/secrets", {"name": "SEARCH_KEY", "value": "swordfish", **changes})
    api.ok("PUT", f"{place}/secrets/links/{made['id']}")
    return str(made["id"])


def given_to_a_run(served: Served) -> dict[str, str]:
    """What a run of somebody who may change the environment is given."""
    run = SimpleNamespace(id="run-1", environment_id="env-lab-maze")
    platform = served.platform
    names = platform.database.read_now(list_available_names, run.environment_id, may_write=True)
    values = platform.database.read_now(secret_values_of_run, platform.vault, run, may_write=True)  # type: ignore[arg-type]
    assert names == set(values)
    return values


def test_a_secret_of_somebody_who_left_the_team_reaches_nobodys_runs(
    served: Served, team: tuple[Api, Api], add_environment: AddEnvironment
) -> None:
    ada, bob = team
    place = add_environment("lab", "maze")
    link(bob, place)
    assert given_to_a_run(served) == {"SEARCH_KEY": "swordfish"}
    assert ada.get(f"{place}/secrets")["items"][0]["is_active"]

    ada.ok("DELETE", "/teams/lab/members/bob")

    assert given_to_a_run(served) == {}
    assert not ada.get(f"{place}/secrets")["items"][0]["is_active"]
    ada.ok("PUT", f"{place}/collaborators", {"name": "bob", "role": "write"})
    assert given_to_a_run(served) == {"SEARCH_KEY": "swordfish"}
    served.root.ok("PATCH", "/users/bob?disabled=true")
    assert given_to_a_run(served) == {}


def test_the_owner_of_a_secret_unlinks_it_from_an_environment_they_can_no_longer_see(
    served: Served,
    team: tuple[Api, Api],
    add_environment: AddEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada, bob = team
    place = add_environment("lab", "maze")
    secret = link(bob, place)
    ada.ok("DELETE", "/teams/lab/members/bob")
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", bob.token)

    listed = CliRunner().invoke(secret_group, ["list"]).output
    told = CliRunner().invoke(secret_group, ["unlink", "SEARCH_KEY", "--env", "lab/maze"]).output

    assert "lab/maze" in listed
    assert told == "SEARCH_KEY is no longer linked to lab/maze.\n"
    assert ada.get(f"{place}/secrets")["items"] == []
    assert bob("DELETE", f"{place}/secrets/links/{secret}").status == 404


def test_nobody_unlinks_a_secret_that_is_neither_theirs_nor_of_an_environment_they_may_change(
    served: Served, team: tuple[Api, Api], add_environment: AddEnvironment
) -> None:
    ada, bob = team
    place = add_environment("lab", "maze")
    secret = link(bob, place)

    assert served.user("eve")("DELETE", f"{place}/secrets/links/{secret}").status == 404
    assert ada("DELETE", f"{place}/secrets/links/{secret}").status == 204


def test_a_secret_of_the_team_stays_linked_when_the_admin_who_linked_it_leaves(
    served: Served, team: tuple[Api, Api], add_environment: AddEnvironment
) -> None:
    ada, _ = team
    ada.ok("PUT", "/teams/lab/members", {"user": "bob", "role": "admin"})
    link(ada, add_environment("lab", "maze"), team="lab")

    served.root.ok("DELETE", "/teams/lab/members/ada")

    assert given_to_a_run(served) == {"SEARCH_KEY": "swordfish"}
