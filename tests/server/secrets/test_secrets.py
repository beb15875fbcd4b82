"""Who may keep, link and see secrets, over the real API; and that no value is ever told."""

from __future__ import annotations

import json
import time
from typing import Any

from proctor.server.db.tables import runs
from proctor.server.people.tokens import make_token
from tests.server.secrets.conftest import AddEnvironment
from tests.server.serving import Api, Served

VALUE = "sk-swordfish-1234"


def new(name: str = "API_KEY", value: str = VALUE, **others: Any) -> dict[str, Any]:
    return {"name": name, "value": value, **others}


def test_a_value_is_taken_and_never_told(served: Served, add_environment: AddEnvironment) -> None:
    ada = served.user("ada")
    place = add_environment("ada", "maze")
    made = ada.post("/secrets", new(description="for the lab"))
    told = [
        made,
        ada.ok("PATCH", f"/secrets/{made['id']}", {"value": VALUE + "5"}),
        ada.get("/secrets"),
        ada.ok("PUT", f"{place}/secrets/links/{made['id']}"),
        ada.post(f"{place}/secrets", new("OWN")),
        ada.get(f"{place}/secrets"),
    ]
    assert VALUE not in json.dumps(told)
    assert [(each["name"], each["kind"]) for each in told[-1]["items"]] == [
        ("API_KEY", "linked"),
        ("OWN", "environment"),
    ]


def test_no_value_is_in_the_database(served: Served, add_environment: AddEnvironment) -> None:
    ada = served.user("ada")
    ada("POST", "/secrets", new(), headers={"Idempotency-Key": "k"})
    ada.post(f"{add_environment('ada', 'maze')}/secrets", new())
    assert not any(VALUE.encode() in path.read_bytes() for path in served.platform.data.glob("proctor.db*"))


def test_a_name_that_cannot_be_is_refused(served: Served) -> None:
    misspelled = ("lower", "1ST", "WITH-HYPHEN", "", "É", "A" * 256)
    reserved = ("PATH", "LD_PRELOAD", "PYTHONPATH", "PROCTOR_API_KEY")
    for name in (*misspelled, *reserved):
        answer = served.root("POST", "/secrets", new(name))
        assert (answer.status, answer.code) == (422, "invalid"), name
        why = "use capital letters" if name in misspelled else "would change how the run itself works"
        assert why in answer.body["message"]


def test_a_value_that_cannot_be_is_refused_without_repeating_it(served: Served) -> None:
    long = served.root("POST", "/secrets", new(value="é" * 40_000))
    zero = served.root("POST", "/secrets", new(value=f"{VALUE}\0"))
    assert "longer than 64 KB" in long.body["message"]
    assert "zero byte" in zero.body["message"]
    assert VALUE not in str(zero.body)


def test_one_owner_has_one_secret_of_a_name(served: Served) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/secrets", new())
    answer = ada("POST", "/secrets", new())
    assert (answer.status, answer.code) == (409, "name_taken")
    bob.post("/secrets", new())


def test_an_environment_has_one_secret_of_a_name_linked_or_its_own(
    served: Served, add_environment: AddEnvironment
) -> None:
    ada = served.user("ada")
    ada.post("/teams", {"name": "lab"})
    mine, labs = ada.post("/secrets", new()), ada.post("/secrets", new(team="lab"))
    place = add_environment("ada", "maze")
    ada.ok("PUT", f"{place}/secrets/links/{mine['id']}")
    ada.ok("PUT", f"{place}/secrets/links/{mine['id']}")
    second = ada("PUT", f"{place}/secrets/links/{labs['id']}")
    own = ada("POST", f"{place}/secrets", new())
    assert (second.code, own.code) == ("name_taken", "name_taken")
    assert own.body["message"] == (
        "ada/maze already has a linked secret of 'ada' called API_KEY; unlink that one first."
    )
    ada.ok("DELETE", f"{place}/secrets/links/{mine['id']}")
    ada.post(f"{place}/secrets", new())
    assert ada("PUT", f"{place}/secrets/links/{mine['id']}").code == "name_taken"


def test_a_variable_may_have_the_name_of_a_secret(served: Served, add_environment: AddEnvironment) -> None:
    ada = served.user("ada")
    place = add_environment("ada", "maze")
    ada.post(f"{place}/secrets", new())
    made = ada.post(f"{place}/variables", new(value="plain"))
    assert ada("POST", f"{place}/variables", new(value="other")).code == "name_taken"
    ada.ok("PATCH", f"{place}/variables/{made['id']}", {"value": "plainer"})
    assert [each["value"] for each in ada.get(f"{place}/variables")["items"]] == ["plainer"]
    ada.ok("DELETE", f"{place}/variables/{made['id']}")
    assert ada.get(f"{place}/variables")["items"] == []


def test_a_secret_that_is_deleted_is_linked_nowhere(served: Served, add_environment: AddEnvironment) -> None:
    ada = served.user("ada")
    place = add_environment("ada", "maze")
    made = ada.post("/secrets", new())
    ada.ok("PUT", f"{place}/secrets/links/{made['id']}")
    ada.ok("DELETE", f"/secrets/{made['id']}")
    assert ada.get(f"{place}/secrets")["items"] == []
    assert ada("DELETE", f"{place}/secrets/links/{made['id']}").status == 404


def test_others_learn_of_nothing(served: Served, add_environment: AddEnvironment) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    place, made = add_environment("ada", "maze"), ada.post("/secrets", new())
    theirs = add_environment("bob", "theirs")
    assert bob.get("/secrets")["items"] == []
    for method, path, body in [
        ("PATCH", f"/secrets/{made['id']}", {"value": "x"}),
        ("DELETE", f"/secrets/{made['id']}", None),
        ("PUT", f"{theirs}/secrets/links/{made['id']}", None),
        ("GET", f"{place}/secrets", None),
        ("GET", f"{place}/variables", None),
        ("POST", f"{place}/secrets", new()),
    ]:
        assert bob(method, path, body).status == 404, (method, path)
    assert served.nobody("GET", "/secrets").status == 401


def test_who_may_read_an_environment_sees_its_variables_and_not_its_secrets(
    served: Served, add_environment: AddEnvironment
) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    place = add_environment("ada", "maze", "public")
    ada.post(f"{place}/variables", new(value="plain"))
    assert bob.get(f"{place}/variables")["items"][0]["value"] == "plain"
    assert bob("GET", f"{place}/secrets").status == 403
    assert bob("POST", f"{place}/variables", new("OTHER")).status == 403


def test_members_of_a_team_know_its_secrets_and_its_admins_use_them(
    served: Served, add_environment: AddEnvironment
) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    made = ada.post("/secrets", new(team="lab"))
    mine = add_environment("bob", "mine")
    assert [each["owner"] for each in bob.get("/secrets")["items"]] == ["lab"]
    assert bob("POST", "/secrets", new("OTHER", team="lab")).status == 403
    assert bob("PATCH", f"/secrets/{made['id']}", {"value": "x"}).status == 403
    assert bob("PUT", f"{mine}/secrets/links/{made['id']}").status == 403
    labs = add_environment("lab", "maze")
    ada.ok("PUT", f"{labs}/secrets/links/{made['id']}")
    assert [each["kind"] for each in bob.get(f"{labs}/secrets")["items"]] == ["linked"]


def test_to_change_secrets_a_token_needs_the_scope(served: Served) -> None:
    made = served.user("ada").post("/tokens", {"scopes": ["environments:read", "environments:write"]})
    narrow = Api(served.url, made["secret"])
    assert narrow.get("/secrets")["items"] == []
    answer = narrow("POST", "/secrets", new())
    assert (answer.status, answer.body["details"]) == (403, {"scope": "secrets:write"})


def test_the_token_of_a_run_gets_nothing(served: Served) -> None:
    served.user("ada")
    run = add_run(served, "ada")
    made = served.platform.database.write_now(
        lambda connection: make_token(
            connection,
            kind="run",
            user="ada",
            run_id=run,
            attempt=1,
            scopes=["environments:read", "secrets:write"],
            expires_at=None,
        )
    )
    inside = Api(served.url, made.secret)
    assert inside("GET", "/secrets").status == 403
    assert inside("POST", "/secrets", new()).status == 403


def add_run(served: Served, owner: str) -> str:
    numbers = ("attempt", "crashes", "rows_at_crash", "last_batch", "last_seq", "settled", "scored", "failed")
    row = {
        **dict.fromkeys((*numbers, "input_tokens", "output_tokens"), 0),
        "id": "run-1",
        "kind": "hosted",
        "name": "",
        "owner": owner,
        "environment": "e",
        "model": "m",
        "settings": {},
        "permissions": {},
        "metadata": {},
        "status": "running",
        "attempt": 1,
        "reward_sum": 0.0,
        "created_at": time.time(),
    }
    served.platform.database.write_now(lambda connection: connection.execute(runs.insert().values(row)))
    return "run-1"
