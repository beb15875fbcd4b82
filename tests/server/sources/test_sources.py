"""Sources over HTTP: who may add what, what a sync finds, and whose webhooks count."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runner.repositories import Checkout, make_checkout
from tests.server.datasets.pushing import push_rows
from tests.server.serving import Answer, Api, Served, serving, settings_in
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("repositories")]

REGISTRY = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"
"""
ROWS = b'{"user_prompt": "say four", "ground_truth": "four"}\n' * 4


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path / "git")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    registry = tmp_path / "endpoints.toml"
    registry.write_text(REGISTRY)
    settings = settings_in(tmp_path, source_paths=(tmp_path / "git",), endpoints=registry)
    with serving(settings) as served:
        yield served


def add(api: Api, checkout: Checkout, **more: Any) -> Any:
    return api.post("/sources", {"url": str(checkout.remote), "name": "agents", **more})


def recipe(**experiment: Any) -> dict[str, Any]:
    fixed = {"rollout": "math", "entrypoint": "main.py", "model_path": "parrot", "dataset": "sums"}
    return {"experiment": {**fixed, **experiment}, "evaluation": {"limit": "all"}}


def submission(api: Api, **more: Any) -> dict[str, Any]:
    sha256 = hashlib.sha256(ROWS).hexdigest()
    owner = api.get("/whoami")["user"]["name"]
    api("PUT", f"/datasets/{owner}/sums/versions/{sha256}?format=jsonl", data=ROWS)
    dataset = {"owner": owner, "name": "sums", "format": "jsonl", "sha256": sha256, "selected_rows": 4}
    return {"source": "ada/agents", "recipe": recipe(), "dataset": dataset, **more}


def test_a_source_is_synced_and_lists_its_rollouts(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    added = add(ada, checkout)

    synced = ada.post(f"/sources/{added['source']['id']}/sync")

    assert synced["commit_sha"] == checkout.git("rev-parse", "HEAD")
    assert (synced["branch"], synced["rollouts"], synced["problem"]) == ("main", ["math", "other"], "")
    assert "secret" not in json.dumps(ada.get("/sources"))


def test_only_what_the_operator_allowed_can_be_added(server: Served, tmp_path: Path) -> None:
    ada = server.user("ada")

    def refusal(url: str, **more: Any) -> str:
        return str(ada("POST", "/sources", {"url": url, **more}).body["message"])

    assert "--allow-source-path" in refusal("/etc/secrets.git")
    assert "names no repository" in refusal(f"{tmp_path}/git/../data/x.git")
    assert "--allow-source-host" in refusal("https://127.0.0.1/agents.git")
    assert "credentials" in refusal("https://ada:password@example.org/agents.git")
    assert "private key" in refusal("git@example.org:ada/agents.git")
    assert "must begin with" in refusal("ext::sh")


def test_sources_are_private_to_their_owner(server: Served, checkout: Checkout) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    id_ = add(ada, checkout)["source"]["id"]

    assert bob("GET", f"/sources/{id_}").status == 404
    assert bob("POST", "/submissions", submission(bob)).status == 404
    assert bob.get("/sources")["items"] == []


def test_a_webhook_counts_only_with_the_source_s_signature(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    added = add(ada, checkout)
    path, body = f"/sources/{added['source']['id']}/webhook", b'{"ref": "refs/heads/main"}'
    digest = hmac.new(added["webhook_secret"].encode(), body, "sha256").hexdigest()
    nobody = server.nobody

    assert nobody("POST", path, data=body).code == "bad_signature"
    assert nobody("POST", path, data=body, headers={"x-hub-signature-256": "sha256=00"}).status == 401
    assert nobody("POST", "/sources/src-0/webhook", data=body).code == "bad_signature"
    assert nobody("POST", path, data=body, headers={"x-hub-signature-256": f"sha256={digest}"}).status == 202
    wait_for(lambda: ada.get(f"/sources/{added['source']['id']}")["commit_sha"])


def test_what_was_not_pushed_is_refused_at_once_by_name(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    add(ada, checkout)
    unpushed = checkout.commit({"rollouts/math/main.py": "# new\n"})

    def refusal(**more: Any) -> tuple[int, str]:
        answer = ada("POST", "/submissions", submission(ada, **more))
        return answer.status, answer.code

    assert refusal(commit_sha=unpushed) == (422, "unknown_commit")
    assert refusal(branch="feature") == (422, "unknown_branch")
    assert refusal(recipe=recipe(rollout="maths")) == (422, "unknown_rollout")
    assert refusal(recipe=recipe(entrypoint="app.py")) == (422, "unknown_entrypoint")
    assert ada.get("/runs")["items"] == []


def test_two_commits_with_the_same_rollout_share_one_version(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    add(ada, checkout)
    first = ada.post("/submissions", submission(ada))
    checkout.commit({"README.md": "Another file.\n"})
    checkout.push()
    second = ada.post("/submissions", submission(ada))
    checkout.commit({"rollouts/math/main.py": "# changed\n"})
    checkout.push()
    third = ada.post("/submissions", submission(ada))

    assert first["version"] == second["version"] != third["version"]
    assert first["origin"]["commit_sha"] != second["origin"]["commit_sha"]
    assert third["origin"]["commit_sha"] == checkout.git("rev-parse", "HEAD")
    assert len({run["name"] for run in (first, second, third)}) == 3
    assert first["name"].startswith("math-")
    listed = ada.get(f"/runs?config_hash={first['origin']['config_hash']}")["items"]
    assert [run["id"] for run in listed] == [third["id"], second["id"], first["id"]]
    assert ada.get("/runs?repository=elsewhere")["items"] == []


def test_a_dataset_of_another_user_cannot_be_named(server: Served, checkout: Checkout) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    add(bob, checkout)
    body = submission(ada, source="bob/agents")

    refused = bob("POST", "/submissions", body)

    assert (refused.status, refused.code) == (404, "not_found")
    assert "ada/sums" in refused.body["message"]


def test_a_preview_names_the_commit_and_starts_nothing(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    add(ada, checkout)

    shown = ada.post("/submissions/preview", submission(ada))

    assert shown["commit_sha"] == checkout.git("rev-parse", "HEAD")
    assert (shown["branch"], shown["model"], shown["estimate"]["rollouts"]) == ("main", "parrot", 4)
    assert ada.get("/runs")["items"] == []


RECIPE = """
[experiment]
rollout = "math"
entrypoint = "main.py"
model_path = "parrot"
dataset = "{dataset}"

[evaluation]
limit = "all"
"""


def test_a_sync_finds_recipes_branches_and_commits_and_keeps_its_log(
    server: Served, checkout: Checkout
) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    first = checkout.git("rev-parse", "HEAD")
    files = {
        "configs/eval/math.toml": RECIPE.format(dataset="sums"),
        "configs/eval/bad.toml": "[experiment\n",
    }
    head = checkout.commit(files, "Add recipes")
    checkout.push()
    checkout.push("feature")
    id_ = add(ada, checkout)["source"]["id"]

    synced = ada.post(f"/sources/{id_}/sync")
    content = ada.get(f"/sources/{id_}/commits/{head}")
    older = ada.get(f"/sources/{id_}/commits/{first}")

    assert (synced["branches"], synced["syncing_since"]) == (["feature", "main"], None)
    assert [each["commit_sha"] for each in ada.get(f"/sources/{id_}/commits")["items"]] == [head, first]
    bad, good = content["recipes"]
    assert (bad["path"], bad["recipe"]) == ("configs/eval/bad.toml", {})
    assert "Line 1" in bad["problem"]
    assert good["recipe"]["experiment"]["dataset"] == "sums"
    assert (older["recipes"], older["commit"]["subject"]) == ([], "Add a rollout")
    (sync,) = ada.get(f"/sources/{id_}/syncs")["items"]
    assert (sync["cause"], sync["status"], sync["commit_sha"]) == ("ada", "succeeded", head)
    assert any("Fetched commit" in line for line in sync["log"])
    assert bob("GET", f"/sources/{id_}/syncs").status == 404
    assert bob("GET", f"/sources/{id_}/commits/{head}").status == 404
    assert ada("GET", f"/sources/{id_}/commits/{head[:8]}").code == "invalid"


def test_a_failed_sync_says_in_its_log_what_went_wrong(server: Served, checkout: Checkout) -> None:
    ada = server.user("ada")
    id_ = add(ada, checkout)["source"]["id"]

    refused = ada("POST", f"/sources/{id_}/sync", {"branch": "nowhere"})

    assert refused.code == "unknown_branch"
    (sync,) = ada.get(f"/sources/{id_}/syncs")["items"]
    assert (sync["status"], sync["branch"]) == ("failed", "nowhere")
    assert "no branch 'nowhere'" in sync["log"][-1]


def test_the_server_selects_the_rows_that_the_command_line_would(server: Served) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    submission(ada)  # pushes the dataset without counting its rows

    def select(api: Api, **more: Any) -> Any:
        return api("POST", "/submissions/rows", {"recipe": recipe(), **more})

    found = select(ada).body
    assert (found["dataset"]["selected_rows"], found["total"], found["rule"]) == (4, 4, "all")
    assert found["dataset"]["sha256"] == hashlib.sha256(ROWS).hexdigest()
    assert select(ada, dataset="ada/sums", rows="1-2").body["dataset"]["selected_rows"] == 2
    assert ada.get("/datasets/ada/sums")["latest"]["rows"] == 4
    assert select(ada, rows="9").body["details"]["field"] == "rows"
    unknown = select(bob)
    assert (unknown.code, unknown.body["details"]["field"]) == ("unknown_dataset", "dataset")
    assert select(bob, dataset="ada/sums").status == 404


def test_a_dataset_that_claims_to_have_endless_rows_stalls_nobody(server: Served) -> None:
    eve = server.user("eve")
    assert push_rows(eve, "eve", "sums", ROWS, rows=2_000_000).status == 201

    def select(recipe: dict[str, Any], rows: str = "") -> Answer:
        return eve("POST", "/submissions/rows", {"recipe": recipe, "dataset": "eve/sums", "rows": rows})

    named, repeated = select(recipe(), "0-1999999"), select(recipe(), ",".join(["0-99999"] * 20))
    drawn, whole = select({"experiment": recipe()["experiment"]}), select(recipe())

    assert [answer.status for answer in (named, repeated, drawn, whole)] == [422, 422, 200, 200]
    assert "at most 1,000,000 can be listed" in named.body["message"]
    assert whole.body["dataset"]["selected_rows"] == 2_000_000
