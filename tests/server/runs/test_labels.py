"""Labels of a run over the API: who may give them, who may read them, and which one counts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from proctor.server.db.tables import rollouts
from tests.cli.in_process import run_command
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


def pack_row(task: str) -> bytes:
    row = {"example_id": json.loads(task), "rollout": 0, "outcome": "scored", "reward": 1.0}
    said = [{"role": "assistant", "content": f"answer {task}"}]
    return zlib.compress(json.dumps({**row, "completion": said}).encode())


@pytest.fixture
def run_id(served: Served, ada: Api) -> str:
    """A run that has ended, with rollout 0 of the tasks 0, 1 and "1"."""
    run = str(ada.post("/runs", {"environment": "ada/greet", "model": "parrot"})["id"])
    ada.post(f"/runs/{run}/stop", {})
    tokens = {"input_tokens": 1, "output_tokens": 1}
    numbers = {"number": 0, "settled": True, "outcome": "scored", "reward": 1.0, "seconds": 1.0, **tokens}
    stored = [
        {"run_id": run, "task": task, "place": place, "row": pack_row(task), **numbers}
        for place, task in enumerate(("0", "1", '"1"'), 1)
    ]
    served.platform.database.write_now(lambda connection: connection.execute(insert(rollouts), stored))
    return run


def label(task: int | str, score: float | None, note: str = "", rollout: int = 0) -> dict[str, Any]:
    return {"example_id": task, "rollout": rollout, "score": score, "note": note}


def give(api: Api, run_id: str, *labels: dict[str, Any]) -> int:
    return api("POST", f"/runs/{run_id}/labels", {"labels": list(labels)}).status


def test_a_person_gives_labels_and_the_last_one_counts(ada: Api, run_id: str) -> None:
    assert ada.post(f"/runs/{run_id}/labels", {"labels": [label(0, 0.0), label("1", None)]}) == {"saved": 2}
    assert ada.post(f"/runs/{run_id}/labels", {"labels": [label(0, 0.5), label(0, 1.0, "right")]}) == {
        "saved": 1
    }

    items = ada.get(f"/runs/{run_id}/labels")["items"]

    shown = [(each["example_id"], each["score"], each["note"], each["person"]) for each in items]
    assert shown == [("1", None, "", "ada"), (0, 1.0, "right", "ada")], "the task '1' is not the task 1"


def test_labels_come_in_pages_and_by_person(ada: Api, run_id: str) -> None:
    give(ada, run_id, label(0, 1.0), label(1, 0.0), label("1", 1.0))

    first = ada.get(f"/runs/{run_id}/labels?limit=2")
    rest = ada.get(f"/runs/{run_id}/labels?limit=2&cursor={first['next_cursor']}")

    assert len(first["items"]) == 2
    assert len(rest["items"]) == 1
    assert rest["next_cursor"] is None
    assert ada.get(f"/runs/{run_id}/labels?person=nobody")["items"] == []


def test_labels_are_read_with_the_run_and_given_by_those_who_may_change_it(
    served: Served, ada: Api, run_id: str
) -> None:
    eve, reader = served.user("eve"), served.user("rea")
    ada.ok("PUT", "/environments/ada/greet/collaborators", {"name": "rea", "role": "read"})
    give(ada, run_id, label(0, 1.0))

    assert eve("GET", f"/runs/{run_id}/labels").status == 404
    assert give(eve, run_id, label(0, 0.0)) == 404
    ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "readers"})
    assert reader("GET", f"/runs/{run_id}/labels").status == 200
    assert give(reader, run_id, label(0, 0.0)) == 404


@pytest.mark.parametrize(
    "labels",
    [
        [],
        [label(9, 1.0)],
        [label(0, 1.0, rollout=5)],
        [label(0, 1.0), label(0, 1e200)],
        [label(0, 1.0, "x" * 3000)],
        [label(0, 1.0, "\u202e")],
        [{"example_id": 0}],
        [{**label(0, 1.0), "person": "bob"}],
    ],
    ids=["none", "no task", "no rollout", "too large", "too long", "hidden", "incomplete", "as another"],
)
def test_labels_that_make_no_sense_are_refused_and_none_of_them_is_stored(
    ada: Api, run_id: str, labels: list[dict[str, Any]]
) -> None:
    assert give(ada, run_id, *labels) in (400, 422)
    assert ada.get(f"/runs/{run_id}/labels")["items"] == []


def test_labels_go_with_their_run(ada: Api, run_id: str) -> None:
    give(ada, run_id, label(0, 1.0))

    ada.ok("DELETE", f"/runs/{run_id}")

    assert ada("GET", f"/runs/{run_id}/labels").status == 404


def test_the_command_line_labels_a_run_on_the_server_and_reads_everybodys_labels(
    served: Served, ada: Api, run_id: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", ada.token)
    (home / "labels.csv").write_text("example_id,rollout,score,person\n0,0,1,bob\n")

    first = run_command("eval", "label", run_id, "-n", "2", stdin="1 good\n0\n")
    second = run_command("eval", "label", run_id, stdin="")
    shown = run_command("eval", "agreement", run_id, "--json")

    assert first.code == 0, first.err
    assert "answer" in first.out
    assert "2 of 3 labelled by ada" in second.err
    items = ada.get(f"/runs/{run_id}/labels")["items"]
    assert sorted((each["score"], each["note"]) for each in items) == [(0.0, ""), (1.0, "good")]
    (person,) = json.loads(shown.out)["people"]
    assert (person["person"], person["labels"], person["only_judge_passes"]) == ("ada", 2, 1)
    assert "leave out --as" in run_command("eval", "label", run_id, "--as", "bob").err
    assert "cannot label as bob" in run_command("eval", "label", run_id, "--from", "labels.csv").err
