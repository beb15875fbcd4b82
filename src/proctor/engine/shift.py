"""Shift: an agent at work until it is done, or until its time is up.

It works in a task of its own, so that the end of its time touches nobody else, whatever it does about it; one
that does not leave is left behind. Knows nothing of what it works on or what that is worth.
"""

from __future__ import annotations

import asyncio

from proctor.contracts import Agent
from proctor.engine.desk import RecordedDesk, run_agent
from proctor.errors import AgentError
from proctor.support.deadlines import Deadline
from proctor.support.logs import log

_dismissed: set[asyncio.Task[str]] = set()
"""Held until they are done: a task that nobody holds may be collected in the middle of its work."""


class AgentRun:
    """One agent at one desk."""

    __slots__ = ("agent", "clock", "desk", "leaving_seconds", "over", "work")

    def __init__(self, desk: RecordedDesk, agent: Agent, clock: Deadline, leaving_seconds: float) -> None:
        self.desk = desk
        self.agent = agent
        self.clock = clock
        self.leaving_seconds = leaving_seconds
        self.over: asyncio.Future[None] = clock.loop.create_future()
        self.work = clock.loop.create_task(self._work())

    async def is_done_in_time(self) -> bool:
        """Wait until the agent is done or its time is up; done in the same moment is in time."""
        self.clock.instead = self.end
        try:
            await self.over
        finally:
            self.clock.instead = None
        return self.work.done()

    async def _work(self) -> str:
        try:
            return await run_agent(self.desk, self.agent)
        finally:
            self.end()

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def answer(self) -> str:
        """What the agent answered; raises what it raised."""
        if self.work.cancelled():
            raise AgentError(f"{self.agent.name} raised CancelledError although nobody cancelled it")
        return self.work.result()

    async def dismiss(self) -> bool:
        """Have the agent leave, and whether it did. Nothing more is asked or used at its desk."""
        work = self.work
        self.desk.close()
        _dismissed.add(work)
        work.add_done_callback(ignore_result)
        work.cancel()
        await asyncio.wait({work}, timeout=self.leaving_seconds)
        if not work.done():
            log.warning(
                "%s did not stop within %g s after it was told to, and is left behind; let it pass on "
                "CancelledError.",
                self.agent.name,
                self.leaving_seconds,
            )
        return work.done()

    def late_answer(self) -> str:
        """What a dismissed agent answered all the same, if it did."""
        work = self.work
        if not work.done() or work.cancelled() or work.exception() is not None:
            return ""
        return work.result()


def ignore_result(work: asyncio.Task[str]) -> None:
    """Whatever a dismissed agent raises no longer matters."""
    _dismissed.discard(work)
    if not work.cancelled():
        work.exception()
