"""Logging in and out, contexts, people, tokens and secrets, as one types them, against a real server."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

import pytest

from proctor.cli import app
from proctor.config.endpoints import Endpoint, Registry
from tests.conftest import Ran
from tests.ports import free_port
from tests.server.secrets.conftest import AddEnvironment, add_environment
from tests.server.serving import Api, Served, serving, settings_in

Run = Callable[..., Ran]
__all__ = ["add_environment"]

VALUE = "sk-swordfish-1234"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path / "server")) as server:
        yield server


@pytest.fixture
def proctor() -> Run:
    """The command line, in this process, where it starts at once."""

    def run(*words: str, input: str = "", environ: Mapping[str, str] | None = None) -> Ran:  # noqa: A002
        said, complained = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with (
            patch.dict(os.environ, environ or {}),
            patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode()))),
            redirect_stdout(said),
            redirect_stderr(complained),
            pytest.raises(SystemExit) as end,
        ):
            app.run(words)
        return Ran(int(end.value.code or 0), written(said), written(complained), Path())

    return run


def written(stream: TextIO) -> str:
    stream.seek(0)
    return stream.read()


@pytest.fixture
def logged_in(served: Served, proctor: Run) -> Run:
    """The command line of the admin."""
    assert told(proctor("login", served.url, input=served.root.token)).startswith("Logged in")
    return proctor


def told(ran: Ran) -> str:
    assert ran.code == 0, ran.stderr
    return ran.stdout


def read(ran: Ran) -> Any:
    return json.loads(told(ran))


def test_a_login_has_a_token_of_its_own_which_a_logout_revokes(
    served: Served, proctor: Run, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(served.root.token + "\n")
    assert f"Logged in to {served.url} as root; the context is called local." in told(
        proctor("login", served.url, "--token-file", str(file))
    )
    kept = tmp_path / "config" / "proctor" / "contexts.json"
    token = json.loads(kept.read_text())["contexts"]["local"]["token"]
    assert token != served.root.token
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert Api(served.url, token).get("/whoami")["token"]["name"].startswith("login on ")

    assert told(proctor("logout")) == f"Logged out of {served.url}.\n"
    assert Api(served.url, token)("GET", "/whoami").code == "token_revoked"
    assert served.root.get("/whoami")["user"]["name"] == "root"
    assert proctor("whoami").code == 2


def test_a_first_token_that_was_used_up_is_explained(served: Served, proctor: Run) -> None:
    ran = proctor("login", served.url, "--token-file", "proctor-data/admin-token")

    assert ran.code == 2
    assert "There is no proctor-data/admin-token" in ran.stderr
    assert "`proctor server admin-token`" in ran.stderr


def test_logging_in_anew_needs_no_address_and_leaves_one_token(logged_in: Run, served: Served) -> None:
    told(logged_in("login", input=served.root.token))
    names = [token["name"] for token in served.root.get("/tokens")["items"]]
    assert len([name for name in names if name.startswith("login on ")]) == 1


def test_a_token_that_is_not_good_logs_nobody_in(served: Served, proctor: Run, tmp_path: Path) -> None:
    ran = proctor("login", served.url, input="proctor_1_2")
    assert ran.code == 2
    assert ran.stderr == "Error: The server does not know this token; log in again with `proctor login`.\n"
    assert not (tmp_path / "config").exists()


def test_a_token_that_cannot_make_another_is_kept_itself(served: Served, proctor: Run) -> None:
    made = served.root.post("/tokens", {"scopes": ["environments:read"]})
    ran = proctor("login", served.url, input=made["secret"])
    assert "it lacks tokens:write" in ran.stderr
    told(proctor("logout"))
    assert Api(served.url, made["secret"]).get("/whoami")["token"]["id"] == made["token"]["id"]


def test_a_login_lasts_no_longer_than_the_token_that_made_it(served: Served, proctor: Run) -> None:
    made = served.root.post("/tokens", {"expires_in_days": 2})
    told(proctor("login", served.url, input=made["secret"]))
    expires = read(proctor("whoami", "--json"))["token"]["expires_at"]
    assert expires <= made["token"]["expires_at"] + 1


@pytest.mark.parametrize("url", ["ftp://host", "https://", "https://a:hunter2@host", "https://host?x=1"])
def test_what_is_no_address_is_refused(proctor: Run, url: str) -> None:
    ran = proctor("login", url, input="t")
    assert ran.code == 2
    assert "is not a server address" in ran.stderr
    assert "hunter2" not in ran.stderr


def test_a_server_that_is_away_is_told_and_does_not_keep_one_logged_in(tmp_path: Path, proctor: Run) -> None:
    with serving(settings_in(tmp_path / "server")) as server:
        told(proctor("login", server.url, input=server.root.token))
    ran = proctor("logout")
    assert told(ran).startswith("Logged out")
    assert "was not revoked" in ran.stderr
    assert proctor("context").stdout == ""


def test_who_one_is_and_what_one_may(logged_in: Run, served: Served) -> None:
    text = told(logged_in("whoami"))
    assert "user      root (admin of the server)" in text
    assert served.url in text
    assert "secrets:write       yes" in text
    assert read(logged_in("whoami", "--json"))["user"]["name"] == "root"


def test_several_logins_are_told_apart_by_their_names(logged_in: Run, served: Served) -> None:
    ada = served.user("ada").token
    told(logged_in("login", served.url, "--context", "ada", input=ada))
    assert [(each["name"], each["in_use"]) for each in read(logged_in("context", "list", "--json"))] == [
        ("local", False),
        ("ada", True),
    ]
    assert read(logged_in("-c", "local", "whoami", "--json"))["user"]["name"] == "root"
    told(logged_in("context", "use", "local"))
    assert read(logged_in("whoami", "--json"))["user"]["name"] == "root"
    told(logged_in("context", "delete", "ada"))
    unknown = logged_in("-c", "ada", "whoami")
    assert unknown.code == 2
    assert "There is no context 'ada'" in unknown.stderr
    assert "*" in told(logged_in("context"))
    assert "proctor_" not in told(logged_in("context", "show", "--json"))


def test_users_and_teams(logged_in: Run, served: Served) -> None:
    ada = Api(served.url, told(logged_in("user", "add", "ada")).strip())
    assert ada.get("/whoami")["user"]["name"] == "ada"
    told(logged_in("user", "disable", "ada", "--yes"))
    assert ada("GET", "/whoami").code == "user_disabled"
    assert "disabled" in told(logged_in("user", "list"))
    told(logged_in("user", "enable", "ada"))

    told(logged_in("team", "create", "lab"))
    told(logged_in("team", "add", "lab", "ada"))
    assert [each["user"] for each in read(logged_in("team", "members", "lab", "--json"))] == ["ada", "root"]
    told(logged_in("team", "remove", "lab", "ada"))
    assert "lab" in told(logged_in("team", "list"))
    assert read(logged_in("context", "team", "lab", "--json"))["team"] == "lab"
    assert read(logged_in("context", "show", "--json"))["team"] == "lab"
    assert logged_in("context", "team", "nobodys").code == 2
    told(logged_in("context", "team", "--personal"))
    assert read(logged_in("context", "show", "--json"))["team"] is None


def test_tokens(logged_in: Run, served: Served) -> None:
    words = ("token", "create", "ci", "--scope", "environments:read", "--expires-days", "3")
    made = Api(served.url, told(logged_in(*words)).strip()).get("/whoami")["token"]
    assert made["scopes"] == ["environments:read"]
    assert made["id"] in told(logged_in("token", "list"))
    told(logged_in("token", "revoke", made["id"]))
    assert made["id"] not in [each["id"] for each in read(logged_in("token", "list", "--json"))]
    assert logged_in("token", "create", "--expires-days", "3", "--no-expiry").code == 2


def test_a_secret_is_set_changed_linked_and_deleted(
    logged_in: Run, served: Served, add_environment: AddEnvironment, tmp_path: Path
) -> None:
    add_environment("root", "maze")
    env = ("--env", "root/maze")
    assert told(logged_in("secret", "set", "KEY", input=VALUE)) == "KEY is kept, for root.\n"
    (tmp_path / "key").write_text(VALUE)
    assert "changed" in told(logged_in("secret", "set", "KEY", "--from-file", str(tmp_path / "key")))
    told(logged_in("secret", "link", "KEY", *env))
    told(logged_in("secret", "set", "OTHER", *env, "--from-env", "MINE", environ={"MINE": VALUE}))
    listed = read(logged_in("secret", "list", *env, "--json"))
    assert [(each["name"], each["kind"]) for each in listed] == [("KEY", "linked"), ("OTHER", "environment")]
    assert "leave out --env, or unlink it" in logged_in("secret", "set", "KEY", *env, input="x").stderr
    assert read(logged_in("secret", "unlink", "KEY", *env, "--json"))["name"] == "KEY"
    told(logged_in("secret", "delete", "OTHER", *env, "--yes"))
    assert told(logged_in("secret", "list", *env)) == ""
    assert "KEY" in told(logged_in("secret", "list"))
    assert logged_in("secret", "delete", "NOTHING", "--yes").stderr == "Error: You have no secret NOTHING.\n"


def test_at_a_terminal_the_value_is_asked_for_and_not_shown(logged_in: Run, served: Served) -> None:
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "proctor", "secret", "set", "SEARCH_KEY"]
    with subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        prompt = b""
        while not prompt.endswith(b": "):
            prompt += command.stderr.read(1) or pytest.fail(prompt.decode())
        os.write(ours, f"{VALUE}\n".encode())
        assert command.stdout.read() == b"SEARCH_KEY is kept, for root.\n"
    os.set_blocking(ours, False)
    shown = os.read(ours, 1000) if select.select([ours], [], [], 0)[0] else b""
    os.close(theirs)
    os.close(ours)
    assert prompt == b"Value of SEARCH_KEY: "
    assert VALUE.encode() not in shown


def test_variables_are_set_together(logged_in: Run, served: Served, add_environment: AddEnvironment) -> None:
    add_environment("root", "maze")
    env = ("--env", "root/maze")
    assert "A, B are set" in told(logged_in("var", "set", "A=1", "B=x=y", *env))
    told(logged_in("var", "set", "A=2", *env))
    assert [(each["name"], each["value"]) for each in read(logged_in("var", "list", *env, "--json"))] == [
        ("A", "2"),
        ("B", "x=y"),
    ]
    told(logged_in("var", "delete", "A", *env))
    assert "did you mean 'B'" not in told(logged_in("var", "list", *env))
    assert logged_in("var", "set", "PATH=/", *env).code == 2
    assert logged_in("var", "list", "--env", "maze").code == 2


def test_the_servers_models_are_listed_and_its_default_is_used(logged_in: Run, served: Served) -> None:
    served.platform.models.registry = Registry(
        {"parrot": Endpoint(model="parrot", client_type="scripted", alias="parrot")}, "endpoints.toml"
    )

    listing = read(logged_in("models", "list", "--json"))

    assert listing["server"]["url"] == served.url
    assert [each["id"] for each in listing["server"]["models"]] == ["parrot"]
    default = listing["without_a_name"]
    assert (default["model"], default["address"]) == ("parrot", f"{served.url}/v1")
    assert default["why"] == "no model was named and it is the default of 127.0.0.1, where you are logged in"
    assert listing["providers"][0]["name"] == "proctor"
    shown = told(logged_in("models", "list"))
    assert f"Models of {served.url}, where you are logged in" in shown
    assert "your login" in next(line for line in shown.splitlines() if line.startswith("  proctor "))
    assert "Which endpoint answers: the first row that applies" in shown


def test_a_server_without_models_takes_away_nothing_that_worked_before(logged_in: Run) -> None:
    words = ("eval", "run", "echo", "--dry-run", "--json")

    nothing_named = read(logged_in(*words))["endpoint"]
    assert (nothing_named["model"], nothing_named["client_type"]) == ("local", "local")
    assert "127.0.0.1 has no models" in nothing_named["why"]

    refused = logged_in(*words, "-m", "gpt-4.1-mini")
    assert refused.code == 2
    assert "No API key for model 'gpt-4.1-mini' (127.0.0.1 has no models): set" in refused.stderr


def test_a_server_that_is_gone_takes_away_nothing_either(logged_in: Run, served: Served) -> None:
    away = {"PROCTOR_API_URL": f"http://127.0.0.1:{free_port()}", "PROCTOR_API_KEY": "proctor_x"}
    chosen = read(logged_in("eval", "run", "echo", "--dry-run", "--json", environ=away))["endpoint"]

    assert chosen["client_type"] == "local"
    assert "127.0.0.1 does not answer" in chosen["why"]


def test_a_token_is_piped_to_the_command_and_stands_in_no_list_of_processes(served: Served) -> None:
    words = [sys.executable, "-m", "proctor", "login", served.url]
    done = subprocess.run(
        words, input=served.root.token, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("Logged in")
    assert done.stderr == ""


# The dashboard


def test_the_dashboard_opens_logged_in(
    served: Served, logged_in: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Firefox:
        name = "firefox"

        def open(self, url: str) -> bool:
            opened.append(url)
            return True

    monkeypatch.setattr("webbrowser.get", Firefox)
    ran = logged_in("dashboard")
    assert told(ran) == f"Opened {served.url} in your browser.\n"
    assert opened[0] not in ran.stdout + ran.stderr
    page, _, code = opened[0].partition("#code=")
    assert page == f"{served.url}/login"
    assert Api(served.url)("POST", "/session", {"code": code}).body["user"]["name"] == "root"


def test_without_a_browser_the_link_is_printed(
    served: Served, logged_in: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webbrowser

    monkeypatch.setattr("webbrowser.get", lambda: (_ for _ in ()).throw(webbrowser.Error("none")))
    for words in (("dashboard",), ("dashboard", "--no-browser"), ("dashboard", served.url)):
        ran = logged_in(*words)
        assert ran.stdout.startswith(f"{served.url}/login#code=")
        assert "works once, within five minutes" in ran.stderr
    document = json.loads(told(logged_in("dashboard", "--json")))
    assert document["url"].endswith(document["code"])


def test_for_the_dashboard_of_a_server_without_a_login_you_are_told_to_log_in(logged_in: Run) -> None:
    ran = logged_in("dashboard", "http://127.0.0.1:9")
    assert ran.code == 2
    assert "run `proctor login http://127.0.0.1:9` first" in ran.stderr
