from __future__ import annotations

import asyncio
import threading
import time

import pytest

from proctor.support.own_thread import run_in_own_thread


def test_a_coroutine_is_cancelled_with_its_caller() -> None:
    ended = threading.Event()

    async def wait_forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_in_own_thread(wait_forever), 0.1)

    asyncio.run(main())
    assert ended.is_set()


def test_a_function_that_does_not_stop_is_left_behind_at_once() -> None:
    release = threading.Event()

    async def main() -> float:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_in_own_thread(release.wait), 0.1)
        return time.monotonic() - started

    assert asyncio.run(main()) < 60
    release.set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("x")])
def test_whatever_it_raises_reaches_the_caller_and_nobody_else(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def main() -> BaseException:
        try:
            await run_in_own_thread(fail)
        except BaseException as raised:
            return raised
        raise AssertionError

    assert asyncio.run(main()) is error


@pytest.mark.parametrize("kind", [asyncio.CancelledError, StopIteration])
def test_exceptions_that_mean_something_to_a_loop_become_ordinary_ones(kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind

    async def main() -> None:
        with pytest.raises(RuntimeError, match=kind.__name__):
            await run_in_own_thread(fail)

    asyncio.run(main())
