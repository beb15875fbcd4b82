"""What a server hears of an attempt from its host, whatever becomes of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from proctor.api.runner import Lease, RunAssignment
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.errors import InstallError
from proctor.runner import attempt as attempt_module
from proctor.runner import host as host_module
from proctor.runner.attempt import FIRST_BATCH_INSIDE, HostAttempt, HostResources
from proctor.runner.host import RunHost
from proctor.runner.host_settings import HostSettings
from proctor.runner.inside.attempt_input import EXIT_REPORTED
from proctor.runner.launch import ProcessExit
from proctor.runner.lease import LeaseRenewal
from proctor.runner.venvs import Venv, Venvs
from tests.runner.server import Answer, Hearing, hearing
from tests.waiting import SECONDS

ASSIGNMENT = RunAssignment(
    run_id="run-1",
    attempt=1,
    token="t",
    environment="ada/sums",
    version="1.0",
    module="sums",
    wheel_name="sums-1.0-py3-none-any.whl",
    wheel_sha256="0" * 64,
    model="parrot",
    deadline_at=0.0,
    lease_seconds=30.0,
)
SHORT_LEASE = replace(ASSIGNMENT, lease_seconds=0.4)
VENV = Venv(python=Path("/usr/bin/python3"), paths=(), lock="")


@pytest.fixture(autouse=True)
def wheels_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def fetched(*_: object) -> Path:
        return tmp_path / "wheel"

    monkeypatch.setattr(attempt_module, "fetch_wheel", fetched)
    (tmp_path / "work").mkdir()


class Ready(Venvs):
    """Says a few things, and is ready, or fails."""

    def __init__(self, folder: Path, *said: str, error: Exception | None = None) -> None:
        super().__init__(folder)
        self.said = said
        self.error = error

    async def ready(self, wheel: Path, wheel_name: str, lock: str | None, say: Any) -> Venv:
        for line in self.said:
            say(line)
        if self.error is not None:
            raise self.error
        return VENV


class Attempt(HostAttempt):
    """Played by a process that ends in a given way, once something has happened."""

    outcome: ProcessExit | Exception = ProcessExit(code=EXIT_REPORTED)
    until: Callable[[HostAttempt], bool]

    async def _run_process(self, venv: Venv) -> ProcessExit:
        async with asyncio.timeout(SECONDS):
            while not self.until(self):
                await asyncio.sleep(0.01)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def played(
    server: Hearing,
    data: Path,
    outcome: ProcessExit | Exception = Attempt.outcome,
    *,
    venvs: Venvs | None = None,
    assignment: RunAssignment = ASSIGNMENT,
    until: Callable[[HostAttempt], bool] = lambda attempt: True,
) -> Attempt:
    async def main() -> Attempt:
        context = Context(url=server.url, token="t")
        async with ServerConnection(context, tries=1) as connection:
            resources = HostResources(
                name="here",
                context=context,
                settings=HostSettings(data=data),
                server=connection,
                venvs=venvs or Ready(data / "venvs"),
                wheels=data,
            )
            attempt = Attempt(resources, assignment)
            attempt.outcome, attempt.until = outcome, until
            await attempt.play()
            return attempt

    return asyncio.run(main())


def test_of_an_attempt_whose_last_word_was_heard_nothing_is_said_and_nothing_left(tmp_path: Path) -> None:
    with hearing() as server:
        attempt = played(server, tmp_path)
        assert server.losses == []
    assert not attempt.folder.exists()


def test_the_last_output_of_a_crash_is_in_the_log_of_the_run(tmp_path: Path) -> None:
    stack = ("Fatal Python error: Segmentation fault", *(f'  File "sums.py", line {n}' for n in range(30)))
    with hearing() as server:
        played(server, tmp_path, ProcessExit(code=139, signal=11, last_lines=stack))
        errors = [text for level, text in server.log if level == "ERROR"]
    assert errors == ["The last output of the run's process:", *stack]


@pytest.mark.parametrize("code", [0, 1, 9])
def test_an_attempt_that_ends_otherwise_is_told_as_crashed_and_its_rows_are_kept(
    code: int, tmp_path: Path
) -> None:
    with hearing() as server:
        attempt = played(server, tmp_path, ProcessExit(code=code))
        (lost,) = server.losses
    assert (lost.cause.code, lost.blameless) == ("crashed", False)
    assert f"exit code {code}" in lost.cause.message
    assert attempt.folder.exists()


def test_what_goes_wrong_on_the_host_is_told_with_its_reason(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device", str(tmp_path))
    with hearing() as server:
        with pytest.raises(OSError, match="No space left"):
            played(server, tmp_path, full)
        (lost,) = server.losses
    assert (lost.cause.code, lost.blameless) == ("internal", False)
    assert lost.cause.message == "The host could not play the run: No space left on device."


@pytest.mark.parametrize("outcome", [ProcessExit(code=1), InstallError("no"), OSError(28, "full")], ids=str)
def test_of_a_run_that_is_no_longer_its_own_a_host_says_nothing(
    outcome: ProcessExit | Exception, tmp_path: Path
) -> None:
    def given_away(path: str, _: bytes) -> Answer:
        return Answer(200, b'{"lost": true}' if path.endswith("/heartbeat") else b"{}")

    with hearing(given_away) as server:
        with suppress(OSError):
            played(server, tmp_path, outcome, assignment=SHORT_LEASE, until=lambda attempt: attempt.lost)
        assert server.losses == []


def test_a_heartbeat_that_is_not_answered_does_not_outlast_the_lease(tmp_path: Path) -> None:
    asked: list[float] = []
    lease_seconds = 4.0
    is_over = threading.Event()

    def silent_at_first(path: str, _: bytes) -> Answer:
        if "heartbeat" in path:
            asked.append(time.monotonic())
            if len(asked) == 1:
                is_over.wait(SECONDS)
        return Answer(200)

    with hearing(silent_at_first) as server:
        leased = replace(ASSIGNMENT, lease_seconds=lease_seconds)
        played(server, tmp_path, assignment=leased, until=lambda _: len(asked) > 1)
        is_over.set()
    assert asked[1] - asked[0] < lease_seconds


def test_a_heartbeat_that_goes_wrong_is_followed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, failures = LeaseRenewal.renew, [RuntimeError("of whatever kind")]

    async def failing_once(self: LeaseRenewal, seconds: float) -> Lease:
        if failures:
            raise failures.pop()
        return await whole(self, seconds)

    monkeypatch.setattr(LeaseRenewal, "renew", failing_once)
    with hearing() as server:

        def is_renewed(_: HostAttempt) -> bool:
            return any(path.endswith("/heartbeat") for path, _ in server.heard)

        played(server, tmp_path, assignment=SHORT_LEASE, until=is_renewed)
    assert failures == []


def test_what_an_installer_says_arrives_in_few_reports(tmp_path: Path) -> None:
    said = [f"Collecting {number}" for number in range(5_000)]
    failing = Ready(tmp_path, *said, error=InstallError("It cannot be installed.", ["No", "such package"]))
    with hearing() as server:
        played(server, tmp_path, venvs=failing)
        reports, log = server.reports, server.log
        (lost,) = server.losses
    assert len(reports) < 20
    assert all(report.batch < FIRST_BATCH_INSIDE for report in reports)
    assert ("INFO", "… 2,800 lines omitted") in log
    assert ("INFO", said[-1]) in log
    assert log[-2:] == [("ERROR", "No"), ("ERROR", "such package")]
    assert (lost.cause.code, lost.retry) == ("install_failed", False)


def test_what_an_installer_says_is_heard_while_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_module, "INSTALLER_REPORT_SECONDS", 0.01)
    with hearing() as server:

        class Waiting(Ready):
            async def ready(self, wheel: Path, wheel_name: str, lock: str | None, say: Any) -> Venv:
                say("Collecting helper")
                async with asyncio.timeout(SECONDS):
                    while ("INFO", "Collecting helper") not in server.log:
                        await asyncio.sleep(0.01)
                return VENV

        played(server, tmp_path, venvs=Waiting(tmp_path))
        assert server.losses == []


def test_an_attempt_that_leaves_does_not_take_the_next_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drained host waits for the second attempt of a run, though the first has ended meanwhile."""
    orders = [replace(ASSIGNMENT, attempt=2), ASSIGNMENT]
    ended: list[int] = []

    async def play(self: HostAttempt) -> None:
        await asyncio.sleep(0.2 * self.assignment.attempt)
        ended.append(self.assignment.attempt)

    monkeypatch.setattr(HostAttempt, "play", play)
    monkeypatch.setattr(host_module, "IDLE_SECONDS", 0.02)

    def claims(path: str, _: bytes) -> Answer:
        if path == "/hosts/claims" and orders:
            return Answer(200, msgspec.json.encode(orders.pop()))
        return Answer(200, b'{"runs": []}' if path == "/hosts/leftovers" else b"")

    async def main(url: str) -> None:
        host = RunHost(Context(url=url, token="t"), HostSettings(data=tmp_path))
        working = asyncio.create_task(host.work())
        async with asyncio.timeout(SECONDS):
            while ended != [1]:
                await asyncio.sleep(0.005)
            host.drain()
            await working
        assert ended == [1, 2]
        await host.close()

    with hearing(claims) as server:
        asyncio.run(main(server.url))
