"""How much happens at once, how a provider slows a run down, and when somebody took too long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from proctor.engine.limits import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    PATIENCE,
    SETTLE_SECONDS,
    RequestRepeats,
    ResizableSemaphore,
    Throttle,
    backoff_seconds,
)
from proctor.errors import (
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    UnreachableError,
)
from proctor.support.deadlines import Deadlines
from tests.steady_time import run_steadily
from tests.waiting import SECONDS

T = TypeVar("T")


async def settle(turns: int = 5) -> None:
    """Let everybody who can go on go on."""
    for _ in range(turns):
        await asyncio.sleep(0)


def in_time(main: Coroutine[Any, Any, T], seconds: float = SECONDS) -> T:
    """Run, and fail rather than hang."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await main

    return run_steadily(bounded())


class Queue:
    """People who come to a gate one after the other, and note down when they get in."""

    def __init__(self, gate: ResizableSemaphore) -> None:
        self.gate = gate
        self.inside: list[str] = []

    async def comes(self, name: str, places: int = 1) -> asyncio.Task[None]:
        async def come() -> None:
            await self.gate.enter(places)
            self.inside.append(name)

        task = asyncio.create_task(come())
        await settle()
        return task


# The gate


def test_a_gate_lets_no_more_than_its_limit_in_and_all_of_them_at_last() -> None:
    async def story() -> tuple[int, int]:
        gate = ResizableSemaphore(3)
        inside = most = done = 0

        async def visit() -> None:
            nonlocal inside, most, done
            async with gate:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
            done += 1

        await asyncio.gather(*(visit() for _ in range(50)))
        return most, done

    assert in_time(story()) == (3, 50)


def test_who_comes_first_is_let_in_first_also_past_somebody_who_needs_less() -> None:
    async def story() -> list[str]:
        gate = ResizableSemaphore(3)
        queue = Queue(gate)
        await queue.comes("two", 2)
        await queue.comes("a crowd of three", 3)
        await queue.comes("one")  # would fit, but the crowd came first
        assert queue.inside == ["two"]
        gate.leave(2)
        await settle()
        assert queue.inside == ["two", "a crowd of three"]
        gate.leave(3)
        await settle()
        return queue.inside

    assert in_time(story()) == ["two", "a crowd of three", "one"]


def test_a_crowd_gets_its_places_all_at_once() -> None:
    async def story() -> None:
        gate = ResizableSemaphore(4)
        queue = Queue(gate)
        for name in "abc":
            await queue.comes(name)
        await queue.comes("crowd", 3)
        gate.leave()
        await settle()
        assert "crowd" not in queue.inside
        gate.leave()
        await settle()
        assert "crowd" in queue.inside
        assert gate.inside == 4

    in_time(story())


def test_somebody_who_gives_up_waiting_takes_no_place_and_holds_nobody_up() -> None:
    async def story() -> list[str]:
        gate = ResizableSemaphore(2)
        queue = Queue(gate)
        await queue.comes("first")
        crowd = await queue.comes("crowd", 2)
        await queue.comes("last")
        crowd.cancel()
        await settle()
        assert gate.inside == 2
        return queue.inside

    assert in_time(story()) == ["first", "last"]


def test_a_place_given_in_the_moment_of_giving_up_is_given_back() -> None:
    async def story() -> list[str]:
        gate = ResizableSemaphore(1)
        queue = Queue(gate)
        await queue.comes("first")
        second = await queue.comes("second")
        await queue.comes("third")
        gate.leave()  # gives the place to the second …
        second.cancel()  # … who leaves before noticing
        await settle()
        assert gate.inside == 1
        return queue.inside

    assert in_time(story()) == ["first", "third"]


def test_a_wider_gate_lets_the_waiting_in_and_a_narrower_one_throws_nobody_out() -> None:
    async def story() -> None:
        gate = ResizableSemaphore(1)
        queue = Queue(gate)
        for name in "abcd":
            await queue.comes(name)
        gate.resize(3)
        await settle()
        assert queue.inside == ["a", "b", "c"]
        gate.resize(1)
        assert gate.inside == 3
        gate.leave()
        gate.leave()
        await settle()
        assert queue.inside == ["a", "b", "c"]
        gate.leave()
        await settle()
        assert queue.inside == ["a", "b", "c", "d"]

    in_time(story())


def test_a_gate_is_never_closed_altogether() -> None:
    gate = ResizableSemaphore(4)
    gate.resize(0)
    assert gate.limit == 1


# The throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def refusal(retry_after_seconds: float | None = None) -> RateLimitError:
    return RateLimitError("slower", retry_after_seconds=retry_after_seconds)


def limit_of(throttle: Throttle) -> int:
    assert throttle.semaphore is not None
    return throttle.semaphore.limit


def test_nobody_is_held_back_before_the_provider_says_so() -> None:
    throttle = Throttle(Clock())
    throttle.in_flight = 1000
    throttle.answered()
    assert throttle.semaphore is None


def test_a_burst_of_refusals_cuts_once() -> None:
    throttle = Throttle(Clock())
    throttle.in_flight = 100

    for _ in range(100):
        throttle.refused(refusal(), 0)
        throttle.in_flight -= 1

    assert throttle.cuts == 1
    assert limit_of(throttle) == 80


def test_refusals_after_the_burst_has_settled_cut_again() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    throttle.in_flight = 100
    throttle.refused(refusal(), 0)

    throttle.in_flight = 80
    clock.now += SETTLE_SECONDS
    throttle.refused(refusal(), 1)

    assert throttle.cuts == 2
    assert limit_of(throttle) == 64


def test_a_cut_never_widens_and_never_closes() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    throttle.in_flight = 10
    throttle.refused(refusal(), 0)
    throttle.in_flight = 500  # requests that were under way before the cut
    clock.now += SETTLE_SECONDS
    throttle.refused(refusal(), 0)
    assert limit_of(throttle) == 8

    for _ in range(20):
        throttle.in_flight = 1
        clock.now += SETTLE_SECONDS
        throttle.refused(refusal(), 0)
    assert limit_of(throttle) == 1


def test_clean_rounds_widen_it_again_and_faster_the_wider_it_is() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    throttle.in_flight = 50
    throttle.refused(refusal(), 0)
    clock.now += SETTLE_SECONDS

    limits = []
    for _ in range(5):
        for _ in range(limit_of(throttle)):
            throttle.answered()
        limits.append(limit_of(throttle))

    assert limits == [42, 44, 46, 48, 50]


def test_answers_to_requests_from_before_the_cut_do_not_widen_it() -> None:
    throttle = Throttle(Clock())
    throttle.in_flight = 10
    throttle.refused(refusal(), 0)

    for _ in range(1000):
        throttle.answered()

    assert limit_of(throttle) == 8


def test_it_waits_as_long_as_it_was_asked_to_and_a_little_longer() -> None:
    waits = [Throttle(Clock()).refused(refusal(7.0), 0) for _ in range(50)]

    assert all(wait is not None and 7.0 <= wait <= 7.7 for wait in waits)
    assert len(set(waits)) > 1  # not all come back in the same moment


def test_without_being_told_it_waits_longer_each_time() -> None:
    for resends in range(PATIENCE):
        wait = Throttle(Clock()).refused(refusal(), resends)
        assert wait is not None
        full = min(60.0, FIRST_WAIT_SECONDS * 2**resends)
        assert full / 2 <= wait <= full


def test_it_gives_up_when_asked_to_wait_too_long_or_too_often() -> None:
    assert Throttle(Clock()).refused(refusal(LONGEST_WAIT_SECONDS + 1), 0) is None
    assert Throttle(Clock()).refused(refusal(), PATIENCE) is None
    assert Throttle(Clock()).refused(refusal(0.1), PATIENCE) is None


def test_backoff_has_an_end() -> None:
    assert backoff_seconds(5000, 1.0) <= 60.0


# Deadlines


async def takes(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def test_who_is_late_is_cancelled_and_who_is_not_is_left_alone() -> None:
    async def timed(deadlines: Deadlines, seconds: float) -> str:
        try:
            with deadlines.within(0.1):
                return await takes(seconds)
        except TimeoutError:
            return "late"

    async def story() -> list[str]:
        deadlines = Deadlines()
        return await asyncio.gather(*(timed(deadlines, seconds) for seconds in (0.01, 30, 0.02, 30)))

    assert in_time(story()) == ["done", "late", "done", "late"]


def test_a_deadline_is_kept_nearly_to_the_moment() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(TimeoutError), Deadlines().within(0.2):
            await takes(30)
        return loop.time() - started

    assert 0.2 <= in_time(story()) < 0.4


def test_no_deadline_at_all_never_passes() -> None:
    async def story() -> str:
        with Deadlines().within(None):
            return await takes(0.05)

    assert in_time(story()) == "done"


def test_a_deadline_may_be_lifted_and_set_anew() -> None:
    async def story() -> str:
        with Deadlines().within(0.05) as deadline:
            deadline.move(None)
            await takes(0.15)
            deadline.move(0.05)
            try:
                await takes(30)
            except asyncio.CancelledError:
                return "late the second time"
            return "never late"

    assert in_time(story()) == "late the second time"


def test_a_shorter_deadline_that_starts_later_is_kept_too() -> None:
    async def story() -> float:
        deadlines = Deadlines()
        loop = asyncio.get_running_loop()
        with deadlines.within(60):
            started = loop.time()
            with pytest.raises(TimeoutError), deadlines.within(0.05):
                await takes(30)
            return loop.time() - started

    assert in_time(story()) < 0.3


def test_a_timeout_raised_by_the_work_itself_is_not_taken_for_the_deadline() -> None:
    async def story() -> int:
        deadline = Deadlines().within(60)
        with pytest.raises(TimeoutError, match="of the work's own"), deadline:
            raise TimeoutError("of the work's own")
        return deadline.expired

    assert not in_time(story())


def test_a_real_cancellation_is_not_taken_for_a_deadline() -> None:
    async def waits() -> None:
        with Deadlines().within(60):
            await takes(30)

    async def story() -> bool:
        task = asyncio.create_task(waits())
        await settle()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert in_time(story())


def test_a_late_one_who_is_also_cancelled_is_cancelled() -> None:
    async def story() -> bool:
        deadlines = Deadlines()

        async def waits() -> None:
            with deadlines.within(0.05):
                try:
                    await takes(30)
                except asyncio.CancelledError:
                    await takes(0.2)  # tidies up; meanwhile the run is cancelled
                    raise

        task = asyncio.create_task(waits())
        await asyncio.sleep(0.15)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert in_time(story())


def test_after_a_deadline_its_task_can_be_cancelled_and_timed_again() -> None:
    async def story() -> list[str]:
        deadlines = Deadlines()
        said = []
        for _ in range(2):
            try:
                with deadlines.within(0.02):
                    await takes(30)
            except TimeoutError:
                said.append("late")
        task = asyncio.current_task()
        assert task is not None
        said.append(str(task.cancelling()))
        return said

    assert in_time(story()) == ["late", "late", "0"]


class CountingLoop(asyncio.SelectorEventLoop):
    timers = 0

    def call_later(self, *args: Any, **settings: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        self.timers += 1
        return super().call_later(*args, **settings)


def test_thousands_of_deadlines_cost_one_timer() -> None:
    async def story() -> None:
        deadlines = Deadlines()

        async def quick() -> None:
            with deadlines.within(3600):
                await asyncio.sleep(0)

        await asyncio.gather(*(quick() for _ in range(5000)))

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(story())
        loop = runner.get_loop()

    assert isinstance(loop, CountingLoop)
    assert loop.timers == 1


# Sending a request again


def test_a_request_is_repeated_with_growing_pauses_and_not_for_ever() -> None:
    repeats = RequestRepeats(None, first_wait_seconds=1.0)

    waits = [repeats.next_wait(OverloadedError("503"), 0.1) for _ in range(5)]

    assert waits[4] is None
    assert all(wait is not None and 2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits[:4]))


def test_a_request_is_repeated_only_within_its_own_time() -> None:
    assert RequestRepeats(10.0).next_wait(OverloadedError("503"), took_seconds=9.99) is None
    assert RequestRepeats(10.0).next_wait(OverloadedError("503", retry_after_seconds=60.0), 1.0) is None
    assert RequestRepeats(10.0).next_wait(OverloadedError("503", retry_after_seconds=3.0), 1.0) == 3.0


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (ModelTimeoutError("the gateway before it gave up", status=504), True),
        (ModelTimeoutError("our own time is used up"), False),
        (UnreachableError("reset"), True),
        (MalformedReplyError("it was billed"), False),
    ],
)
def test_only_what_the_provider_failed_on_is_repeated(error: ModelError, is_repeated: bool) -> None:
    assert (RequestRepeats(None).next_wait(error, 0.1) is not None) is is_repeated
