"""Why nothing happens, in a sentence."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.errors import Failure
from proctor.events import RequestDelayed, RolloutStarted
from proctor.listeners.waiting import WaitStatus
from tests.conftest import Answer, Provider, Ran

BUSY = Failure("RateLimitError", "it answered 429: slow down")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_run_that_was_put_off_says_until_when_and_how_often(clock: Clock) -> None:
    waits = WaitStatus("tiny", clock, lambda: 0.0)
    waits(RequestDelayed((0, 0), 30.0, BUSY))
    waits(RequestDelayed((1, 0), 60.0, BUSY))

    until = time.strftime("%H:%M:%S", time.localtime(60.0))
    said = f"Waiting for tiny until {until}; requests were put off 2 times: it answered 429: slow down"
    assert waits.describe(None) == said
    clock.now += 61.0
    assert waits.describe(None) is None


def test_a_model_that_does_not_answer_is_mentioned_while_requests_wait(clock: Clock) -> None:
    waits = WaitStatus("tiny", clock)
    waits(RolloutStarted((0, 0)))
    clock.now += 19.0
    assert waits.describe(3) is None
    clock.now += 26.0
    assert "no answer for 45 s, 3 requests wait" in (waits.describe(3) or "")
    assert waits.describe(0) is None, "something else takes its time"
    waits(RolloutStarted((1, 0)))
    assert waits.describe(3) is None


def test_the_command_line_says_that_it_waits_for_a_provider(
    proctor: Callable[..., Ran], provider: Callable[..., Provider], tmp_path: Path
) -> None:
    busy: Answer = {"status": 429, "headers": {"Retry-After": "1"}, "body": {"error": "slow down"}}
    server = provider(busy, "4")
    ran = proctor("eval", "echo", "-m", "tiny", "-b", server.url, "-n", "1", "-r", "1")
    assert "Waiting for tiny until" in ran.stderr
    assert "put off once" in ran.stderr
    assert "slow down" in ran.stderr
