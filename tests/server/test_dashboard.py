"""The dashboard's files and the API on one port: pages for browsers, JSON for programs, compressed."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from proctor.pages import files
from tests.pages.building import build_small
from tests.server.serving import Served, serving, settings_in
from tests.waiting import SECONDS


class Fetched(NamedTuple):
    status: int
    headers: dict[str, list[str]]
    body: bytes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "files", lambda _: build_small(folder / "dist").parent)
        with serving(settings_in(folder)) as server:
            yield server


def fetch(server: Served, path: str, method: str = "GET", **headers: str) -> Fetched:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=SECONDS)
    connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
    response = connection.getresponse()
    given: dict[str, list[str]] = {}
    for name, value in response.getheaders():
        given.setdefault(name.lower(), []).append(value)
    body = response.read()
    connection.close()
    return Fetched(response.status, given, body)


def test_a_browser_gets_the_page_and_a_program_the_api(served: Served) -> None:
    page = fetch(served, "/runs/run-1?link=abc", accept="text/html")
    assert (page.status, b"<!doctype html>" in page.body) == (200, True)
    assert fetch(served, "/api/v1/health", accept="text/html").headers["content-type"] == ["application/json"]
    missing = fetch(served, "/runs/run-1", accept="application/json")
    assert (missing.status, json.loads(missing.body)["code"]) == (404, "not_found")
    assert fetch(served, "/api/v1/nothing", accept="text/html").status == 404


def test_no_header_of_a_page_is_sent_twice(served: Served) -> None:
    for path in ("/", "/assets/app-1234.js"):
        sent = fetch(served, path, accept="text/html").headers
        assert [name for name, values in sent.items() if len(values) > 1] == []
        assert sent["x-content-type-options"] == ["nosniff"]
    assert "content-security-policy" in fetch(served, "/", accept="text/html").headers


def test_an_asset_comes_compressed(served: Served) -> None:
    packed = fetch(served, "/assets/app-1234.js", accept_encoding="gzip")
    plain = fetch(served, "/assets/app-1234.js")
    assert packed.headers["content-encoding"] == ["gzip"]
    assert gzip.decompress(packed.body) == plain.body
    head = fetch(served, "/assets/app-1234.js", "HEAD")
    assert (head.body, head.headers["content-length"]) == (b"", [str(len(plain.body))])


def test_only_reading_is_answered_with_a_page(served: Served) -> None:
    assert fetch(served, "/runs", "POST", accept="text/html").status == 404


def test_a_large_answer_is_compressed_for_whoever_accepts_that(served: Served) -> None:
    path = "/api/v1/schema/openapi.json"
    packed, plain = fetch(served, path, accept_encoding="gzip, br"), fetch(served, path)
    assert packed.headers["content-encoding"] == ["gzip"]
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in fetch(served, path, accept_encoding="gzip;q=0").headers


def test_a_small_answer_is_left_as_it_is(served: Served) -> None:
    answer = fetch(served, "/api/v1/health", accept_encoding="gzip")
    assert "content-encoding" not in answer.headers


def test_an_event_stream_is_never_compressed(served: Served) -> None:
    new = {"client_run_id": "one", "environment": "sums", "model": "m", "metadata": {}, "planned": 1}
    run_id = served.root.post("/uploads", new)["id"]
    line = {"level": "INFO", "text": "x" * 5_000, "at": 1.0}
    served.root.post(f"/uploads/{run_id}/reports", {"batch": 1, "rows": [], "logs": [line]})
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=SECONDS)
    headers = {"accept-encoding": "gzip", "authorization": f"Bearer {served.root.token}"}
    connection.request("GET", f"/api/v1/runs/{run_id}/events/stream", headers=headers)
    response = connection.getresponse()
    assert response.getheader("content-encoding") is None
    assert (response.getheader("content-type") or "").startswith("text/event-stream")
    read = b""
    while b"x" * 5_000 not in read:
        read += response.readline()
    connection.close()


def test_a_page_without_built_files_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "files", lambda _: tmp_path / "nothing")
    with serving(settings_in(tmp_path)) as server:
        page = fetch(server, "/", accept="text/html")
        assert (page.status, b"make web" in page.body) == (200, True)
