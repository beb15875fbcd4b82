"""Who may do what: users, teams, tokens, over the real API."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path

import pytest

from proctor.server.db.tables import tokens
from proctor.server.people import records
from tests.server.serving import Api, Served
from tests.waiting import SECONDS


def test_the_first_start_makes_an_admin_whose_token_works_at_once(served: Served) -> None:
    me = served.root.get("/whoami")
    assert me["user"]["is_admin"]
    assert "admin" in me["token"]["scopes"]


def test_no_secret_of_a_token_is_in_the_database(served: Served) -> None:
    secret = served.root.token.split("_", 2)[2].encode()
    files = [path.read_bytes() for path in served.platform.data.glob("proctor.db*")]
    assert files
    assert not any(secret in content for content in files)


def test_without_a_token_nobody_learns_anything(served: Served) -> None:
    answer = served.nobody("GET", "/whoami")
    assert (answer.status, answer.code) == (401, "unauthenticated")


def test_a_token_that_nobody_made_is_refused(served: Served) -> None:
    answer = Api(served.url, served.root.token[:-1] + "x")("GET", "/whoami")
    assert (answer.status, answer.code) == (401, "unauthenticated")


def test_only_admins_add_users(served: Served) -> None:
    ada = served.user("ada")
    answer = ada("POST", "/users", {"name": "bob"})
    assert answer.status == 403


def test_users_and_teams_share_their_names(served: Served) -> None:
    ada = served.user("ada")
    answer = ada("POST", "/teams", {"name": "ada"})
    assert (answer.status, answer.code) == (409, "name_taken")


def test_a_name_that_cannot_be_had_does_not_say_whose_it_is(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    ada.post("/teams", {"name": "lab"})
    answers = set()
    for name in ("ada", "lab", "admin"):
        told = eve("POST", "/teams", {"name": name})
        answers.add((told.status, told.body["message"].replace(repr(name), "'…'")))
    assert answers == {(409, "The name '…' is not available; choose another.")}


def test_teams_cannot_be_founded_without_end_to_guess_at_names(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MOST_TEAMS", 2)
    ada, eve = served.user("ada"), served.user("eve")
    for name in ("one", "two"):
        eve.post("/teams", {"name": name})
    for name in ("ada", "free"):  # the same for a name that is taken and for one that is not
        assert eve("POST", "/teams", {"name": name}).code == "too_many_teams"
    ada.post("/teams", {"name": "free"})


def test_a_team_belongs_to_its_members_and_others_do_not_learn_of_it(served: Served) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    ada.post("/teams", {"name": "lab"})
    assert bob("GET", "/teams/lab/members").status == 404
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})
    assert {member["user"] for member in bob.get("/teams/lab/members")["items"]} == {"ada", "bob"}
    assert bob("PUT", "/teams/lab/members", {"user": "bob", "role": "admin"}).status == 403


def test_a_team_keeps_an_admin(served: Served) -> None:
    ada = served.user("ada")
    ada.post("/teams", {"name": "lab"})
    answer = ada("DELETE", "/teams/lab/members/ada")
    assert (answer.status, answer.code) == (409, "last_admin")


def test_a_token_cannot_make_one_that_is_good_for_more(served: Served) -> None:
    ada = served.user("ada")
    made = ada.post("/tokens", {"scopes": ["tokens:write", "runs:read"]})
    narrow = Api(served.url, made["secret"])
    answer = narrow("POST", "/tokens", {"scopes": ["runs:write"]})
    assert (answer.status, answer.code) == (403, "missing_scope")


def test_a_token_cannot_make_one_that_outlives_it(served: Served) -> None:
    made = served.user("ada").post("/tokens", {"expires_in_days": 1})
    short, end = Api(served.url, made["secret"]), made["token"]["expires_at"]
    assert short.post("/tokens", {"expires_in_days": None})["token"]["expires_at"] == end
    assert short.post("/tokens", {"expires_in_days": 30})["token"]["expires_at"] == end
    assert short.post("/tokens", {"expires_in_days": 0.5})["token"]["expires_at"] < end


def test_who_was_just_seen_is_known_again_while_others_write(served: Served) -> None:
    ada = served.user("ada")
    ada.get("/whoami")
    served.platform.callers.forget()
    goes_on = threading.Event()
    writing = served.platform.database.write(lambda _: goes_on.wait(SECONDS))
    held = asyncio.run_coroutine_threadsafe(writing, served.platform.loop)
    try:
        assert ada.get("/whoami")["user"]["name"] == "ada"
        assert not held.done()
    finally:
        goes_on.set()
    assert held.result(SECONDS)


def test_when_a_token_was_last_used_is_told_to_a_minute(served: Served) -> None:
    ada = served.user("ada")
    (token,) = ada.get("/tokens")["items"]
    assert token["last_used_at"] > time.time() - 60
    long_ago = tokens.update().where(tokens.c.id == token["id"]).values(last_used_at=1.0)
    served.platform.database.write_now(lambda connection: connection.execute(long_ago))
    served.platform.callers.forget()
    (token,) = ada.get("/tokens")["items"]
    assert token["last_used_at"] > time.time() - 60


def test_a_token_lacking_a_scope_is_told_which(served: Served) -> None:
    made = served.user("ada").post("/tokens", {"scopes": ["runs:read"]})
    answer = Api(served.url, made["secret"])("GET", "/tokens")
    assert answer.body["details"] == {"scope": "tokens:write"}


def test_a_revoked_token_is_refused_at_once(served: Served) -> None:
    ada = served.user("ada")
    made = ada.post("/tokens", {"name": "laptop"})
    other = Api(served.url, made["secret"])
    assert other.get("/whoami")["token"]["name"] == "laptop"
    ada.ok("DELETE", f"/tokens/{made['token']['id']}")
    assert other("GET", "/whoami").code == "token_revoked"


def test_an_expired_token_is_refused(served: Served) -> None:
    made = served.user("ada").post("/tokens", {"expires_in_days": 1})
    past = tokens.update().where(tokens.c.id == made["token"]["id"]).values(expires_at=time.time() - 1)
    served.platform.database.write_now(lambda connection: connection.execute(past))
    assert Api(served.url, made["secret"])("GET", "/whoami").code == "token_expired"


def test_a_disabled_user_is_refused_until_let_in_again(served: Served) -> None:
    ada = served.user("ada")
    served.root.ok("PATCH", "/users/ada?disabled=true")
    assert ada("GET", "/whoami").code == "user_disabled"
    served.root.ok("PATCH", "/users/ada?disabled=false")
    assert ada.get("/whoami")["user"]["name"] == "ada"


def test_a_create_that_is_sent_again_with_its_key_makes_nothing_twice(served: Served) -> None:
    ada = served.user("ada")
    first = ada("POST", "/teams", {"name": "lab"}, headers={"Idempotency-Key": "k"})
    again = ada("POST", "/teams", {"name": "lab"}, headers={"Idempotency-Key": "k"})
    assert first.body == again.body
    other = ada("POST", "/teams", {"name": "other"}, headers={"Idempotency-Key": "k"})
    assert (other.status, other.code) == (409, "idempotency_mismatch")


def test_a_key_gives_no_answer_to_another_token_of_the_same_user(served_on_both: Served) -> None:
    served = served_on_both
    ada = served.user("ada")
    made = ada.post("/tokens", {"name": "strong"}, **{"Idempotency-Key": "k"})
    weak = Api(served.url, ada.post("/tokens", {"scopes": ["tokens:write"]})["secret"])

    answer = weak("POST", "/tokens", {"name": "strong"}, headers={"Idempotency-Key": "k"})

    assert answer.body["secret"] != made["secret"]
    assert answer.body["token"]["scopes"] == ["tokens:write"]
    again = ada.post("/tokens", {"name": "strong"}, **{"Idempotency-Key": "k"})
    assert again == made
    changed = ada("POST", "/tokens", {"name": "other"}, headers={"Idempotency-Key": "k"})
    assert (changed.status, changed.code) == (409, "idempotency_mismatch")


def test_the_schema_tells_every_route(served: Served) -> None:
    schema = served.nobody.get("/schema/openapi.json")
    assert "/api/v1/users" in schema["paths"]


def test_the_token_that_the_docs_show_for_ci_can_start_a_run_and_follow_it(served: Served) -> None:
    page = (Path(__file__).parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^proctor token create ci .*$", page, re.MULTILINE)
    scopes = re.findall(r"--scope (\S+)", command)
    ada = served.user("ada")
    ci = Api(served.url, ada.post("/tokens", {"name": "ci", "scopes": scopes})["secret"])
    run = ci.post("/uploads", {"client_run_id": "1", "environment": "e", "model": "m"})["id"]
    ci.post(f"/uploads/{run}/end", {"status": "finished"})
    assert ci("GET", "/environments").status == 200
    assert "event: end" in ci("GET", f"/runs/{run}/events/stream?after=0").body
