"""A served environment in a thread of its own, on a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.channel.listen import open_channel_server
from proctor.channel.server import ServedEnvironment
from proctor.env.templates import Environment
from tests.waiting import SECONDS


@dataclass
class Host:
    """An environment that is being served."""

    served: ServedEnvironment
    loop: asyncio.AbstractEventLoop
    url: str
    troubles: list[dict[str, Any]] = field(default_factory=list)
    """What the event loop complained about."""

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def give_up_all(self) -> None:
        """End whatever is parked."""
        asyncio.run_coroutine_threadsafe(self.served.close(), self.loop).result(SECONDS)

    def tasks(self) -> int:
        """Tasks of the event loop, beside the one that serves."""
        counted: Future[int] = Future()
        self.loop.call_soon_threadsafe(lambda: counted.set_result(len(asyncio.all_tasks(self.loop)) - 1))
        return counted.result(SECONDS)


class Server:
    """The thread."""

    def __init__(self, environment: Environment, token: str | None) -> None:
        self._environment = environment
        self._token = token
        self._host: Future[Host] = Future()
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        served = ServedEnvironment(self._environment, self._token)
        async with open_channel_server(served) as url:
            host = Host(served, loop, url)
            loop.set_exception_handler(lambda _, trouble: host.troubles.append(trouble))
            self._host.set_result(host)
            await self._stop.wait()

    def start(self) -> Host:
        self._thread.start()
        return self._host.result(SECONDS)

    def stop(self) -> None:
        host = self._host.result(SECONDS)
        host.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the server does not stop"
        assert host.troubles == []


@pytest.fixture
def served() -> Iterator[Callable[..., Host]]:
    """Serve environments: `served(env)`, `served(env, token="x")`. None may leave trouble behind."""
    servers: list[Server] = []

    def serve(environment: Environment, token: str | None = None) -> Host:
        servers.append(Server(environment, token))
        return servers[-1].start()

    yield serve
    for server in servers:
        server.stop()
