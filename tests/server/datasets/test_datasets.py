"""Datasets on a server: versions by content, rights as for environments, nothing left of a broken push."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.api.common import BASE
from proctor.server.settings import Quotas
from tests.server.datasets.pushing import OTHER_ROWS, ROWS, push_rows, sha256_of
from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served, serving, settings_in
from tests.waiting import wait_for

SUMS = "/datasets/ada/sums"


def stored(served: Served) -> list[Path]:
    kept = ("blobs", "incoming")
    return [file for name in kept for file in (served.platform.data / name).rglob("*") if file.is_file()]


def content(api: Api, sha256: str = "latest") -> str:
    answer = api("GET", f"{SUMS}/versions/{sha256}/content")
    assert answer.status == 200, answer
    return str(answer.body)


def test_the_same_content_pushed_twice_is_one_version_on_either_database(served_on_both: Served) -> None:
    ada = served_on_both.user("ada")

    first = push_rows(ada, "ada", "sums", ROWS, rows=2, columns='["user_prompt","ground_truth"]')
    again = push_rows(ada, "ada", "sums", ROWS)

    assert (first.status, first.body["created"]) == (201, True)
    assert (again.status, again.body["created"]) == (201, False)
    assert [each["sha256"] for each in ada.get(f"{SUMS}/versions")["items"]] == [sha256_of(ROWS)]
    told = ada.get(SUMS)
    assert (told["visibility"], told["role"], told["latest"]["rows"]) == ("private", "owner", 2)
    assert told["latest"]["columns"] == ["user_prompt", "ground_truth"]
    assert content(ada).encode() == ROWS


def test_the_content_pushed_last_is_the_latest_also_if_it_was_there_before(served: Served) -> None:
    ada = served.user("ada")
    push_rows(ada, "ada", "sums", ROWS)
    push_rows(ada, "ada", "sums", OTHER_ROWS)
    assert content(ada).encode() == OTHER_ROWS

    push_rows(ada, "ada", "sums", ROWS)

    assert content(ada).encode() == ROWS
    assert content(ada, sha256_of(OTHER_ROWS)[:8]).encode() == OTHER_ROWS


def test_strangers_cannot_tell_a_private_dataset_from_none(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    push_rows(ada, "ada", "sums", ROWS)
    for path in ("", "/versions", "/versions/latest", f"/versions/{sha256_of(ROWS)}/content"):
        for who in (eve, served.nobody):
            there, nowhere = (who("GET", f"/datasets/ada/{name}{path}") for name in ("sums", "none"))
            assert (there.status, nowhere.status) == (404, 404)
            assert there.body["message"].replace("sums", "none") == nowhere.body["message"]
    pushed = [push_rows(eve, "ada", name, ROWS) for name in ("sums", "none")]
    assert {(each.status, each.body["message"]) for each in pushed} == {(403, pushed[0].body["message"])}
    assert eve("DELETE", SUMS).status == 404
    assert eve.get("/datasets")["items"] == []


def test_a_public_dataset_is_read_by_everyone_and_changed_by_its_owner_alone(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    push_rows(ada, "ada", "sums", ROWS, visibility="public")

    assert content(served.nobody).encode() == ROWS
    assert eve("DELETE", SUMS).status == 403
    assert eve("PATCH", SUMS, {"visibility": "private"}).status == 403
    ada.ok("PATCH", SUMS, {"visibility": "private"})
    assert eve("GET", SUMS).status == 404


def test_members_of_a_team_push_and_read_its_datasets_and_admins_delete_them(served: Served) -> None:
    ada, bob, eve = served.user("ada"), served.user("bob"), served.user("eve")
    ada.post("/teams", {"name": "robots"})
    ada.ok("PUT", "/teams/robots/members", {"user": "bob", "role": "member"})

    assert push_rows(bob, "robots", "sums", ROWS).status == 201

    assert ada.get("/datasets?mine=true")["items"][0]["owner"] == "robots"
    assert eve("GET", "/datasets/robots/sums").status == 404
    assert bob("DELETE", "/datasets/robots/sums").status == 403
    assert ada("DELETE", "/datasets/robots/sums").status < 300


def test_a_file_that_is_not_what_its_hash_says_leaves_nothing(served: Served) -> None:
    ada = served.user("ada")

    answer = push_rows(ada, "ada", "sums", ROWS, sha256=sha256_of(OTHER_ROWS))

    assert (answer.status, answer.code) == (422, "content_mismatch")
    assert stored(served) == []
    assert ada("GET", SUMS).status == 404


@pytest.mark.parametrize(
    ("name", "query", "field"),
    [
        ("-sums", {}, "name"),
        ("s" * 101, {}, "name"),
        ("sums", {"format": "xlsx"}, "format"),
        ("sums", {"rows": -1}, "rows"),
        ("sums", {"columns": "{"}, "columns"),
        ("sums", {"columns": '["a\\u202eb"]'}, "columns"),
        ("sums", {"visibilty": "public"}, "visibilty"),
    ],
)
def test_a_push_with_a_wrong_value_is_refused_by_the_field_name(
    served: Served, name: str, query: dict[str, Any], field: str
) -> None:
    answer = push_rows(served.user("ada"), "ada", name, ROWS, **query)

    assert (answer.status, answer.body["details"]["field"]) == (422, field)
    assert stored(served) == []


def test_a_push_beyond_the_quota_or_the_size_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    quotas = Quotas(user_storage_mb=1)
    large = b'{"user_prompt": "' + b"x" * 2**20 + b'"}\n'
    with serving(settings_in(tmp_path, quotas=quotas, largest_dataset=2**20 + 2**19)) as served:
        ada = served.user("ada")
        assert push_rows(ada, "ada", "sums", ROWS).status == 201

        over_quota = push_rows(ada, "ada", "sums", large)
        over_size = push_rows(ada, "ada", "sums", large + large)

        assert (over_quota.status, over_quota.code) == (409, "quota_exceeded")
        assert (over_size.status, over_size.code) == (413, "too_large")
        assert push_rows(ada, "ada", "sums", ROWS).status == 201  # takes no more room
        assert len(stored(served)) == 1


def test_two_pushes_of_one_content_at_once_are_one_version(served: Served) -> None:
    ada = served.user("ada")
    data = ROWS * 20_000
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: push_rows(ada, "ada", "sums", data), range(4)))

    assert [each.status for each in answers] == [201] * 4
    assert sorted(each.body["created"] for each in answers) == [False, False, False, True]
    assert len(stored(served)) == len(ada.get(f"{SUMS}/versions")["items"]) == 1


def test_a_client_that_dies_in_mid_push_leaves_nothing_and_may_push_again(served: Served) -> None:
    ada = served.user("ada")
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as wire:
        head = (
            f"PUT {BASE}{SUMS}/versions/{sha256_of(ROWS)}?format=jsonl HTTP/1.1\r\nhost: x\r\n"
            f"authorization: Bearer {ada.token}\r\ncontent-length: {10 * 2**20}\r\n\r\n"
        )
        wire.sendall(head.encode() + b"x" * 2**20)
        wait_for(lambda: len(stored(served)) == 1)  # it arrives
    wait_for(lambda: stored(served) == [])

    assert ada("GET", SUMS).status == 404
    assert push_rows(ada, "ada", "sums", ROWS).status == 201


def test_what_is_deleted_is_gone_unless_another_dataset_has_the_same_content(served: Served) -> None:
    ada = served.user("ada")
    push_rows(ada, "ada", "sums", ROWS)
    push_rows(ada, "ada", "sums", OTHER_ROWS)
    push_rows(ada, "ada", "twin", ROWS)

    ada.ok("DELETE", f"{SUMS}/versions/{sha256_of(OTHER_ROWS)}")
    assert len(stored(served)) == 1
    ada.ok("DELETE", SUMS)
    assert len(stored(served)) == 1
    ada.ok("DELETE", "/datasets/ada/twin")
    assert stored(served) == []


def test_a_download_under_way_ends_whole_although_its_version_is_deleted(served: Served) -> None:
    ada = served.user("ada")
    data = ROWS * 200_000
    push_rows(ada, "ada", "sums", data)
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as wire:
        wire.settimeout(20)
        head = (
            f"GET {BASE}{SUMS}/versions/latest/content HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            f"authorization: Bearer {ada.token}\r\n\r\n"
        )
        wire.sendall(head.encode())
        received = wire.recv(2**16)
        ada.ok("DELETE", SUMS)
        while chunk := wire.recv(2**20):
            received += chunk

    assert sha256_of(received.partition(b"\r\n\r\n")[2]) == sha256_of(data)


def test_an_environments_files_survive_a_dataset_with_the_same_content(
    served: Served, tmp_path: Path
) -> None:
    ada = served.user("ada")
    package = made(tmp_path)
    assert push(ada, package).status == 201
    push_rows(ada, "ada", "sums", package.wheel)

    ada.ok("DELETE", SUMS)

    assert ada("GET", "/environments/ada/greet/versions/0.1.0/wheel").status == 200
