"""An agent at work until it is done or its time is up.

It works in a task of its own, so that its deadline cancels that task and no other. An agent that ignores the
cancellation is left behind. Knows nothing of what it works on or how that is scored.
"""

from __future__ import annotations

import asyncio

from proctor.contracts import Agent
from proctor.engine.desk import RecordedDesk, run_agent
from proctor.errors import AgentError
from proctor.support.deadlines import Deadline
from proctor.support.logs import log

_dismissed: set[asyncio.Task[str]] = set()
"""Held until they are done: asyncio keeps only weak references, and an unheld task may be collected."""


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
        """The agent's answer; raises what it raised."""
        if self.work.cancelled():
            raise AgentError(f"{self.agent.name} raised CancelledError although it was not cancelled")
        return self.work.result()

    async def dismiss(self) -> bool:
        """Cancel the agent and close its desk. Returns whether it stopped in time."""
        work = self.work
        self.desk.close()
        _dismissed.add(work)
        work.add_done_callback(ignore_result)
        work.cancel()
        await asyncio.wait({work}, timeout=self.leaving_seconds)
        if not work.done():
            log.warning(
                "%s did not stop within %g s of being cancelled and is left behind; make sure it re-raises "
                "CancelledError.",
                self.agent.name,
                self.leaving_seconds,
            )
        return work.done()

    def late_answer(self) -> str:
        """The answer of a dismissed agent, if it gave one."""
        work = self.work
        if not work.done() or work.cancelled() or work.exception() is not None:
            return ""
        return work.result()


def ignore_result(work: asyncio.Task[str]) -> None:
    """Whatever a dismissed agent raises no longer matters."""
    _dismissed.discard(work)
    if not work.cancelled():
        work.exception()
