"""An endpoint's own limits: requests and tokens a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from proctor import Scripted
from proctor.contracts import Request
from proctor.endpoints.rate_limit import AHEAD_SECONDS, RateLimitedModel, TokenBucket
from proctor.trace import Reply, Usage
from tests.steady_time import SteadyLoop


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_little_may_be_spent_ahead_and_the_rest_waits() -> None:
    clock = Clock()
    meter = TokenBucket(60, clock)

    waits = []
    for _ in range(6):
        meter.spend()
        waits.append(meter.seconds_to_wait())

    assert waits == pytest.approx([0.0, 0.0, 0.15, 1.2, 2.25, 3.3])
    assert AHEAD_SECONDS == 3.0


def test_no_minute_has_more_than_was_allowed() -> None:
    clock = Clock()
    meter = TokenBucket(600, clock)
    sent = 0

    while True:
        meter.spend()
        clock.now += meter.seconds_to_wait()
        if clock.now >= 60:
            break
        sent += 1

    assert 590 <= sent <= 600


def test_an_allowance_does_not_grow_while_nobody_uses_it() -> None:
    clock = Clock()
    meter = TokenBucket(60, clock)
    clock.now = 3600.0

    for _ in range(5):
        meter.spend()

    assert meter.seconds_to_wait() == pytest.approx(2.25)


class Costly(Scripted):
    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.clock = clock
        self.asked_at: list[float] = []

    async def complete(self, request: Request) -> Reply:
        self.asked_at.append(self.clock())
        return Reply({"role": "assistant", "content": "ok"}, usage=Usage(900, 100))


@pytest.fixture
def loop() -> Iterator[SteadyLoop]:
    loop = SteadyLoop()
    yield loop
    loop.close()


HELLO = Request([{"role": "user", "content": "hello"}])


def limited(loop: SteadyLoop, **limits: float) -> RateLimitedModel:
    return RateLimitedModel(Costly(loop.time), **limits, clock=loop.time)


def asked(loop: SteadyLoop, model: RateLimitedModel, count: int) -> list[float]:
    async def main() -> None:
        await asyncio.gather(*(model.complete(HELLO) for _ in range(count)))

    inner = model.model
    assert isinstance(inner, Costly)
    loop.run_until_complete(main())
    return [at - inner.asked_at[0] for at in inner.asked_at]


def test_requests_leave_no_faster_than_allowed(loop: SteadyLoop) -> None:
    times = asked(loop, limited(loop, requests_per_minute=1200), 62)  # 19 a second, 57 of them at once

    assert times[55] < 0.1
    assert 0.2 <= times[61] < 1.0


def test_tokens_that_were_used_up_make_the_next_request_wait(loop: SteadyLoop) -> None:
    model = limited(loop, tokens_per_minute=18_900)  # 300 a second: 900 are there at once, one asks 1000

    first = asked(loop, model, 1)
    second = asked(loop, model, 1)

    assert first == [0.0]
    assert 2.0 <= second[1] - first[0] < 5.0


def test_requests_that_start_together_reserve_what_they_will_use(loop: SteadyLoop) -> None:
    model = limited(loop, tokens_per_minute=630_000)  # 10,000 a second, 30,000 at once
    asked(loop, model, 1)  # now it is known that one takes 1000

    times = asked(loop, model, 40)

    assert sum(at < 0.1 for at in times[1:]) <= 30, "without a reservation all would leave at once"
    assert times[-1] - times[1] >= 0.8


def test_whoever_leaves_the_queue_has_used_nothing(loop: SteadyLoop) -> None:
    async def main() -> float:
        model = limited(loop, requests_per_minute=60)
        waiting = [asyncio.create_task(model.complete(HELLO)) for _ in range(100)]
        await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        started = loop.time()
        await model.complete(HELLO)
        return loop.time() - started

    assert loop.run_until_complete(main()) < 2.0
