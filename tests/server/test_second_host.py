"""Runs that are played by another machine than the server's: its token, its process, and the end of both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.workplace import Person, workplace

pytestmark = pytest.mark.usefixtures("sandboxes")


@contextmanager
def playing(admin: Person, token: Path) -> Iterator[subprocess.Popen[str]]:
    runner = admin.start("runner", "--server", admin.url, "--token-file", str(token), "--data", "runner")
    try:
        yield runner
    finally:
        runner.terminate()
        runner.communicate(timeout=180)


def test_a_runner_with_a_token_of_its_own_plays_what_the_server_does_not(tmp_path: Path) -> None:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        admin, ada = Person(tmp_path / "admin", place.url), place.person("ada")
        admin.ok("login", place.url, stdin=place.token)
        token = admin.home / "host-token"
        ada.write_environment()
        ada.ok("env", "push", "sums")
        run = ("eval", "run", "ada/sums", "--hosted", "-m", "parrot", "-n", "2", "-r", "1")
        waits = ada.ok(*run, "--json").json["runs"][0]["id"]

        admin.ok("token", "create", "--host", "big-machine", "-o", str(token))
        with playing(admin, token):
            assert ada("eval", "wait", waits, "--timeout", "180").code == 0

        assert token.stat().st_mode & 0o777 == 0o600
        stolen = admin.start(
            "runner", "--server", admin.url, "--token-file", str(token), "--data", "elsewhere"
        )
        _, stderr = stolen.communicate(timeout=180)
        assert stolen.returncode == 2
        assert "This token belongs to another host" in stderr

        again = ada.ok(*run, "--json").json["runs"][0]["id"]
        with playing(admin, token):  # restarted: a new process in the same folder
            assert ada("eval", "wait", again, "--timeout", "180").code == 0
        (host,) = admin.ok("token", "list", "--hosts", "--json").json
        assert host["name"] == "big-machine"
        admin.ok("token", "revoke", host["id"])
        with playing(admin, token) as refused:
            _, stderr = refused.communicate(timeout=180)
        assert refused.returncode == 2
        assert "token" in stderr
        assert "Traceback" not in stderr


def test_only_admins_make_tokens_for_hosts_and_nothing_is_left_of_a_refusal(tmp_path: Path) -> None:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        ada = place.person("ada")

        refused = ada("token", "create", "--host", "big-machine", "-o", "host-token")

        assert refused.code == 1
        assert "admin" in refused.stderr
        assert not (ada.home / "host-token").exists()
        assert ada("token", "list", "--hosts").code == 1
