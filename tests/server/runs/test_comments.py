"""Comments on runs and rollouts over the API: who writes, who reads, who deletes, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.api.comments import LONGEST_COMMENT, MOST_COMMENTS_BY_ONE
from proctor.api.common import LINK_HEADER
from proctor.reading.entries import task_key
from tests.server.runs import test_edits
from tests.server.serving import Api, Served

served, ada = test_edits.served, test_edits.ada


@pytest.fixture
def run_id(ada: Api) -> str:
    """A run that rita may read, with a failed rollout 0 of task 1."""
    new = {"client_run_id": "r1", "environment": "ada/greet", "model": "m"}
    run = str(ada.post("/uploads", new)["id"])
    report(ada, run, 1, "model_error")
    return run


def report(api: Api, run_id: str, batch: int, outcome: str) -> None:
    row = {"example_id": 1, "rollout": 0, "outcome": outcome, "reward": 1.0 if outcome == "scored" else None}
    api.post(f"/uploads/{run_id}/reports", {"batch": batch, "rows": [row]})


@pytest.fixture
def link(ada: Api, run_id: str) -> dict[str, str]:
    """What a page sends that was opened by the run's link."""
    address = ada.ok("PUT", f"/runs/{run_id}/visibility", {"visibility": "link"})["link"]
    return {LINK_HEADER: address.partition("link=")[2]}


def say(api: Api, run_id: str, text: str, **more: Any) -> Any:
    return api.post(f"/runs/{run_id}/comments", {"text": text, **more})


def listed(api: Api, run_id: str, query: str = "") -> list[Any]:
    return list(api.get(f"/runs/{run_id}/comments{query}")["items"])


def test_comments_are_read_in_the_order_they_were_written_and_in_pages(ada: Api, run_id: str) -> None:
    for text in ("one", "two", "three"):
        say(ada, run_id, text)

    first = ada.get(f"/runs/{run_id}/comments?limit=2")
    rest = ada.get(f"/runs/{run_id}/comments?limit=2&cursor={first['next_cursor']}")

    assert [each["text"] for each in first["items"] + rest["items"]] == ["one", "two", "three"]
    assert rest["next_cursor"] is None


def test_a_comment_on_a_step_stays_when_the_rollout_is_played_again(ada: Api, run_id: str) -> None:
    place = {"key": task_key(1), "number": 0, "step": 3}
    said = say(ada, run_id, "here it goes wrong", rollout=place)
    say(ada, run_id, "of the whole run")

    report(ada, run_id, 2, "scored")  # the failed rollout is replaced
    ada.post("/uploads", {"client_run_id": "r1", "environment": "ada/greet", "model": "m"})

    assert said["rollout"] == place
    assert [each["id"] for each in listed(ada, run_id, f"?key={task_key(1)}&number=0")] == [said["id"]]
    assert len(listed(ada, run_id)) == 2


def test_a_comment_on_a_rollout_that_does_not_exist_is_refused(ada: Api, run_id: str) -> None:
    for place in ({"key": task_key(1), "number": 7}, {"key": task_key(2), "number": 0}):
        refused = ada("POST", f"/runs/{run_id}/comments", {"text": "x", "rollout": place})
        assert refused.status == 404
    odd = {"key": "0x" + task_key(1)[2:], "number": 0}
    assert ada("POST", f"/runs/{run_id}/comments", {"text": "x", "rollout": odd}).status == 422
    assert ada("GET", f"/runs/{run_id}/comments?key={task_key(1)}").status == 422


def test_whoever_reads_a_run_comments_and_deletes_only_their_own(
    served: Served, ada: Api, run_id: str, link: dict[str, str]
) -> None:
    rita, eve = served.user("rita"), served.user("eve")
    path = f"/runs/{run_id}/comments"
    hers = say(ada, run_id, "mine")
    his = rita("POST", path, {"text": "by link"}, headers=link).body

    assert eve("POST", path, {"text": "x"}).status == 404
    assert served.nobody("POST", path, {"text": "x"}, headers=link).status == 401
    assert [each["text"] for each in served.nobody("GET", path, headers=link).body["items"]] == [
        "mine",
        "by link",
    ]
    assert rita("PATCH", f"{path}/{hers['id']}", {"text": "x"}, headers=link).status == 403
    assert rita("DELETE", f"{path}/{hers['id']}", headers=link).status == 403
    assert ada("PATCH", f"{path}/{his['id']}", {"text": "x"}).status == 403, "nobody speaks for another"
    edited = rita("PATCH", f"{path}/{his['id']}", {"text": "better"}, headers=link).body
    assert (edited["text"], edited["edited_at"] is not None) == ("better", True)
    assert ada("DELETE", f"{path}/{his['id']}").status == 204
    assert ada("DELETE", f"{path}/{his['id']}").status == 204, "twice is once"
    gone = listed(ada, run_id)[1]
    assert (gone["text"], gone["deleted_by"], gone["may_delete"]) == ("", "ada", False)
    late = rita("PATCH", f"{path}/{his['id']}", {"text": "again"}, headers=link)
    assert (late.status, late.code) == (409, "changed_meanwhile")


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST_COMMENT + 1), "a\u202eb", "a\x00b"])
def test_an_empty_endless_or_invisible_comment_is_refused(ada: Api, run_id: str, text: str) -> None:
    refused = ada("POST", f"/runs/{run_id}/comments", {"text": text})

    assert refused.status == 422
    assert "text" in str(refused.body["details"])


def test_a_comment_sent_twice_with_one_key_is_stored_once(ada: Api, run_id: str) -> None:
    for _ in range(2):
        ada("POST", f"/runs/{run_id}/comments", {"text": "once"}, headers={"Idempotency-Key": "k"})

    assert len(listed(ada, run_id)) == 1


def test_one_person_cannot_fill_a_run_with_comments(ada: Api, run_id: str) -> None:
    for number in range(MOST_COMMENTS_BY_ONE):
        say(ada, run_id, str(number))

    refused = ada("POST", f"/runs/{run_id}/comments", {"text": "too many"})

    assert (refused.status, refused.code) == (409, "quota_exceeded")


def test_a_run_that_is_deleted_takes_its_comments_with_it(ada: Api, run_id: str, tmp_path: Path) -> None:
    say(ada, run_id, "x")
    ada.ok("DELETE", f"/runs/{run_id}")

    assert ada("GET", f"/runs/{run_id}/comments").status == 404
