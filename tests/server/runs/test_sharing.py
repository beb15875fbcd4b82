"""Who may read a run, and how much of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from proctor.api.common import LINK_HEADER
from proctor.cli.commands.hosted_runs import info_command, samples_command, share_command
from proctor.server.db.tables import run_links, runs
from proctor.server.people.tokens import ANONYMOUS
from proctor.server.problems import NotFoundError
from proctor.server.runs import routes
from proctor.server.secrets.rotation import seal_anew
from proctor.server.secrets.vault import Vault
from tests.server.hub.packages import made, push
from tests.server.runs.test_former_members import MODELS
from tests.server.serving import Answer, Api, Served, serving, settings_in

GREET = "/environments/ada/greet"
SETTINGS = {"api_base_url": "https://example.com/v1", "headers": {"x-team": "7"}, "num_examples": 3}
READS = ("", "/rows", "/tasks", "/results.jsonl", "/metadata.json")
LOGS = ("/events", "/events/stream")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    settings = settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")
    with serving(settings) as server:
        yield server


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    """The author of an environment."""
    api = served.user("ada")
    push(api, made(tmp_path / "p"))
    return api


@pytest.fixture
def bob(served: Served, ada: Api) -> Api:
    """A user who runs it."""
    api = served.user("bob")
    ada.ok("PUT", f"{GREET}/collaborators", {"name": "bob", "role": "read"})
    return api


@pytest.fixture
def run_id(served: Served, bob: Api) -> str:
    """A run of bob's that has ended, with money and an endpoint of his own."""
    made_run = bob.post("/runs", {"environment": "ada/greet", "model": "parrot", "max_cost_usd": 3.0})
    bob.post(f"/runs/{made_run['id']}/stop", {})
    row = {"settings": SETTINGS, "cost": 1_000_000, "metadata": {"config": SETTINGS}}
    change = update(runs).where(runs.c.id == made_run["id"]).values(row)
    served.platform.database.write_now(lambda connection: connection.execute(change))
    return str(made_run["id"])


def statuses(api: Api, run_id: str, paths: tuple[str, ...], query: str = "") -> set[int]:
    return {api("GET", f"/runs/{run_id}{path}{query}").status for path in paths}


def share(api: Api, run_id: str, visibility: str, **more: Any) -> Answer:
    return api("PUT", f"/runs/{run_id}/visibility", {"visibility": visibility, **more})


def test_a_private_run_is_read_by_its_owner_and_by_the_writers_of_its_environment(
    served: Served, ada: Api, bob: Api, run_id: str
) -> None:
    eve = served.user("eve")
    ada.ok("PUT", f"{GREET}/collaborators", {"name": "eve", "role": "read"})

    assert statuses(bob, run_id, (*READS, *LOGS)) == {200}
    assert statuses(ada, run_id, (*READS, *LOGS)) == {200}
    assert statuses(eve, run_id, (*READS, *LOGS)) == {404}
    assert [each["id"] for each in ada.get("/runs?environment=ada/greet")["items"]] == [run_id]
    assert ada.get("/runs")["items"] == []
    assert eve.get("/runs?environment=ada/greet")["items"] == []


def test_a_link_to_one_run_lists_no_other_that_is_for_people_with_a_login(
    served: Served, ada: Api, bob: Api, run_id: str
) -> None:
    ada.ok("PATCH", GREET, {"visibility": "public"})
    other = bob.post("/runs", {"environment": "ada/greet", "model": "parrot"})["id"]
    share(bob, other, "readers")
    link = share(bob, run_id, "link").body["link"].partition("?")[2]

    assert [each["id"] for each in served.user("eve").get("/runs?environment=ada/greet")["items"]] == [other]
    assert served.nobody("GET", f"/runs/{other}").status == 401
    assert served.nobody.get(f"/runs/{run_id}/history?{link}")["items"] == []


def test_writers_of_an_environment_read_its_runs_but_change_nothing_and_see_no_money(
    ada: Api, bob: Api, run_id: str
) -> None:
    own, theirs = bob.get(f"/runs/{run_id}"), ada.get(f"/runs/{run_id}")
    listed = ada.get("/runs?environment=ada/greet")["items"][0]

    assert (own["max_cost_usd"], own["cost_usd"], own["settings"]) == (3.0, 1.0, SETTINGS)
    for each in (theirs, listed):
        assert (each["max_cost_usd"], each["cost_usd"]) == (None, None)
    assert theirs["settings"] == ada.get(f"/runs/{run_id}/metadata.json")["config"] == {"num_examples": 3}
    assert ada("GET", f"/usage?run={run_id}").status == 404
    assert ada("POST", f"/runs/{run_id}/resume", {}).code == "read_only"
    assert ada("DELETE", f"/runs/{run_id}").status == 403
    assert share(ada, run_id, "link").status == 403


def test_a_run_can_be_shared_with_the_readers_of_its_environment_and_taken_back(
    served: Served, ada: Api, bob: Api, run_id: str
) -> None:
    eve, mallory = served.user("eve"), served.user("mallory")
    ada.ok("PUT", f"{GREET}/collaborators", {"name": "eve", "role": "read"})

    assert share(bob, run_id, "readers").status == 200
    assert statuses(eve, run_id, READS) == {200}
    assert statuses(eve, run_id, LOGS) == {403}
    assert [each["id"] for each in eve.get("/runs?environment=ada/greet")["items"]] == [run_id]
    assert statuses(mallory, run_id, (*READS, *LOGS)) == {404}
    assert statuses(served.nobody, run_id, READS) == {401}

    assert share(bob, run_id, "private").status == 200
    assert statuses(eve, run_id, READS) == {404}


def test_a_false_link_opens_nothing_to_a_token_that_may_not_read_runs(
    served: Served, ada: Api, bob: Api, run_id: str
) -> None:
    reads = (*READS, "/summary", "/rollouts", "/log", "/failures", "/export", "/search")
    for owner in (bob, ada, served.root):
        scopes = ["environments:read", "admin"] if owner is served.root else ["environments:read"]
        narrow = Api(served.url, owner.post("/tokens", {"scopes": scopes})["secret"])
        assert statuses(narrow, run_id, reads[:-1]) == {403}
        assert statuses(narrow, run_id, reads[:-1], "?link=x") == {404}
        assert statuses(narrow, run_id, reads[-1:], "?q=a&link=x") == {404}
        assert narrow("GET", f"/runs/{run_id}", headers={LINK_HEADER: "x"}).status == 404

    link = share(bob, run_id, "link").body["link"].partition("?")[2]
    narrow = Api(served.url, bob.post("/tokens", {"scopes": ["environments:read"]})["secret"])
    assert narrow.get(f"/runs/{run_id}?{link}")["cost_usd"] is None
    assert bob.get(f"/runs/{run_id}?{link}")["cost_usd"] == 1.0


def test_anyone_with_the_link_reads_a_run_until_the_link_is_replaced_or_removed(
    served: Served, bob: Api, run_id: str
) -> None:
    link = share(bob, run_id, "link").body["link"]
    query = "?" + link.partition("?")[2]

    assert link.startswith(f"{served.url}/runs/{run_id}?link=")
    assert len(link.partition("link=")[2]) >= 43
    assert statuses(served.nobody, run_id, READS, query) == {200}
    assert statuses(served.nobody, run_id, LOGS, query) == {422}  # the log takes no link
    assert statuses(served.nobody, run_id, LOGS) == {401}
    told = served.nobody.get(f"/runs/{run_id}{query}")
    assert (told["cost_usd"], told["settings"]) == (None, {"num_examples": 3})
    assert statuses(served.nobody, run_id, READS, f"{query}x") == {404}
    assert statuses(served.nobody, run_id, READS) == {401}
    assert bob.get(f"/runs/{run_id}/visibility")["link"] == link
    assert share(bob, run_id, "link").body["link"] == link

    newer = share(bob, run_id, "link", new_link=True).body["link"]
    assert newer != link
    assert statuses(served.nobody, run_id, READS, query) == {404}
    share(bob, run_id, "private")
    assert statuses(served.nobody, run_id, READS, "?" + newer.partition("?")[2]) == {404}
    assert bob.get(f"/runs/{run_id}/visibility") == {"visibility": "private", "link": None}


def test_a_link_is_stored_as_a_hash_and_sealed_and_survives_a_new_key(
    served: Served, bob: Api, run_id: str
) -> None:
    link = share(bob, run_id, "link").body["link"].partition("link=")[2]
    platform = served.platform
    stored = platform.database.read_now(lambda connection: connection.execute(select(run_links)).one())
    assert link.encode() not in stored.link_hash + stored.sealed

    new = Vault(b"k" * 32)
    platform.database.write_now(seal_anew, platform.vault, new)
    platform.vault = new
    assert bob.get(f"/runs/{run_id}/visibility")["link"].endswith(link)
    assert served.nobody("GET", f"/runs/{run_id}?link={link}").status == 200


def test_a_teams_run_is_the_teams_unless_its_owner_makes_it_private(
    served: Served, ada: Api, bob: Api
) -> None:
    carol = served.user("carol")
    bob.post("/teams", {"name": "lab"})
    bob.ok("PUT", "/teams/lab/members", {"user": "carol"})
    asked = {"environment": "ada/greet", "model": "parrot", "team": "lab"}
    told = bob.post("/runs", asked)
    kept = bob.post("/runs", {**asked, "visibility": "private"})

    assert (told["visibility"], kept["visibility"]) == ("team", "private")
    assert carol("GET", f"/runs/{told['id']}").status == 200
    assert carol("GET", f"/runs/{kept['id']}").status == 404
    assert bob("GET", f"/runs/{kept['id']}").status == 200
    bob.ok("PUT", f"/runs/{kept['id']}/visibility", {"visibility": "team"})
    assert carol("GET", f"/runs/{kept['id']}").status == 200


def test_a_run_is_not_shared_with_whom_it_does_not_have(bob: Api, run_id: str) -> None:
    upload = {"client_run_id": "r", "environment": "e", "model": "m"}
    local = bob.post("/uploads", upload)["id"]

    assert "belongs to no team" in share(bob, run_id, "team").body["message"]
    assert "has no readers" in share(bob, local, "readers").body["message"]
    assert share(bob, run_id, "friends").status == 422


def test_a_download_by_link_breaks_off_when_the_link_is_removed(
    served: Served, bob: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "ROWS_AT_ONCE", 1)
    local = bob.post("/uploads", {"client_run_id": "r", "environment": "e", "model": "m"})["id"]
    rows = [{"example_id": task, "rollout": 0, "outcome": "scored", "reward": 1.0} for task in range(3)]
    bob.post(f"/uploads/{local}/reports", {"batch": 1, "rows": rows})
    link = share(bob, local, "link").body["link"].partition("link=")[2]
    platform = served.platform

    async def download() -> bytes:
        pieces = routes.rows_while_allowed(platform, ANONYMOUS, local, link)
        first = await anext(pieces)
        await asyncio.to_thread(share, bob, local, "private")
        while platform.watch._open:
            await asyncio.sleep(0.02)
        with pytest.raises(NotFoundError):
            await anext(pieces)
        return first

    assert served.call(download).count(b"\n") == 1


def test_the_command_line_shares_a_run_and_reads_it_by_its_link(
    served: Served, bob: Api, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", bob.token)
    invoke = CliRunner().invoke

    assert invoke(share_command, [run_id]).output == f"{run_id} can be read by you.\n"
    told = invoke(share_command, [run_id, "link"]).output
    link = told.splitlines()[1]
    assert told.startswith(f"{run_id} can be read by anyone with this link:\n{served.url}")

    monkeypatch.delenv("PROCTOR_API_URL")
    monkeypatch.delenv("PROCTOR_API_KEY")
    read = invoke(info_command, [link])
    assert (read.exit_code, run_id in read.output) == (0, True), read.output
    assert invoke(samples_command, [link, "--json"]).exit_code == 0
