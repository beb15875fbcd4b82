"""A real server for tests: uvicorn in a thread, on a port of its own, with a data folder of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from litestar import Litestar
from msgspec.structs import replace

from proctor.api.common import BASE, HOST_KEY_HEADER
from proctor.api.people import SCOPES
from proctor.server.app import build_app, serve_platform
from proctor.server.platform import Platform
from proctor.server.secrets.vault import KEY_FILE_VARIABLE, new_key
from proctor.server.server import create_http_server, open_server
from proctor.server.settings import Settings
from tests.ports import free_port
from tests.server.empty_database import write_sqlite
from tests.waiting import SECONDS

APPS: defaultdict[Any, list[Litestar]] = defaultdict(list)
"""Those that serve no platform now, by what they depend on."""


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body["code"])


class Api:
    """Requests as one user; answers of any status are answers."""

    def __init__(self, url: str, token: str = "", host_key: str = "") -> None:
        self.url = url
        self.token = token
        self.host_key = host_key

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = data if data is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address(path), sent, method=method)
        request.add_header("content-type", "application/json")
        if self.token:
            request.add_header("authorization", f"Bearer {self.token}")
        if self.host_key:
            request.add_header(HOST_KEY_HEADER, self.host_key)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                return answered(response.status, response.read(), response.headers)
        except urllib.error.HTTPError as error:
            with error:
                return answered(error.code, error.read(), dict(error.headers))

    def address(self, path: str) -> str:
        return self.url + (path if path.startswith(("/simple", "/v1", "/api")) else BASE + path)

    def get(self, path: str) -> Any:
        return self.ok("GET", path)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.ok("POST", path, body if body is not None else {}, headers)

    def ok(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        answer = self(method, path, body, headers=headers)
        assert answer.status < 300, (method, path, answer)
        return answer.body


def answered(status: int, raw: bytes, headers: Any) -> Answer:
    kind = headers.get("content-type", "")
    is_json = bool(raw) and "json" in kind and "ndjson" not in kind
    body = json.loads(raw) if is_json else raw.decode(errors="replace")
    return Answer(status, body, headers)


class Served(NamedTuple):
    url: str
    platform: Platform
    root: Api
    """As the admin."""

    def user(self, name: str, *, is_admin: bool = False) -> Api:
        """A new user, and requests as they make them."""
        made = self.root.post("/users", {"name": name, "is_admin": is_admin})
        return Api(self.url, made["token"])

    @property
    def nobody(self) -> Api:
        return Api(self.url)

    def call(self, work: Any, *args: Any) -> Any:
        """Run something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work(*args), self.platform.loop).result(SECONDS)


@contextmanager
def holding_up_nobody(served: Served, seconds: float) -> Iterator[None]:
    """Meanwhile, no step of the server's loop computes for so long, however busy the machine is."""
    is_over = asyncio.Event()

    async def watch() -> float:
        longest, before = 0.0, time.thread_time()
        while not is_over.is_set():
            await asyncio.sleep(0.01)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
        return longest

    watching = asyncio.run_coroutine_threadsafe(watch(), served.platform.loop)
    try:
        yield
    finally:
        served.platform.loop.call_soon_threadsafe(is_over.set)
        longest = watching.result(SECONDS)
    assert longest < seconds


def kept_file(served: Served, sha256: str) -> Path:
    """The file of a server whose store is a folder."""
    path = served.platform.blobs.store.path(served.call(served.platform.blobs.find, sha256).key)
    assert path is not None
    return path


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    settings = replace(settings, port=settings.port or free_port())
    if settings.database is None and not (file := settings.data / "proctor.db").exists():
        write_sqlite(file)
    opened = open_server(settings)
    with app_for(opened.platform) as app:
        yield from run_in_thread(opened.platform, create_http_server(opened.platform, app))


@contextmanager
def serving_two(
    folder: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Served, Served]]:
    """Two servers with folders of their own, but for the key and the files."""
    key = folder / "shared.key"
    key.write_bytes(new_key())
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(key))
    with ExitStack() as stack:
        first = stack.enter_context(
            serving(settings_in(folder / "a", database=database, files=folder / "files"))
        )
        (folder / "b").mkdir()
        (folder / "b" / "data-root-token").write_text(first.root.token)
        second = stack.enter_context(
            serving(settings_in(folder / "b", database=database, files=folder / "files"))
        )
        yield first, second


def run_in_thread(platform: Platform, server: uvicorn.Server) -> Iterator[Served]:
    settings = platform.settings
    thread = threading.Thread(target=run_and_end_at_once, args=[server], daemon=True)
    thread.start()
    try:
        wait_until_up(settings.port, thread)
        yield Served(settings.url, platform, Api(settings.url, root_token(settings.url, settings.data)))
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive(), "the server did not end"


def run_and_end_at_once(server: uvicorn.Server) -> None:
    """uvicorn looks ten times a second whether it should end; a thousand tests would wait for that."""

    async def wait_for_end() -> None:
        while not await server.on_tick(0):
            await asyncio.sleep(0.01)

    server.main_loop = wait_for_end  # type: ignore[method-assign]
    server.run()


@contextmanager
def app_for(platform: Platform) -> Iterator[Litestar]:
    """An app that serves no other platform meanwhile: building one takes most of a server's start."""
    settings = platform.settings
    limits = tuple(getattr(settings, name) for name in settings.__struct_fields__ if "largest" in name)
    unused = APPS[limits]
    app = unused.pop() if unused else build_app(settings)
    serve_platform(app, platform)
    yield app
    unused.append(app)


def root_token(url: str, data: Path) -> str:
    """The admin's, kept beside the data folder: the first login is made once."""
    kept = data.with_name(f"{data.name}-root-token")
    first = data / "admin-token"
    if first.exists():
        kept.write_text(Api(url, first.read_text().strip()).post("/tokens", {"scopes": SCOPES})["secret"])
    return kept.read_text()


def wait_until_up(port: int, thread: threading.Thread) -> None:
    clock = threading.Event()
    for _ in range(int(SECONDS / 0.02)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert thread.is_alive(), "the server ended at once"
        clock.wait(0.02)
    raise AssertionError("the server does not listen")


def settings_in(folder: Path, **changes: Any) -> Settings:
    return replace(Settings(data=folder / "data", port=0, runs_at_once=0, offer_local=False), **changes)
