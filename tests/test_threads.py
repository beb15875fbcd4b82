"""Threads for blocking code end with the pool that started them."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

from proctor.support.threads import Threads
from tests.waiting import SECONDS


def blocking_threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "proctor-blocking"}


async def fill(threads: Threads) -> None:
    await asyncio.gather(*(threads.run(lambda: time.sleep(0.02)) for _ in range(8)))


def wait_until_ended(started: set[threading.Thread]) -> None:
    for thread in started:
        thread.join(SECONDS)
    assert not [thread for thread in started if thread.is_alive()]


def test_threads_end_when_their_pool_is_gone() -> None:
    before = blocking_threads()
    threads = Threads()
    asyncio.run(fill(threads))
    started = blocking_threads() - before
    assert started
    del threads
    gc.collect()
    wait_until_ended(started)


def test_threads_of_an_earlier_loop_end_when_the_pool_is_used_in_another() -> None:
    before = blocking_threads()
    threads = Threads()
    asyncio.run(fill(threads))
    started = blocking_threads() - before
    asyncio.run(fill(threads))
    wait_until_ended(started)
    assert asyncio.run(threads.call(lambda: 7)) == 7


def test_a_thread_lets_go_of_a_job_before_its_caller_continues() -> None:
    class Job:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            time.sleep(0.05)
            happened.append("freed")

    async def run(threads: Threads) -> None:
        await threads.run(Job())
        happened.append("continued")

    happened: list[str] = []
    asyncio.run(run(Threads()))
    assert happened == ["freed", "continued"]
