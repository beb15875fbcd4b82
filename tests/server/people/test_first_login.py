"""The admin's first token: good for one login, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.api.people import SCOPES
from proctor.server.people import first_login
from proctor.server.problems import ConflictError
from tests.server.serving import Api, Served, serving, settings_in
from tests.server.workplace import Person, workplace


@pytest.fixture
def first(served_on_both: Served) -> tuple[Served, Api]:
    """A server whose admin has yet to log in, by another token than the tests' own."""
    served = served_on_both
    token = served.platform.database.write_now(first_login.new_login)
    first_login.write_token(served.platform.data, token)
    return served, Api(served.url, token)


def test_the_first_token_is_kept_where_only_the_operator_can_read_it(first: tuple[Served, Api]) -> None:
    served, api = first
    file = served.platform.data / "admin-token"
    assert file.read_text().strip() == api.token
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users", {"name": "mallory", "is_admin": True}),
        ("GET", "/users", None),
        ("GET", "/tokens", None),
        ("POST", "/hosts", {"name": "mine"}),
        ("GET", "/runs", None),
        ("GET", "/environments", None),
        ("POST", "/secrets", {"name": "A", "value": "b"}),
    ],
)
def test_the_first_token_is_good_for_nothing_but_the_login(
    first: tuple[Served, Api], method: str, path: str, body: object
) -> None:
    answer = first[1](method, path, body)
    assert answer.status in (403, 404), answer


def test_the_first_token_is_dead_after_the_login_and_its_file_is_gone(first: tuple[Served, Api]) -> None:
    served, api = first
    scopes = api.get("/whoami")["token"]["scopes"]

    made = api.post("/tokens", {"name": "laptop", "scopes": scopes})

    assert Api(served.url, made["secret"]).get("/users")["items"]
    assert sorted(made["token"]["scopes"]) == sorted(SCOPES)
    for path in ("/whoami", "/users"):
        assert api("GET", path).code == "token_revoked"
    again = api("POST", "/tokens", {"scopes": scopes})
    assert (again.status, again.code) == (401, "token_revoked")
    assert "proctor server admin-token" in again.body["message"]
    assert not (served.platform.data / "admin-token").exists()


def test_a_copy_of_the_file_that_another_server_used_up_is_removed_at_the_next_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as served:
        spent = served.platform.database.write_now(first_login.new_login)
        served.platform.database.write_now(first_login.new_login)
    first_login.write_token(settings.data, spent)

    with serving(settings):
        assert not (settings.data / "admin-token").exists()


def test_no_login_is_made_for_an_admin_who_was_disabled(served: Served) -> None:
    boss = served.user("boss", is_admin=True)
    boss.ok("PATCH", "/users/root?disabled=true")
    with pytest.raises(ConflictError, match="The admin 'root'"):
        served.platform.database.write_now(first_login.new_login)


def test_an_operator_who_lost_every_token_gets_in_again(tmp_path: Path) -> None:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        file = place.data / "admin-token"
        admin, thief = Person(tmp_path / "admin", place.url), Person(tmp_path / "thief", place.url)
        copy = file.read_text()
        admin.ok("login", place.url, "--token-file", str(file))
        assert "admin of the server" in admin.ok("whoami").stdout
        assert not file.exists()
        refused = thief("login", place.url, stdin=copy)
        assert refused.code != 0
        assert "was for the first login" in refused.stderr

        admin.ok("server", "admin-token", "--data", str(place.data))

        assert file.stat().st_mode & 0o777 == 0o600
        admin.ok("login", place.url, "--token-file", str(file))
        assert not file.exists()
