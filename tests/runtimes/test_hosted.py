"""HostedRuntime against a small real server that does what a Proctor server will do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import WSMsgType, web

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.hosted import HostedRuntime
from proctor.task import Task

TASK = Task(id="count", env="letters")
Serve = Callable[[], AbstractAsyncContextManager[int]]


@dataclass
class Server:
    """Sessions that go through the given states, and lead to one environment."""

    environment_port: int
    states: Sequence[str] = ("ready",)
    message: str = ""
    refuses: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    looks: int = 0
    url: str = ""

    def application(self) -> web.Application:
        app = web.Application()
        sessions = "/api/v1/runtime/sessions"
        app.add_routes(
            [
                web.get(sessions, self.listed),
                web.post(sessions, self.start),
                web.get(f"{sessions}/{{id}}", self.look),
                web.get(f"{sessions}/{{id}}/tunnel", self.tunnel),
                web.delete(f"{sessions}/{{id}}", self.end),
            ]
        )
        return app

    def refusal(self, request: web.Request) -> web.Response | None:
        if request.headers.get("authorization") != "Bearer key-1":
            return web.json_response({"message": "who are you?"}, status=401)
        return web.json_response({"message": "not today"}, status=self.refuses) if self.refuses else None

    async def listed(self, request: web.Request) -> web.Response:
        return self.refusal(request) or web.json_response([])

    async def start(self, request: web.Request) -> web.Response:
        if (refusal := self.refusal(request)) is not None:
            return refusal
        self.asked.append(await request.json())
        return self.told()

    async def look(self, request: web.Request) -> web.Response:
        self.looks += 1
        return self.told()

    def told(self) -> web.Response:
        status = self.states[min(self.looks, len(self.states) - 1)]
        return web.json_response({"id": "s/1", "status": status, "message": self.message, "token": "t-1"})

    async def end(self, request: web.Request) -> web.Response:
        self.ended.append(request.match_info["id"])
        return web.Response(status=204)

    async def tunnel(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.environment_port)

        async def back() -> None:
            while data := await reader.read(7):
                await socket.send_bytes(data)

        carrying = asyncio.ensure_future(back())
        async for message in socket:
            assert message.type == WSMsgType.BINARY
            writer.write(message.data)
        carrying.cancel()
        await asyncio.wait([carrying])
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return socket


@asynccontextmanager
async def hosting(server: Server) -> AsyncIterator[Server]:
    runner = web.AppRunner(server.application(), shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def played(served: Serve, *, task: Task = TASK, token: str = "key-1", **settings: Any) -> tuple[Server, Any]:
    """One rollout on a server; gives the server, and the answer to a frame or what was raised."""

    async def play() -> tuple[Server, Any]:
        async with served() as port, hosting(Server(port, **settings)) as server:
            runtime = HostedRuntime(server.url, token=token, poll_seconds=0.01, start_seconds=5)
            try:
                async with runtime(task) as place:
                    assert place.token == "t-1"
                    reader, writer = await asyncio.open_unix_connection(urlsplit(place.url).path, limit=2**20)
                    writer.write(b'{"id": 3, "method": "tasks.list", "params": "%s"}\n' % (b"x" * 100_000))
                    answer = json.loads(await reader.readline())
                    writer.close()
                    return server, answer
            except EnvError as error:
                return server, error
            finally:
                await runtime.close()

    return asyncio.run(play())


def test_a_rollout_is_played_through_the_server_and_its_session_ended(served: Serve) -> None:
    server, answer = played(served, states=("starting", "starting", "ready"))

    assert answer["id"] == 3
    assert server.asked == [{"environment": "letters", "task": "count"}]
    assert server.ended == ["s/1"]


def test_an_environment_that_does_not_start_is_told_in_the_servers_words(served: Serve) -> None:
    server, error = played(served, states=("starting", "failed"), message="the image is gone")

    assert str(error) == f"{server.url} could not start letters: the image is gone"
    assert server.ended == ["s/1"]


@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [(404, EnvError, "answered 404: not today"), (503, InfraError, "answered 503"), (429, InfraError, "429")],
)
def test_a_refusal_says_whether_it_may_work_next_time(
    served: Serve, status: int, kind: type[EnvError], sentence: str
) -> None:
    server, error = played(served, refuses=status)

    assert type(error) is kind
    assert sentence in str(error)
    assert server.ended == []


def test_a_wrong_key_is_told_before_anything_is_paid_for(served: Serve) -> None:
    async def check(token: str) -> None:
        async with hosting(Server(1)) as server:
            runtime = HostedRuntime(server.url, token=token)
            try:
                await runtime.check()
            finally:
                await runtime.close()

    asyncio.run(check("key-1"))
    with pytest.raises(ConfigError, match=r"refused the key \(401\); check PROCTOR_API_KEY"):
        asyncio.run(check("key-2"))


def test_a_server_that_is_not_there_is_told_before_anything_is_paid_for() -> None:
    async def check() -> None:
        runtime = HostedRuntime("http://127.0.0.1:9", token="k")
        try:
            await runtime.check()
        finally:
            await runtime.close()

    with pytest.raises(ConfigError, match=r"http://127.0.0.1:9 does not answer: .*; check PROCTOR_API_URL"):
        asyncio.run(check())


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_API_URL", raising=False)
    monkeypatch.delenv("PROCTOR_API_KEY", raising=False)

    with pytest.raises(ConfigError, match="set PROCTOR_API_URL, or pass hosted://HOST"):
        HostedRuntime()
    monkeypatch.setenv("PROCTOR_API_URL", "https://evals.example/base/")
    with pytest.raises(ConfigError, match=r"needs a key for .*, or set PROCTOR_API_KEY"):
        HostedRuntime()
    monkeypatch.setenv("PROCTOR_API_KEY", "secret")
    assert repr(HostedRuntime("")) == "HostedRuntime('https://evals.example/base')"
    assert HostedRuntime("evals.example", token="other").url == "https://evals.example"
    assert HostedRuntime("127.0.0.1:8000", token="other").url == "http://127.0.0.1:8000"
    with pytest.raises(ConfigError, match="needs a key for https://other.example"):
        HostedRuntime("other.example")  # the key belongs to the server in PROCTOR_API_URL


def test_a_task_without_an_environment_is_refused(served: Serve) -> None:
    with pytest.raises(ConfigError, match="does not name its environment"):
        played(served, task=Task(id=1))


def test_a_rollout_that_is_cancelled_while_the_server_starts_it_ends_its_session(served: Serve) -> None:
    async def play() -> Server:
        async with served() as port, hosting(Server(port, states=("starting",))) as server:
            runtime = HostedRuntime(server.url, token="key-1", poll_seconds=0.01)
            entering = asyncio.ensure_future(runtime(TASK).__aenter__())
            while not server.looks:
                await asyncio.sleep(0.01)
            entering.cancel()
            await asyncio.wait([entering])
            await runtime.close()
            return server

    assert asyncio.run(play()).ended == ["s/1"]
