"""Datasets sent in parts, previews of their rows, and the runs that used them."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection, update

from proctor.runner.dataset_scan.request import DatasetScan
from proctor.server.datasets import inspection, upload_parts, uploads
from proctor.server.db.tables import dataset_uploads
from proctor.server.housekeeping import delete_expired
from proctor.server.settings import Quotas
from tests.server.datasets.pushing import OTHER_ROWS, ROWS, push_rows, sha256_of
from tests.server.serving import Answer, Api, Served, serving, settings_in
from tests.waiting import SECONDS, wait_for

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("uploads")]

SUMS = "/datasets/ada/sums"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path, quotas=Quotas(user_storage_mb=1))) as served:
        yield served


def begin(api: Api, data: bytes, name: str = "sums", **more: object) -> Answer:
    return api("POST", f"/datasets/ada/{name}/uploads", {"size": len(data), "format": "jsonl", **more})


def send(api: Api, upload: str, data: bytes, offset: int) -> Answer:
    return api("PATCH", f"/dataset-uploads/{upload}?offset={offset}", data=data, headers=BYTES)


BYTES = {"content-type": "application/octet-stream"}
BEGUN = 70_000
TRIES = 20


def test_a_file_in_parts_becomes_the_version_that_one_push_would_make(server: Served) -> None:
    ada = server.user("ada")
    upload = begin(ada, ROWS, description="Sums").body["id"]

    first = send(ada, upload, ROWS[:10], 0)
    again = send(ada, upload, ROWS[:10], 0)
    send(ada, upload, ROWS[10:], 10)
    made = ada.post(f"/dataset-uploads/{upload}/finish", None, **{"idempotency-key": "once"})
    repeated = ada.post(f"/dataset-uploads/{upload}/finish", None, **{"idempotency-key": "once"})

    assert first.body["received"] == 10
    assert (again.status, again.code, again.body["details"]["received"]) == (409, "wrong_offset", 10)
    assert made["version"]["sha256"] == sha256_of(ROWS)
    assert (made["version"]["rows"], made["version"]["columns"]) == (2, ["user_prompt", "ground_truth"])
    assert (made["dataset"]["description"], made["dataset"]["visibility"]) == ("Sums", "private")
    assert repeated == made
    assert ada("GET", f"/dataset-uploads/{upload}").status == 404
    assert list((server.platform.data / "uploads").iterdir()) == []


def begin_part(server: Served, api: Api, upload: str, data: bytes) -> http.client.HTTPConnection:
    """A connection on which the first bytes of a part have arrived, and the others are awaited."""
    part = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    part.putrequest("PATCH", f"/api/v1/dataset-uploads/{upload}?offset=0")
    part.putheader("authorization", f"Bearer {api.token}")
    part.putheader("content-type", BYTES["content-type"])
    part.putheader("content-length", str(len(data)))
    part.endheaders()
    part.send(data[:BEGUN])
    wait_for(lambda: api("PATCH", f"/dataset-uploads/{upload}?offset=0", data=b"x").code == "in_use")
    return part


def end_part(part: http.client.HTTPConnection, data: bytes) -> int:
    """Send the others; the status of the answer."""
    part.send(data[BEGUN:])
    with part.getresponse() as answer:
        answer.read()
    part.close()
    return answer.status


def test_what_arrived_before_a_connection_was_cut_is_kept(server: Served) -> None:
    ada = server.user("ada")
    data = ROWS * 2_000
    upload = begin(ada, data).body["id"]
    cut = begin_part(server, ada, upload, data)
    cut.close()

    wait_for(lambda: ada.get(f"/dataset-uploads/{upload}")["received"] > 0)
    received = ada.get(f"/dataset-uploads/{upload}")["received"]
    assert received <= BEGUN
    assert ada("POST", f"/dataset-uploads/{upload}/finish").code == "upload_incomplete"
    send(ada, upload, data[received:], received)
    assert ada.post(f"/dataset-uploads/{upload}/finish")["version"]["sha256"] == sha256_of(data)


def test_an_upload_is_its_person_s_alone_and_bounded(server: Served) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    upload = begin(ada, ROWS).body["id"]

    assert bob("GET", f"/dataset-uploads/{upload}").status == 404
    assert send(bob, upload, ROWS, 0).status == 404
    assert begin(bob, ROWS).code == "forbidden"
    assert send(ada, upload, ROWS + b"more", 0).code == "invalid"
    assert begin(ada, b"x" * 2**20, "large").code == "quota_exceeded"
    assert begin(ada, ROWS, "../sums").status in (404, 405, 422)
    assert begin(ada, ROWS, "a%20b").code == "invalid"
    for number in range(uploads.MOST_OPEN - 1):
        assert begin(ada, ROWS, f"more{number}").status == 201
    assert begin(ada, ROWS, "toomany").code == "too_many"
    assert ada("DELETE", f"/dataset-uploads/{upload}").status == 204
    assert len(ada.get("/dataset-uploads")["items"]) == uploads.MOST_OPEN - 1


def test_a_cancelled_upload_counts_until_its_last_part_has_ended(server: Served) -> None:
    ada = server.user("ada")
    data = b"x" * 900_000
    upload = begin(ada, data).body["id"]
    part = begin_part(server, ada, upload, data)
    answers: list[int] = []
    cancel = threading.Thread(
        target=lambda: answers.append(ada("DELETE", f"/dataset-uploads/{upload}").status), daemon=True
    )
    cancel.start()

    assert {begin(ada, data, "other").code for _ in range(TRIES)} == {"quota_exceeded"}
    end_part(part, data)
    cancel.join(SECONDS)
    assert answers == [204]
    assert list((server.platform.data / "uploads").iterdir()) == []
    assert begin(ada, data, "other").status == 201


def test_room_that_is_reserved_for_parts_is_taken_for_every_push(server: Served) -> None:
    ada = server.user("ada")
    data = b"x" * 900_000
    begin(ada, data)

    assert push_rows(ada, "ada", "other", data).code == "quota_exceeded"


def test_an_upload_needs_only_the_room_that_it_has_reserved(server: Served) -> None:
    ada = server.user("ada")
    data = ROWS * 8_000
    upload = begin(ada, data).body["id"]
    send(ada, upload, data, 0)

    assert 2 * len(data) > 2**20
    assert ada.post(f"/dataset-uploads/{upload}/finish")["version"]["sha256"] == sha256_of(data)


def begin_push(server: Served, api: Api, path: str, size: int) -> http.client.HTTPConnection:
    """A connection on which the first bytes of a push have arrived, and the others are awaited."""
    incoming = server.platform.data / "incoming"
    before = len(list(incoming.iterdir()))
    push = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    push.putrequest("PUT", f"/api/v1{path}?format=jsonl")
    push.putheader("authorization", f"Bearer {api.token}")
    push.putheader("content-length", str(size))
    push.endheaders()
    push.send(b"x" * BEGUN)
    wait_for(lambda: len(list(incoming.iterdir())) > before)
    return push


def test_pushes_at_once_take_room_together(server: Served) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    data = b"x" * 900_000
    first = begin_push(server, ada, f"{SUMS}/versions/{sha256_of(data)}", len(data))

    assert push_rows(ada, "ada", "other", data).code == "quota_exceeded"
    assert push_rows(bob, "bob", "other", data).status == 201
    assert end_part(first, data) == 201
    assert push_rows(ada, "ada", "other", ROWS).status == 201


def test_content_that_a_dataset_has_is_not_staged_without_bound(server: Served) -> None:
    ada = server.user("ada")
    data = b"x" * 600_000
    push_rows(ada, "ada", "sums", data)
    again = begin_push(server, ada, f"{SUMS}/versions/{sha256_of(data)}", len(data))

    assert push_rows(ada, "ada", "sums", data).code == "quota_exceeded"
    assert end_part(again, data) == 201
    assert push_rows(ada, "ada", "sums", data).status == 201


def test_a_push_says_how_long_it_is(server: Served) -> None:
    ada = server.user("ada")
    push = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    headers = {"authorization": f"Bearer {ada.token}"}
    push.request("PUT", f"/api/v1{SUMS}/versions/{sha256_of(ROWS)}?format=jsonl", iter([ROWS]), headers)

    with push.getresponse() as answer:
        assert (answer.status, b"content-length" in answer.read()) == (422, True)
    push.close()


def test_of_an_upload_that_was_cancelled_elsewhere_nothing_stays(server: Served) -> None:
    ada = server.user("ada")
    data = b"x" * 900_000
    upload = begin(ada, data).body["id"]
    part = begin_part(server, ada, upload, data)
    server.platform.database.write_now(uploads.remove_upload, upload)  # as another server would

    assert end_part(part, data) == 404
    assert list((server.platform.data / "uploads").iterdir()) == []


def test_an_upload_that_nobody_continues_is_dropped(server: Served) -> None:
    ada = server.user("ada")
    upload = begin(ada, ROWS).body["id"]

    def age(connection: Connection) -> None:
        long_ago = time.time() - upload_parts.KEPT_SECONDS - 1
        connection.execute(update(dataset_uploads).values(touched_at=long_ago))

    server.platform.database.write_now(age)
    server.platform.database.write_now(delete_expired, time.time())

    assert ada("GET", f"/dataset-uploads/{upload}").status == 404


def test_a_file_that_is_no_dataset_is_refused_with_its_line(server: Served) -> None:
    ada = server.user("ada")
    data = ROWS + b"not json\n"
    upload = begin(ada, data).body["id"]
    send(ada, upload, data, 0)

    refused = ada("POST", f"/dataset-uploads/{upload}/finish")

    assert (refused.status, refused.code) == (422, "unreadable_rows")
    assert "Line 3" in refused.body["message"]
    assert ada("GET", SUMS).status == 404


def test_the_first_rows_are_shown_as_text_whatever_they_hold(server: Served) -> None:
    ada, bob = server.user("ada"), server.user("bob")
    hostile = {"<img src=x>": "<script>alert(1)</script>", "n": {"deep": [1]}, "long": "x" * 5_000}
    data = json.dumps(hostile).encode() + b'\n{"n": null}\n'
    push_rows(ada, "ada", "sums", data)

    shown = ada.get(f"{SUMS}/versions/latest/preview?rows=5")
    first = ada.get(f"{SUMS}/versions/latest/preview?rows=1")

    assert shown["columns"] == ["<img src=x>", "n", "long"]
    assert shown["rows"][0][:2] == ["<script>alert(1)</script>", '{"deep":[1]}']
    assert len(shown["rows"][0][2]) == 2_001
    assert shown["rows"][1] == [None, "null", None]
    assert (shown["is_whole"], first["is_whole"]) == (True, False)
    assert bob("GET", f"{SUMS}/versions/latest/preview").status == 404
    assert ada("GET", f"{SUMS}/versions/latest/preview?rows=1000").code == "invalid"


def test_of_a_long_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server:
        ada = server.user("ada")
        push_rows(ada, "ada", "sums", OTHER_ROWS * 40_000)

        shown = ada.get(f"{SUMS}/versions/latest/preview?rows=3")

    assert (len(shown["rows"]), shown["is_whole"], shown["problem"]) == (3, False, "")


def test_somebody_with_many_slow_files_keeps_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def main() -> None:
        may_end = asyncio.Event()

        async def scan(file: Path, *_: object, **__: object) -> DatasetScan:
            begun.append(file.name)
            await may_end.wait()
            return DatasetScan()

        monkeypatch.setattr(inspection, "scan_dataset", scan)
        inspector = inspection.DatasetInspector(settings_in(tmp_path))
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(inspector.count("eve", Path(f"eve-{number}"), "jsonl"))
            group.create_task(inspector.preview("ada", Path("ada"), "jsonl", 1))
            while "ada" not in begun:
                await asyncio.sleep(0)
            assert begun == ["eve-0", "ada"]
            may_end.set()

    asyncio.run(main())
    assert sorted(begun) == ["ada", "eve-0", "eve-1", "eve-2"]
