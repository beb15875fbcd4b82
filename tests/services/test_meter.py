"""An endpoint's own limits: requests and tokens a minute."""

from __future__ import annotations

import asyncio
import time

from proctor import Scripted
from proctor.contracts import Request
from proctor.services.meter import AHEAD_SECONDS, Meter, Metered
from proctor.trace import Reply, Usage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_little_may_be_spent_ahead_and_the_rest_waits() -> None:
    clock = Clock()
    meter = Meter(60, clock)

    waits = []
    for _ in range(6):
        meter.spend()
        waits.append(meter.seconds_to_wait())

    assert waits == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    assert AHEAD_SECONDS == 3.0


def test_an_allowance_does_not_grow_while_nobody_uses_it() -> None:
    clock = Clock()
    meter = Meter(60, clock)
    clock.now = 3600.0

    for _ in range(5):
        meter.spend()

    assert meter.seconds_to_wait() == 2.0


class Costly(Scripted):
    def __init__(self) -> None:
        super().__init__()
        self.asked_at: list[float] = []

    async def complete(self, request: Request) -> Reply:
        self.asked_at.append(time.monotonic())
        return Reply({"role": "assistant", "content": "ok"}, usage=Usage(900, 100))


def asked(model: Metered, count: int) -> list[float]:
    async def main() -> None:
        request = Request([{"role": "user", "content": "hello"}])
        await asyncio.gather(*(model.complete(request) for _ in range(count)))

    inner = model.model
    assert isinstance(inner, Costly)
    asyncio.run(main())
    return [at - inner.asked_at[0] for at in inner.asked_at]


def test_requests_leave_no_faster_than_allowed() -> None:
    times = asked(Metered(Costly(), requests_per_minute=1200), 64)  # 20 a second, 60 of them at once

    assert times[59] < 0.1
    assert 0.15 <= times[63] < 1.0


def test_tokens_that_were_used_up_make_the_next_request_wait() -> None:
    model = Metered(Costly(), tokens_per_minute=18_000)  # 300 a second: 900 are there at once, one asks 1000

    first = asked(model, 1)
    second = asked(model, 1)

    assert first == [0.0]
    assert 0.2 <= second[1] - first[0] < 2.0
