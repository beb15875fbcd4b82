"""Finding environments, and what a check keeps of how each is played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.server.people.tokens import make_token
from tests.server.hub.packages import made, push
from tests.server.reading.test_reading import following, wait_for_event
from tests.server.serving import Api, Served

DETAILS = {
    "arguments": [
        {"name": "difficulty", "type": "Literal['easy', 'hard']", "default": "'easy'"},
        {"name": "<img src=x>", "type": None, "default": None},
    ],
    "takes_any": True,
    "defaults": {"num_examples": 7},
    "kind": "SingleTurnEnv",
    "example": {"prompt": [{"role": "user", "text": "2 + 2?"}], "answer": "4"},
    "rewards": [{"name": "exact", "weight": 1.0}],
    "tools": [{"name": "calc", "description": "Adds."}],
    "max_turns": 3,
    "pass_threshold": 0.5,
}
RESULT = {"passed": True, "message": "Fine.", "tasks": 3, "seconds": 1.5, "details": DETAILS}


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    for name, tags in (("greet", '["math", "small"]'), ("maze", '["math"]'), ("zoo", "[]")):
        pushed = push(
            api,
            made(tmp_path / name, name=name, project=f"\n[tool.proctor]\ntags = {tags}\n"),
            visibility="public",
        )
        assert pushed.status == 201, pushed.body
    return api


def add_host(served: Served) -> Api:
    token = served.platform.database.write_now(
        lambda connection: make_token(connection, kind="host", user=None, scopes=[], expires_at=None)
    )
    return Api(served.url, token.secret, host_key="k" * 64)


def names(api: Api, query: str = "") -> list[str]:
    return [item["name"] for item in api.get(f"/environments?sort=name{query}")["items"]]


def test_a_list_is_narrowed_by_words_tags_owner_and_what_is_mine(
    served: Served, ada: Api, tmp_path: Path
) -> None:
    bob = served.user("bob")
    push(bob, made(tmp_path / "bobs", name="secretive"))
    assert names(bob) == ["greet", "maze", "secretive", "zoo"]
    assert names(ada) == ["greet", "maze", "zoo"]
    assert names(bob, "&mine=true") == ["secretive"]
    assert names(bob, "&owner=ada&tag=math") == ["greet", "maze"]
    assert names(bob, "&owner=ada&name=zoo") == ["zoo"]
    assert names(ada, "&owner=bob&name=secretive") == names(bob, "&owner=ada&name=zo") == []
    assert names(bob, "&tag=math&tag=small") == ["greet"]
    assert names(bob, "&search=SMALL") == ["greet", "secretive"]  # a keyword of its package
    assert names(bob, "&visibility=private") == ["secretive"]
    assert names(bob, "&tag=%22") == names(bob, "&tag=mat") == []
    assert bob("GET", "/environments?" + "&".join(["tag=a"] * 21)).status == 422
    by_owner = bob.get("/environments?sort=owner&limit=3")
    assert [item["owner"] for item in by_owner["items"]] == ["ada", "ada", "ada"]
    rest = bob.get(f"/environments?sort=owner&limit=3&cursor={by_owner['next_cursor']}")
    assert [item["owner"] for item in rest["items"]] == ["bob"]


def test_facets_count_what_the_caller_may_read_and_nothing_else(
    served: Served, ada: Api, tmp_path: Path
) -> None:
    bob = served.user("bob")
    push(bob, made(tmp_path / "bobs", name="hidden", project='\n[tool.proctor]\ntags = ["quiet"]\n'))
    for reader, owners in ((ada, {"ada": 3}), (bob, {"ada": 3, "bob": 1}), (served.nobody, {"ada": 3})):
        facets = reader.get("/environments/facets")
        assert {each["value"]: each["count"] for each in facets["owner"]} == owners
        assert facets["total"] == sum(owners.values())
        tags = {each["value"]: each["count"] for each in facets["tag"]}
        assert tags == {"math": 2, "small": 1, **({"quiet": 1} if reader is bob else {})}
    assert bob.get("/environments/facets?mine=true")["total"] == 1
    assert bob.get("/environments/facets?search=maze")["tag"] == [{"value": "math", "count": 1}]


def test_a_version_shows_what_its_check_learned_and_keeps_it_while_it_is_checked_again(
    served: Served, ada: Api
) -> None:
    assert ada.get("/environments/ada/greet/versions/latest")["details"] is None
    host = add_host(served)
    order = host.post("/hosts/checks/claims")
    host.ok("POST", f"/hosts/checks/{order['version_id']}", RESULT)
    place = f"/environments/{order['environment']}"

    def read(environment: str = place) -> Any:
        return ada.get(f"{environment}/versions/latest")["details"]

    assert read()["arguments"] == DETAILS["arguments"]
    assert {
        name: read()[name] for name in ("takes_any", "defaults", "kind", "max_turns", "pass_threshold")
    } == {name: DETAILS[name] for name in ("takes_any", "defaults", "kind", "max_turns", "pass_threshold")}
    assert read()["example"]["prompt"] == [{"role": "user", "text": "2 + 2?"}]
    assert (read()["rewards"][0]["name"], read()["tools"][0]["name"]) == ("exact", "calc")
    assert ada.get(f"{place}/versions")["items"][0]["details"] is None  # lists are short

    ada.post(f"{place}/versions/latest/check")
    assert read()["arguments"] == DETAILS["arguments"]
    bob = served.user("bob")
    copy = bob.post(f"{place}/fork", {})
    assert bob.get(f"/environments/bob/{copy['name']}/versions/latest")["details"] == read()


def test_details_that_are_too_long_are_refused_by_name(served: Served, ada: Api) -> None:
    host = add_host(served)
    order = host.post("/hosts/checks/claims")
    for details in (
        {"arguments": [{"name": "a"}] * 201},
        {"arguments": [{"name": "a" * 201}]},
        {"defaults": {"a": "b" * 300_000}},
    ):
        refused = host("POST", f"/hosts/checks/{order['version_id']}", {**RESULT, "details": details})
        assert refused.status in (413, 422), refused.body
        assert "details" in refused.body["message"]


def test_a_user_learns_which_secrets_would_reach_their_run_and_why(served: Served, tmp_path: Path) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    push(
        ada,
        made(tmp_path, project='\n[tool.proctor]\nsecrets = ["JUDGE_KEY", "SEARCH_KEY"]\n'),
        visibility="public",
    )
    linked = ada.post("/secrets", {"name": "SEARCH_KEY", "value": "swordfish"})
    ada.ok("PUT", f"/environments/ada/greet/secrets/links/{linked['id']}")
    ada.post("/environments/ada/greet/secrets", {"name": "OWN_KEY", "value": "marlin"})
    ada.post("/environments/ada/greet/variables", {"name": "MODE", "value": "fast"})

    def read(api: Api) -> dict[str, Any]:
        answer = api("GET", "/environments/ada/greet/versions/latest/secrets")
        assert "swordfish" not in str(answer.body)
        assert "marlin" not in str(answer.body)
        return {each["name"]: each for each in answer.body["items"]}

    hers = read(ada)
    assert {name: (each["origin"], each["reaches"]) for name, each in hers.items()} == {
        "JUDGE_KEY": (None, False),
        "MODE": ("variable", True),
        "OWN_KEY": ("environment", True),
        "SEARCH_KEY": ("linked", True),
    }
    assert "Nothing provides it" in hers["JUDGE_KEY"]["why"]
    assert "Linked by ada" in hers["SEARCH_KEY"]["why"]

    his = read(bob)
    assert set(his) == {"JUDGE_KEY", "MODE", "SEARCH_KEY"}
    assert (his["SEARCH_KEY"]["origin"], his["SEARCH_KEY"]["reaches"]) == (None, False)
    assert "ask ada for the role 'write'" in his["SEARCH_KEY"]["why"]
    assert served.nobody("GET", "/environments/ada/greet/versions/latest/secrets").status == 401

    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "write"})
    assert read(bob)["SEARCH_KEY"]["reaches"]


def test_the_feed_tells_of_environments_to_those_who_may_read_them(served: Served, ada: Api) -> None:
    bob, eve = served.user("bob"), served.user("eve")
    ada.ok("PATCH", "/environments/ada/zoo", {"visibility": "private"})

    def wait(events: Iterator[Any]) -> str:
        return str(wait_for_event(events, "environment")["environment"])

    with following(ada) as hers, following(bob) as his, following(eve) as strangers:
        collaborators = "/environments/ada/zoo/collaborators"
        for method, path, body in (
            ("PUT", collaborators, {"name": "bob", "role": "read"}),
            ("POST", "/environments/ada/zoo/versions/latest/check", None),
            ("DELETE", f"{collaborators}/bob", None),
        ):
            ada.ok(method, path, body)
            assert wait(hers) == wait(his) == "ada/zoo"
        ada.ok("DELETE", "/environments/ada/zoo")
        assert wait(hers) == "ada/zoo"
        ada.ok("PATCH", "/environments/ada/maze", {"visibility": "private"})
        assert wait(hers) == wait(his) == wait(strangers) == "ada/maze"
