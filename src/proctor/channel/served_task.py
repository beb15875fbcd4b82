"""One task from its start to its grade, on the environment's side of a channel.

However many connections make the requests, all of it runs in one asyncio task: libraries with cancel scopes
must be exited in the task that entered them. Knows nothing of sessions or sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from proctor.channel.remote_seat import RemoteSeat
from proctor.env.rewards import Grade
from proctor.env.template_rollout import TemplateRollout
from proctor.errors import EnvError
from proctor.support.logs import log
from proctor.trace import Message

ENDING_SECONDS = 60.0
"""How long to wait for a template to end, including its cleanup."""

Step = Callable[[], Awaitable[Any]]
Report = Callable[[Any, BaseException | None], None]
"""Called with a step's result, or with the exception it raised."""


class ServedTask:
    """A started task. Steps run one at a time; the one that returns the grade or fails is the last."""

    def __init__(self, rollout: TemplateRollout, seat: RemoteSeat) -> None:
        self.rollout = rollout
        rollout.seat = self.seat = seat
        self.is_over = False
        self._is_ended = False
        """It was stopped from outside; further steps are not reported."""
        self._loop = asyncio.get_running_loop()
        self._next: tuple[Step, Report] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._task = self._loop.create_task(self._run())

    # Steps

    def begin(self, report: Report, after: ServedTask | None = None) -> None:
        """Run up to the prompt, once the task before it has ended."""
        if after is not None:
            after.stop()

        async def step() -> list[Message]:
            if after is not None:
                await after.end()
            return await self.rollout.begin()

        self._do(step, report)

    def reply(self, answer: str, report: Report) -> None:
        """Answer one of several turns: the next prompt, or the grade."""
        self._do(lambda: self.rollout.reply(answer), report)

    def grade(self, answer: str, report: Report) -> None:
        self._do(lambda: self.rollout.settle(answer), report)

    def _do(self, step: Step, report: Report) -> None:
        self._next = (step, report)
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def stop(self) -> None:
        """Give the task up, wherever it is, and report nothing more."""
        if not self._is_ended:
            self._is_ended = True
            if not self.is_over:  # otherwise it is closing, which must not be interrupted
                self._task.cancel()

    async def end(self) -> None:
        """Give the task up, and wait until its template is closed."""
        self.stop()
        if not self._task.done():
            await asyncio.wait({self._task}, timeout=ENDING_SECONDS)
        if not self._task.done():
            log.warning(
                "a template did not end within %g s of its cancellation; leaving it behind", ENDING_SECONDS
            )

    # The one asyncio task

    async def _run(self) -> None:
        try:
            while not (self.is_over or self._is_ended):  # a template may swallow a cancellation
                step, report = await self._wait_for_step()
                result, error = await self._attempt_step(step)
                self.is_over = error is not None or isinstance(result, Grade)
                if self.is_over:
                    await self._close()
                if not self._is_ended:
                    report(result, error)
        finally:
            if not self.is_over:
                await self._close()

    async def _wait_for_step(self) -> tuple[Step, Report]:
        while self._next is None:
            self._idle = self._loop.create_future()
            await self._idle
        step, self._next = self._next, None
        return step

    async def _attempt_step(self, step: Step) -> tuple[Any, BaseException | None]:
        try:
            return await step(), None
        except asyncio.CancelledError as error:
            if self._task.cancelling():
                raise
            stray = EnvError("the template raised CancelledError although it was not cancelled")
            stray.__cause__ = error
            return None, stray
        except BaseException as error:  # sys.exit() in a template ends its task, not the server
            return None, error

    async def _close(self) -> None:
        try:
            await self.rollout.close()
        except BaseException as error:  # the grade, if there is one, stands
            log.warning("closing a template failed: %s: %s", type(error).__name__, error)
