"""A host is kept going from outside: one that dies or is silent is replaced, one that gives up says why."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from proctor.client.contexts import Context
from proctor.errors import ConfigError
from proctor.runner import supervisor
from proctor.runner.host_settings import HostSettings, HostStartup
from proctor.runner.supervisor import Supervisor
from tests.runner.server import Answer, hearing

SECONDS = 60.0


class Kept:
    """A supervisor, and the processes it has started one after another."""

    def __init__(self, folder: Path, url: str, silent_seconds: float) -> None:
        self.folder = folder
        self.url = url
        self.supervisor = Supervisor(self._order, silent_seconds=silent_seconds)
        self.pids: list[int] = []

    async def _order(self) -> HostStartup:
        context = Context(url=self.url, token="t")
        return HostStartup(context=context, settings=HostSettings(data=self.folder), parent=os.getpid())

    async def next_pid(self) -> int:
        """Of the first process that was not seen before."""
        while True:
            process = self.supervisor.process
            if process is not None and process.pid not in self.pids and process.returncode is None:
                self.pids.append(process.pid)
                return process.pid
            await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.mark.parametrize("harm", [signal.SIGSTOP, signal.SIGKILL])
def test_a_host_that_hangs_or_dies_is_replaced(harm: signal.Signals, tmp_path: Path) -> None:
    async def play(url: str) -> None:
        kept = Kept(tmp_path, url, silent_seconds=5.0)
        running = asyncio.create_task(kept.supervisor.run())
        first = await kept.next_pid()
        os.kill(first, harm)
        second = await kept.next_pid()
        assert second != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        running.cancel()
        await asyncio.wait({running})
        with pytest.raises(ProcessLookupError):
            os.kill(second, 0)

    with hearing(lambda path, body: Answer(200, b"")) as server:
        asyncio.run(asyncio.wait_for(play(server.url), SECONDS))


def test_a_host_that_lives_is_left_alone(tmp_path: Path) -> None:
    async def play(url: str) -> None:
        kept = Kept(tmp_path, url, silent_seconds=20.0)
        running = asyncio.create_task(kept.supervisor.run())
        first = await kept.next_pid()
        claims = len(server.heard)
        until = time.monotonic() + SECONDS / 2
        while len(server.heard) < claims + 5 and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert kept.supervisor.process is not None
        assert kept.supervisor.process.pid == first
        running.cancel()
        await asyncio.wait({running})

    with hearing(lambda path, body: Answer(200, b"")) as server:
        asyncio.run(asyncio.wait_for(play(server.url), SECONDS))


def test_why_a_host_gives_up_is_passed_on(tmp_path: Path) -> None:
    problem = b'{"code": "unauthorized", "message": "This token is not known; make another."}'

    async def play(url: str) -> None:
        with pytest.raises(ConfigError, match="This token is not known; make another"):
            await Kept(tmp_path, url, SECONDS).supervisor.run(until_refused=True)

    with hearing(lambda path, body: Answer(401, problem)) as server:
        asyncio.run(asyncio.wait_for(play(server.url), SECONDS))
