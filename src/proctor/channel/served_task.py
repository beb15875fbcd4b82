"""One task from its start to its grade, on the environment's side of a channel.

Whoever asks, and on however many connections, all of it runs in one asyncio task: libraries with cancel
scopes want to be left where they were entered. Knows nothing of sessions or sockets.
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
"""How long the end of a template is waited for, cleanup and all."""

Step = Callable[[], Awaitable[Any]]
Tell = Callable[[Any, BaseException | None], None]
"""Hears what a step came to: its result, or what it raised."""


class ServedTask:
    """A started task. Steps are made one at a time; the one that gives the grade, or fails, is the last."""

    def __init__(self, rollout: TemplateRollout, seat: RemoteSeat) -> None:
        self.rollout = rollout
        rollout.seat = self.seat = seat
        self.is_over = False
        self._is_ended = False
        """Somebody else ended it, and wants to hear of no more steps."""
        self._loop = asyncio.get_running_loop()
        self._next: tuple[Step, Tell] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._task = self._loop.create_task(self._run())

    # Steps

    def begin(self, tell: Tell, after: ServedTask | None = None) -> None:
        """Run up to the prompt, once the one before it has ended."""
        if after is not None:
            after.stop()

        async def step() -> list[Message]:
            if after is not None:
                await after.end()
            return await self.rollout.begin()

        self._do(step, tell)

    def reply(self, answer: str, tell: Tell) -> None:
        """One turn of several: the next prompt, or the grade."""
        self._do(lambda: self.rollout.reply(answer), tell)

    def grade(self, answer: str, tell: Tell) -> None:
        self._do(lambda: self.rollout.settle(answer), tell)

    def _do(self, step: Step, tell: Tell) -> None:
        self._next = (step, tell)
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def stop(self) -> None:
        """Give the task up, wherever it is; nobody hears of it any more."""
        if not self._is_ended:
            self._is_ended = True
            if not self.is_over:  # else it is being closed, which is not to be disturbed
                self._task.cancel()

    async def end(self) -> None:
        """Give the task up, and wait until its template is closed."""
        self.stop()
        if not self._task.done():
            await asyncio.wait({self._task}, timeout=ENDING_SECONDS)
        if not self._task.done():
            log.warning("a template does not end although it was told to, and is left behind")

    # The one asyncio task

    async def _run(self) -> None:
        try:
            while not (self.is_over or self._is_ended):  # a template may take no cancel
                step, tell = await self._wait_for_step()
                result, error = await self._attempt_step(step)
                self.is_over = error is not None or isinstance(result, Grade)
                if self.is_over:
                    await self._close()
                if not self._is_ended:
                    tell(result, error)
        finally:
            if not self.is_over:
                await self._close()

    async def _wait_for_step(self) -> tuple[Step, Tell]:
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
            stray = EnvError("the template raised CancelledError although nobody cancelled it")
            stray.__cause__ = error
            return None, stray
        except BaseException as error:  # sys.exit() in a template ends its task, not the server
            return None, error

    async def _close(self) -> None:
        try:
            await self.rollout.close()
        except BaseException as error:  # the grade, if there is one, stands
            log.warning("closing a template failed: %s: %s", type(error).__name__, error)
