"""One open door: the program behind it asks, the rollout's seat answers, and the trace keeps up.

Knows nothing of HTTP or wires.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence

from proctor.contracts import Seat, Traffic
from proctor.errors import ModelError
from proctor.gateway.conversation import Conversation, Memory
from proctor.gateway.failures import CLOSED, no_steps_left
from proctor.gateway.wire import Answer, GatewayRefusedError, ModelRequest
from proctor.trace import Message, Reply


class GatewaySession:
    """What is asked at one door, from its opening to its closing."""

    def __init__(self, seat: Seat, model: str, max_requests: int | None) -> None:
        self.model = model
        self.traffic = Traffic()
        self._seat = seat
        self._max_requests = max_requests
        self._conversation = Conversation(seat.trace)
        self._memory = Memory()
        self._asking: set[asyncio.Task[Reply]] = set()
        self._is_closed = False
        self._is_cut = False
        """The last reply of the main conversation was cut off by its length."""

    async def ask(self, asked: ModelRequest) -> Answer:
        """The model's answer; ModelError if it has none, RefusedError if it is not asked at all."""
        self._admit()
        messages = self._memory.restore(asked.messages, asked.previous)
        conversation = self._conversation.hear(messages, asked.tools)
        try:
            reply = await self._complete(messages, asked)
        except ModelError as error:
            self.traffic.failure = error
            if conversation is not None:
                self.traffic.main_failure = error
            raise
        self.traffic.answered += 1
        self.traffic.failure = None
        if self._conversation.told(conversation, reply):
            self.traffic.main_failure = None
            self.traffic.last_text = reply.text or self.traffic.last_text
            self._is_cut = reply.truncated
        answer = Answer(reply=reply, model=self.model, id=secrets.token_hex(12), at=int(time.time()))
        self._memory.keep(f"resp_{answer.id}", messages, reply)
        return answer

    async def close(self) -> None:
        """Let nobody in any more, and end what is still being asked."""
        self._is_closed = True
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        if self._is_cut:
            self._seat.trace.truncated = True

    def _admit(self) -> None:
        if self._is_closed:
            raise GatewayRefusedError(CLOSED)
        most = self._max_requests
        if most is not None and self.traffic.answered + len(self._asking) >= most:
            self.traffic.refused = True
            self._seat.trace.stop_condition = "max_steps"
            self._seat.trace.truncated = True
            raise no_steps_left(most)

    async def _complete(self, messages: Sequence[Message], asked: ModelRequest) -> Reply:
        """Ask in a task of its own, so that closing the door can end it and the program still hear why."""
        task = asyncio.ensure_future(
            self._seat.complete(messages, tools=asked.tools, sampling=asked.sampling)
        )
        self._asking.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise GatewayRefusedError(CLOSED) from None
            raise
        finally:
            self._asking.discard(task)
