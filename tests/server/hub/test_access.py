"""Who sees an environment, and who may change it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from proctor.server.db.tables import runs
from proctor.server.hub.records import resolve_version
from proctor.server.people.tokens import ANONYMOUS, make_token, resolve_caller
from proctor.server.problems import NotFoundError
from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served

PATHS = (
    "",
    "/versions",
    "/versions/0.1.0",
    "/versions/0.1.0/files",
    "/versions/0.1.0/source",
    "/versions/0.1.0/wheel",
    "/collaborators",
)


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    assert push(api, made(tmp_path)).status == 201
    return api


def add_run(served: Served, ada: Api, **changes: Any) -> str:
    told = ada.get("/environments/ada/greet")
    row = {
        "id": "run-1",
        "kind": "hosted",
        "name": "",
        "owner": "ada",
        "environment_id": told["id"],
        "version_id": told["latest"]["id"],
        "environment": "ada/greet",
        "model": "m",
        "settings": {},
        "permissions": {},
        "status": "running",
        "metadata": {},
        "created_at": time.time(),
        **dict.fromkeys(("attempt", "crashes", "rows_at_crash", "last_batch", "last_seq", "settled"), 0),
        **dict.fromkeys(("scored", "failed", "reward_sum", "input_tokens", "output_tokens"), 0),
        **changes,
    }
    served.platform.database.write_now(lambda connection: connection.execute(insert(runs).values(row)))
    return str(row["id"])


def test_what_is_private_is_not_there_for_others(served: Served, ada: Api) -> None:
    for other in (served.user("bob"), served.nobody):
        assert other.get("/environments")["items"] == []
        for path in PATHS:
            assert other("GET", f"/environments/ada/greet{path}").status == 404
        for method in ("PATCH", "DELETE"):
            assert other(method, "/environments/ada/greet", {}).status in (401, 404)


def test_an_environment_that_is_not_there_comes_with_the_command_to_push_or_to_find_it(
    served: Served,
) -> None:
    bob = served.user("bob")
    assert "`proctor env push`" in bob("GET", "/environments/bob/greet").body["message"]
    assert "`proctor env list --hub`" in bob("GET", "/environments/ada/greet").body["message"]


def test_what_is_public_is_read_by_everybody_and_changed_by_nobody_else(served: Served, ada: Api) -> None:
    ada.ok("PATCH", "/environments/ada/greet", {"visibility": "public"})
    bob = served.user("bob")
    for other in (bob, served.nobody):
        told = other.get("/environments/ada/greet")
        assert (told["visibility"], told["role"]) == ("public", None)
        assert other("GET", "/environments/ada/greet/versions/0.1.0/source").status == 200
    for method, path, body in (
        ("PATCH", "", {"visibility": "private"}),
        ("DELETE", "", None),
        ("DELETE", "/versions/0.1.0", None),
        ("PUT", "/collaborators", {"name": "bob", "role": "owner"}),
        ("GET", "/collaborators", None),
    ):
        assert bob(method, f"/environments/ada/greet{path}", body).status == 403


def test_nobody_pushes_to_anothers_name_whether_something_is_there_or_not(
    served: Served, ada: Api, tmp_path: Path
) -> None:
    bob = served.user("bob")
    there = push(bob, made(tmp_path / "a", version="0.2.0"), owner="ada")
    not_there = push(bob, made(tmp_path / "b", name="other"), owner="ada")

    assert (there.status, there.body) == (not_there.status, not_there.body)
    assert there.status == 403
    assert push(served.nobody, made(tmp_path / "c")).status == 401


def test_roles_are_given_and_taken(served: Served, ada: Api, tmp_path: Path) -> None:
    bob = served.user("bob")
    newer = made(tmp_path / "newer", version="0.2.0")
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "read"})
    assert bob.get("/environments/ada/greet")["role"] == "read"
    assert push(bob, newer, owner="ada").status == 403

    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "bob", "role": "write"})
    assert push(bob, newer, owner="ada", visibility="public").status == 403  # that is the owner's to say
    assert push(bob, newer, owner="ada").body["version"]["pushed_by"] == "bob"
    assert bob("DELETE", "/environments/ada/greet/versions/0.1.0").status == 403

    ada.ok("DELETE", "/environments/ada/greet/collaborators/bob")
    assert bob("GET", "/environments/ada/greet").status == 404


def test_a_teams_members_write_and_its_admins_own(served: Served, tmp_path: Path) -> None:
    ada, bob, eve = served.user("ada"), served.user("bob"), served.user("eve")
    ada.post("/teams", {"name": "lab"})
    ada.ok("PUT", "/teams/lab/members", {"user": "bob"})

    assert push(bob, made(tmp_path), owner="lab").body["environment"]["owner"] == "lab"
    assert bob.get("/environments/lab/greet")["role"] == "write"
    assert ada.get("/environments/lab/greet")["role"] == "owner"
    assert eve("GET", "/environments/lab/greet").status == 404
    assert bob("DELETE", "/environments/lab/greet").status == 403
    ada.ok("DELETE", "/environments/lab/greet")


def test_a_token_without_the_scope_cannot(served: Served, ada: Api, tmp_path: Path) -> None:
    reader = Api(served.url, ada.post("/tokens", {"scopes": ["environments:read"]})["secret"])
    runner = Api(served.url, ada.post("/tokens", {"scopes": ["runs:read"]})["secret"])

    assert reader.get("/environments/ada/greet")["name"] == "greet"
    assert push(reader, made(tmp_path / "n", version="0.2.0")).code == "missing_scope"
    assert reader("DELETE", "/environments/ada/greet").code == "missing_scope"
    assert runner("GET", "/environments/ada/greet").code == "missing_scope"


def test_an_admin_sees_everything_only_with_a_token_made_for_it(served: Served, ada: Api) -> None:
    plain = Api(served.url, served.root.post("/tokens", {})["secret"])

    assert served.root.get("/environments/ada/greet")["role"] == "owner"
    assert plain("GET", "/environments/ada/greet").status == 404
    assert plain.get("/environments")["items"] == []


def test_a_runs_token_reads_its_own_environment_and_no_other(
    served: Served, ada: Api, tmp_path: Path
) -> None:
    push(ada, made(tmp_path / "other", name="other"))
    run = add_run(served, ada)
    token = served.platform.database.write_now(
        lambda connection: make_token(
            connection, kind="run", user="ada", scopes=["inference"], expires_at=None, run_id=run, attempt=0
        )
    )
    inside = Api(served.url, token.secret)

    assert inside.get("/environments/ada/greet")["role"] == "read"
    assert [each["name"] for each in inside.get("/environments")["items"]] == ["greet"]
    assert inside("GET", "/environments/ada/other").status == 404
    assert push(inside, made(tmp_path / "n", version="0.2.0")).status == 403
    assert inside("DELETE", "/environments/ada/greet").status == 403


def test_a_version_that_a_run_uses_is_not_deleted(served: Served, ada: Api) -> None:
    run = add_run(served, ada)

    for path in ("/environments/ada/greet", "/environments/ada/greet/versions/0.1.0"):
        answer = ada("DELETE", path)
        assert (answer.status, answer.code, answer.body["details"]) == (409, "in_use", {"run": run})


def test_lists_are_searched_filtered_sorted_and_paged(served: Served, tmp_path: Path) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    for name in ("apples", "pears", "plums"):
        tags = f'[tool.proctor]\ntags = ["{name[0]}-fruit"]\n'
        push(ada, made(tmp_path / name, name=name, project=tags), visibility="public")
    push(bob, made(tmp_path / "own", name="secret-pears"))

    def names(query: str, api: Api = bob) -> list[str]:
        return [each["name"] for each in api.get(f"/environments?{query}")["items"]]

    assert names("sort=name") == ["apples", "pears", "plums", "secret-pears"]
    assert names("search=PEAR&sort=name") == ["pears", "secret-pears"]
    assert names("search=100%25") == []
    assert names("owner=ada&tag=p-fruit&sort=name") == ["pears", "plums"]
    assert names("mine=true") == ["secret-pears"]
    assert names("visibility=private") == ["secret-pears"]
    assert names("sort=updated_at", ada) == ["plums", "pears", "apples"]
    page = bob.get("/environments?sort=name&limit=3")
    assert names(f"sort=name&cursor={page['next_cursor']}") == ["secret-pears"]
    back = bob.get("/environments?limit=3")
    assert names(f"cursor={back['next_cursor']}") == ["apples"]
    assert bob("GET", "/environments?sort=stars").status == 422


def test_runs_resolve_a_word_to_a_pinned_version(served: Served, ada: Api) -> None:
    def found(connection: Any) -> tuple[str, str]:
        environment, version = resolve_version(connection, resolve_caller(connection, ada.token), "ada/greet")
        return environment.name, version.version

    assert served.platform.database.read_now(found) == ("greet", "0.1.0")
    with pytest.raises(NotFoundError):
        served.platform.database.read_now(
            lambda connection: resolve_version(connection, ANONYMOUS, "ada/greet@0.1.0")
        )
