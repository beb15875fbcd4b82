"""`proctor view`: what it answers, what it refuses, and how it starts and ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor.pages.files import BuiltPages
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from proctor.reading.routes import READING_ROUTES
from proctor.viewer.app import build_app
from proctor.viewer.guard import find_refusal
from proctor.viewer.listen import bind_loopback, serve_app
from tests.reading.conftest import Play

Ask = Callable[..., Coroutine[Any, Any, aiohttp.ClientResponse]]


@pytest.fixture(scope="module")
def played(play: Play, outputs: Path) -> Path:
    return play(outputs)


def with_view(outputs: Path, read: Callable[[Ask, str], Coroutine[Any, Any, None]]) -> None:
    """Serve the folder, and let `read` ask for paths."""

    async def main() -> None:
        library = FolderLibrary(lambda: find_run_folders([outputs]))
        app = build_app(library, BuiltPages(outputs / "no dist"))
        async with serve_app(app, bind_loopback(0)) as url, aiohttp.ClientSession(url) as client:

            async def ask(path: str, **headers: str) -> aiohttp.ClientResponse:
                return await client.get(path, headers=headers)

            await asyncio.wait_for(read(ask, url), 60)
        library.close()

    asyncio.run(main())


def test_every_route_of_the_table_answers(played: Path, outputs: Path) -> None:
    """With what it has, or with the sentence that says what is missing; never with a failure of its own."""

    async def read(ask: Ask, _: str) -> None:
        page = await (await ask(f"/api/v1/runs/{played.name}/rollouts")).json()
        entry = page["items"][0]
        address = f"{played.name}/{entry['key']}/{entry['number']}"
        values = {
            "run_id": played.name,
            "key": entry["key"],
            "number": "0",
            "index": "0",
            "event": "0",
            "part": "0",
        }
        queries = {
            "/diff": f"?a={address}&b={address}",
            "/runs/{run_id}/search": "?q=say",
            "/compare": f"?run={played.name}&run={played.name}",
        }
        for route in READING_ROUTES:
            if route.path == "/feed":
                continue
            path = "/api/v1" + route.path.format(suite_id="none", **values) + queries.get(route.path, "")
            answer = await ask(path)
            assert answer.status in (200, 404, 422), (path, await answer.text())
            if answer.status != 200:
                problem = await answer.json()
                assert problem["message"]
                assert problem["status"] == answer.status

    with_view(outputs, read)


def test_misspelt_parameters_are_named_with_the_nearest_words(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        answer = await ask(f"/api/v1/runs/{played.name}/rollouts?sort=rward&outcom=scored&limit=0")
        problem = await answer.json()
        assert answer.status == 422
        assert "did you mean 'reward'" in problem["message"]
        assert "did you mean 'outcome'" in problem["message"]
        assert "limit" in problem["message"]

    with_view(outputs, read)


def test_a_search_is_streamed_line_by_line(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        answer = await ask(f"/api/v1/runs/{played.name}/search?q=SAY+1&limit=3")
        hits = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert answer.content_type == "application/x-ndjson"
        assert [(hit["task"], hit["number"], hit["event"], hit["match"]) for hit in hits] == [
            ("1", 0, 0, "say 1"),
            ("1", 0, 1, "say 1"),
            ("1", 1, 0, "say 1"),
        ]

    with_view(outputs, read)


def test_a_search_can_be_about_one_rollout(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        run = f"/api/v1/runs/{played.name}"
        key = (await (await ask(f"{run}/rollouts?sort=task&limit=3")).json())["items"][2]["key"]
        answer = await ask(f"{run}/search?q=say&key={key}&number=1")
        hits = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert [(hit["key"], hit["number"], hit["event"]) for hit in hits] == [(key, 1, 0), (key, 1, 1)]

    with_view(outputs, read)


def test_the_feed_connects_at_once(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        answer = await ask("/api/v1/feed")
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readline() == b": still here\n"
        answer.close()

    with_view(outputs, read)


def test_there_is_no_login_and_the_pages_are_told(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        session = await (await ask("/api/v1/session")).json()
        assert (session["user"], session["has_logins"]) == (None, False)

    with_view(outputs, read)


def test_pages_come_with_a_policy_that_forbids_everything_foreign(played: Path, outputs: Path) -> None:
    async def read(ask: Ask, _: str) -> None:
        page = await ask(f"/runs/{played.name}", accept="text/html")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        data = await ask("/api/v1/runs")
        assert data.headers["x-content-type-options"] == "nosniff"
        assert data.headers["cache-control"] == "no-store"
        assert (await ask("/api/v1/nothing")).status == 404

    with_view(outputs, read)


API = "/api/v1/runs"
OWN = {"host": "127.0.0.1:8710"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:8710"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "192.168.0.7:8710"}, 421),
        ({"host": "[::1"}, 421),
        ({**OWN, "origin": "https://evil.example"}, 403),
        ({**OWN, "origin": "http://127.0.0.1:9999"}, 403),
        ({**OWN, "origin": "null"}, 403),
        ({**OWN, "origin": "http://["}, 403),
        ({**OWN, "sec-fetch-site": "cross-site"}, 403),
        ({**OWN, "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_what_another_site_asks_for_is_refused(headers: dict[str, str], status: int) -> None:
    refusal = find_refusal("GET", API, headers)

    assert refusal is not None
    assert refusal[0] == status


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"host": "localhost:9000"},
        {"host": "[::1]:8710"},
        {**OWN, "origin": "http://127.0.0.1:8710", "sec-fetch-site": "same-origin"},
        {**OWN, "sec-fetch-site": "none"},
    ],
)
def test_its_own_pages_and_programs_of_this_machine_are_answered(headers: dict[str, str]) -> None:
    assert find_refusal("GET", API, headers) is None


def test_a_link_from_elsewhere_opens_a_page_but_no_request_changes_anything() -> None:
    assert find_refusal("GET", "/runs/1", {**OWN, "sec-fetch-site": "cross-site"}) is None
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        refusal = find_refusal(method, API, OWN)
        assert refusal is not None
        assert refusal[0] == 405


def test_the_command_takes_the_next_port_serves_and_ends_on_ctrl_c(played: Path, outputs: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        command = [sys.executable, "-m", "proctor", "view", str(outputs), "--port", str(port), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
            assert view.stdout is not None
            announced = view.stdout.readline()
            url = announced.split()[-1]
            try:
                assert announced.startswith("Showing 1 run at http://127.0.0.1:")
                assert not url.endswith(f":{port}")
                assert json.loads(fetch(f"{url}/api/v1/runs"))["items"][0]["id"] == played.name
            finally:
                os.kill(view.pid, signal.SIGINT)
            _, errors = view.communicate(timeout=60)
    assert view.returncode == 0
    assert f"Port {port} is in use" in errors
    assert ("run make web" in errors) != BuiltPages().are_built()
    assert "Traceback" not in errors


def fetch(url: str) -> str:
    async def main() -> str:
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            return await answer.text()

    return asyncio.run(main())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proctor", "view", str(tmp_path / "nowhere"), "--no-browser"]

    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert told.returncode == 2
    assert "No folder" in told.stderr
    assert "nowhere" in told.stderr
