"""A heart that beats while runs go well, and never gets in their way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from proctor import EchoEnvironment, Scripted, evaluate
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig, Presentation
from proctor.errors import ConfigError
from proctor.events import RunEnded, RunStarted
from proctor.listeners.heartbeat import Heartbeat, heartbeat_at
from proctor.listeners.resolve import close_all, listeners_for
from proctor.run import Run, RunStatus
from tests.waiting import SECONDS

if TYPE_CHECKING:
    from tests.conftest import Provider

    Start = Callable[..., Provider]


def started(name: str = "a") -> RunStarted:
    return RunStarted(Run(id=name, env_id="echo", model="m"), planned=1)


def ended(name: str = "a", status: RunStatus = "finished") -> RunEnded:
    return RunEnded(Run(id=name, env_id="echo", model="m", status=status))


async def heard(provider: Provider, times: int) -> None:
    """Wait for so many beats, and give up on them after a while."""
    async with asyncio.timeout(SECONDS):
        while len(provider.checks) < times:
            await asyncio.sleep(0.005)


def test_a_run_that_finishes_beats_first_and_last(provider: Start) -> None:
    monitor = provider()
    heart = heartbeat_at(monitor.url + "/ping?id=1")

    async def run() -> None:
        await evaluate(EchoEnvironment("say 1", "say 2"), Scripted(), listeners=[heart])
        await close_all([heart])

    asyncio.run(run())

    assert [beat.path for beat in monitor.checks] == ["/v1/ping?id=1"] * 2
    assert heart.missed == 0


def test_a_long_run_beats_again_and_again(provider: Start) -> None:
    monitor = provider()

    async def run() -> None:
        heart = Heartbeat(monitor.url, every_seconds=0.01)
        heart(started())
        await heard(monitor, 5)
        heart(ended())
        await heart.close()

    asyncio.run(run())

    assert len(monitor.checks) >= 6


@pytest.mark.parametrize("status", ["failed", "stopped"])
def test_a_run_that_does_not_finish_has_no_last_beat(provider: Start, status: RunStatus) -> None:
    monitor = provider()

    async def run() -> None:
        heart = Heartbeat(monitor.url)
        heart(started())
        await heard(monitor, 1)
        heart(ended(status=status))
        await heart.close()

    asyncio.run(run())

    assert len(monitor.checks) == 1


def test_a_run_that_never_says_how_it_ended_has_no_last_beat(provider: Start) -> None:
    monitor = provider()

    async def run() -> None:
        heart = Heartbeat(monitor.url)
        heart(started())
        await heard(monitor, 1)
        await heart.close()

    asyncio.run(run())

    assert len(monitor.checks) == 1


def test_runs_beside_each_other_share_one_heart(provider: Start) -> None:
    monitor = provider()
    shown = Presentation(heartbeat_url=monitor.url)
    settings = EvalConfig(env_id="echo"), Endpoint(model="m")

    async def run() -> None:
        [first], [second] = (listeners_for(*settings, shown) for _ in range(2))
        assert first is second
        first(started("a"))
        second(started("b"))
        first(ended("a"))
        await close_all([first])
        await heard(monitor, 1)
        assert len(monitor.checks) == 1, "the other run is still going"
        second(ended("b"))
        await close_all([second])

    asyncio.run(run())

    assert len(monitor.checks) == 2


def test_runs_one_after_the_other_each_have_their_beats(provider: Start) -> None:
    monitor = provider()

    async def run() -> None:
        heart = Heartbeat(monitor.url)
        for name in "ab":
            heart(started(name))
            heart(ended(name))
        await heart.close()

    asyncio.run(run())

    assert len(monitor.checks) == 2, "neither had begun to beat when it was over: one last beat each"


def test_a_failed_run_silences_the_heart_also_for_those_after_it(provider: Start) -> None:
    monitor = provider()

    async def run() -> None:
        heart = Heartbeat(monitor.url, every_seconds=0.01)
        heart(started("a"))
        await heard(monitor, 1)
        heart(ended("a", "failed"))
        await heart.close()
        beats = len(monitor.checks)
        heart(started("b"))
        heart(ended("b"))
        await heart.close()
        assert len(monitor.checks) == beats

    asyncio.run(run())


@pytest.mark.parametrize("models", [{"status": 500}, {"closes": "reset"}])
def test_a_monitor_that_is_ill_is_told_of_once_and_leaves_the_run_alone(
    provider: Start, caplog: pytest.LogCaptureFixture, models: dict[str, object]
) -> None:
    monitor = provider(models=models)
    caplog.set_level(logging.WARNING, logger="proctor")

    async def run() -> None:
        heart = Heartbeat(monitor.url, every_seconds=0.01)
        result = await evaluate(EchoEnvironment("say 1"), Scripted(), listeners=[heart])
        assert result.summary.reward.mean == 1.0
        heart(started())
        await heard(monitor, 4)
        heart(ended())
        await heart.close()
        assert heart.sent == heart.missed >= 4

    asyncio.run(run())

    first, last = caplog.messages
    assert monitor.url in first
    assert last.endswith(f"heartbeats did not reach {monitor.url}.")


def test_a_monitor_that_hangs_does_not_hold_the_run_up(provider: Start) -> None:
    monitor = provider(models={"hangs": True})

    async def run() -> float:
        heart = Heartbeat(monitor.url)
        await evaluate(EchoEnvironment("say 1"), Scripted(), listeners=[heart])
        before = time.monotonic()
        await close_all([heart], within_seconds=0.1)
        return time.monotonic() - before

    assert asyncio.run(run()) < 30


def test_an_address_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="--heartbeat-url is 'healthchecks/abc'"):
        listeners_for(
            EvalConfig(env_id="echo"), Endpoint(model="m"), Presentation(heartbeat_url="healthchecks/abc")
        )
