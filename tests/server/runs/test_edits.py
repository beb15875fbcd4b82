"""What people say of a run: its name, note and tags; two people at once, and who may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proctor.cli.commands.hosted_runs import edit_command, list_command
from tests.server.hub.packages import made, push
from tests.server.runs.test_former_members import MODELS
from tests.server.serving import Api, Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as server:
        yield server


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    push(api, made(tmp_path / "p"))
    return api


@pytest.fixture
def run_id(ada: Api) -> str:
    run = str(ada.post("/runs", {"environment": "ada/greet", "model": "parrot", "name": "first"})["id"])
    ada.post(f"/runs/{run}/stop", {})
    return run


def edit(api: Api, run_id: str, **fields: Any) -> Any:
    return api.ok("PATCH", f"/runs/{run_id}", fields)


def test_a_run_gets_a_name_a_note_and_tags_and_is_found_by_them(ada: Api, run_id: str) -> None:
    told = edit(ada, run_id, name="before the fix", note="too *slow*", add_tags=["base", "slow"])

    assert (told["name"], told["note"], told["tags"]) == ("before the fix", "too *slow*", ["base", "slow"])
    assert ada.get("/runs?tag=base")["items"][0]["name"] == "before the fix"
    assert ada.get("/runs?tag=other")["items"] == []
    assert {each["value"] for each in ada.get("/runs/facets")["tag"]} == {"base", "slow"}
    assert edit(ada, run_id, remove_tags=["base"], note="")["tags"] == ["slow"]


def test_an_edit_that_changes_nothing_makes_no_revision(ada: Api, run_id: str) -> None:
    first = edit(ada, run_id, name="same", add_tags=["a"])

    assert edit(ada, run_id, name="same", add_tags=["a"])["revision"] == first["revision"]


def test_of_two_renames_at_once_the_second_is_told_who_was_first(
    served: Served, ada: Api, run_id: str
) -> None:
    root = served.root
    edit(root, run_id, name="root's", before={"name": "first"})

    late = ada("PATCH", f"/runs/{run_id}", {"name": "ada's", "before": {"name": "first"}})
    again = ada("PATCH", f"/runs/{run_id}", {"name": "root's", "before": {"name": "first"}})

    assert (late.status, late.code, late.body["details"]["current"]) == (409, "changed_meanwhile", "root's")
    assert late.body["message"].startswith('root changed the name to "root\'s" meanwhile')
    assert again.status == 200, "both want the same"
    assert edit(ada, run_id, name="ada's", before={"name": "root's"})["name"] == "ada's"
    assert edit(root, run_id, note="mine", before={"name": "first"})["note"] == "mine", "of another text"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "x" * 201}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"note": "x" * 2001}, "note"),
        ({"add_tags": ["x" * 51]}, "add_tags"),
        ({"add_tags": [" x"]}, "add_tags"),
        ({"add_tags": [""]}, "add_tags"),
        ({"add_tags": [str(number) for number in range(51)]}, "add_tags"),
        ({"visibility": "link"}, None),
    ],
)
def test_an_edit_that_is_too_long_or_invisible_is_refused_by_its_field(
    ada: Api, run_id: str, fields: dict[str, Any], field: str | None
) -> None:
    refused = ada("PATCH", f"/runs/{run_id}", fields)

    assert refused.status == 422
    details = refused.body["details"]
    named = details.get("field") or details["problems"][0]["field"]
    assert field is None or named == field


def test_a_run_has_at_most_fifty_tags(ada: Api, run_id: str) -> None:
    edit(ada, run_id, add_tags=[str(number) for number in range(50)])

    assert ada("PATCH", f"/runs/{run_id}", {"add_tags": ["one more"]}).status == 422
    assert len(edit(ada, run_id, add_tags=["one more"], remove_tags=["0"])["tags"]) == 50


def test_a_reader_is_told_that_they_may_not_change_a_run_and_whom_to_ask(
    served: Served, ada: Api, run_id: str
) -> None:
    rita, eve = served.user("rita"), served.user("eve")
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "rita", "role": "read"})
    ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "readers"})

    refused = rita("PATCH", f"/runs/{run_id}", {"name": "mine"})

    assert (refused.status, refused.code, refused.body["details"]["owner"]) == (403, "read_only", "ada")
    for method, path in (("POST", "/stop"), ("POST", "/resume"), ("DELETE", "")):
        assert rita(method, f"/runs/{run_id}{path}", {} if method == "POST" else None).code == "read_only"
    assert eve("PATCH", f"/runs/{run_id}", {"name": "mine"}).status == 404
    assert served.nobody("PATCH", f"/runs/{run_id}", {"name": "mine"}).status == 401
    assert [api.get(f"/runs/{run_id}")["may_change"] for api in (ada, rita, served.root)] == [
        True,
        False,
        True,
    ]
    listed = rita.get("/runs?environment=ada/greet")["items"]
    assert [each["may_change"] for each in listed] == [False]


def test_tags_that_people_changed_survive_an_upload_that_goes_on(ada: Api) -> None:
    new = {"client_run_id": "r1", "environment": "sums", "model": "m", "metadata": {"tags": ["from-file"]}}
    run_id = ada.post("/uploads", new)["id"]
    edit(ada, run_id, remove_tags=["from-file"], add_tags=["mine"], name="named")

    ada.post("/uploads", new)
    ada.post(f"/uploads/{run_id}/reports", {"batch": 1, "metadata": {"tags": ["from-file"]}})
    ada.post(f"/uploads/{run_id}/end", {"status": "finished", "metadata": {"tags": ["from-file"]}})

    told = ada.get(f"/runs/{run_id}")
    assert (told["name"], told["tags"]) == ("named", ["mine"])


def test_the_command_line_edits_runs_and_lists_them_by_tag(
    ada: Api, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_URL", ada.url)
    monkeypatch.setenv("PROCTOR_API_KEY", ada.token)
    runner = CliRunner()

    edited = runner.invoke(edit_command, [run_id, "--name", "night", "--tag", "base", "--note", "slow"])
    listed = runner.invoke(list_command, ["--tag", "base", "--json"])
    nothing = runner.invoke(edit_command, [run_id])

    assert edited.output == f"{run_id} night [base]: slow\n"
    assert run_id in listed.output
    assert (nothing.exit_code, "Say what to change" in nothing.output) == (2, True)
