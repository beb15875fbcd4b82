"""Repositories over HTTP: the token arrives where it belongs, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.repositories import make_checkout
from tests.server.serving import serving, settings_in
from tests.server.sources.git_server import git_server

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("repositories")]


def test_a_repository_behind_a_token_is_fetched_and_the_token_is_shown_nowhere(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "git")
    settings = settings_in(tmp_path, source_hosts=("127.0.0.1",))
    with git_server(tmp_path / "git") as host, serving(settings) as server:
        ada = server.user("ada")
        url = f"{host.url}/remote.git"
        good = ada.post("/sources", {"url": url, "name": "good", "token": "letmein"})["source"]
        bad = ada.post("/sources", {"url": url, "name": "bad", "token": "guess"})["source"]

        assert ada.post(f"/sources/{good['id']}/sync")["commit_sha"] == checkout.git("rev-parse", "HEAD")
        refused = ada("POST", f"/sources/{bad['id']}/sync", {})

        assert refused.code == "source_denied"
        assert "refuses access" in ada.get(f"/sources/{bad['id']}")["problem"]
        assert "letmein" not in str(ada.get("/sources"))
        assert b"letmein" not in (settings.data / "proctor.db").read_bytes()


def test_a_token_does_not_follow_a_redirect(tmp_path: Path) -> None:
    make_checkout(tmp_path / "git")
    settings = settings_in(tmp_path, source_hosts=("127.0.0.1",))
    with (
        git_server(tmp_path / "git") as other,
        git_server(tmp_path / "git") as host,
        serving(settings) as server,
    ):
        host.redirect = other.url
        ada = server.user("ada")
        made = ada.post("/sources", {"url": f"{host.url}/remote.git", "name": "agents", "token": "letmein"})

        assert ada("POST", f"/sources/{made['source']['id']}/sync", {}).status == 422
        assert not other.asked.is_set()
