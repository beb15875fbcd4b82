"""What must be finished is, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from proctor.support.cancellation import create_or_undo, finish


def test_work_is_finished_before_the_cancellation_goes_on() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await may_end.wait()
            told.append("finished")

        async def wait_for_it() -> None:
            try:
                await finish(work())
            except asyncio.CancelledError:
                told.append("cancelled")
                raise

        waiting = asyncio.ensure_future(wait_for_it())
        await begun.wait()
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        return told

    assert asyncio.run(run()) == ["finished", "cancelled"]


def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(finish(work()))


def test_what_is_made_for_somebody_who_is_gone_is_unmade() -> None:
    async def run() -> list[str]:
        unmade: list[str] = []
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def work() -> str:
            begun.set()
            await may_end.wait()
            return "a sandbox"

        async def unmake(made: str) -> None:
            await asyncio.sleep(0)
            unmade.append(made)

        making = asyncio.ensure_future(create_or_undo(work(), unmake))
        await begun.wait()
        making.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait([making])
        assert making.cancelled()
        return unmade

    assert asyncio.run(run()) == ["a sandbox"]
