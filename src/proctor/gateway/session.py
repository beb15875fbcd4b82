"""One rollout's session: its program sends requests, the rollout's seat answers, the trace follows.

Knows nothing of HTTP or wires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from proctor.contracts import PieceListener, Seat, Traffic
from proctor.errors import ModelError
from proctor.gateway.conversation import Conversation, Memory
from proctor.gateway.failures import CLOSED, no_steps_left
from proctor.trace import Message, Reply
from proctor.wires.errors import GatewayRefusedError
from proctor.wires.wire import Answer, ModelRequest, blank_answer


class GatewaySession:
    """The requests with one key, for as long as it is valid."""

    def __init__(self, seat: Seat, model: str, max_requests: int | None) -> None:
        self.model = model
        self.traffic = Traffic()
        self._seat = seat
        self._max_requests = max_requests
        self._conversation = Conversation(seat.trace)
        self._memory = Memory()
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._is_closed = False
        self._is_cut = False
        """The last reply of the main conversation was cut off by its length."""

    async def complete(
        self, request: ModelRequest, blank: Answer | None = None, pieces: PieceListener | None = None
    ) -> Answer:
        """The model's answer. Raises ModelError if it fails, GatewayRefusedError if the session refuses.

        `blank` has its id, if that was sent already; `pieces` gets it as it is written.
        """
        self._admit()
        messages = self._memory.restore(request.messages, request.previous)
        conversation = self._conversation.add_request(messages, request.tools)
        try:
            reply = await self._complete(messages, request, pieces)
        except ModelError as error:
            self.traffic.failure = error
            if conversation is not None:
                self.traffic.main_failure = error
            raise
        self.traffic.answered += 1
        self.traffic.failure = None
        if self._conversation.add_reply(conversation, reply):
            self.traffic.main_failure = None
            self.traffic.last_text = reply.text or self.traffic.last_text
            self._is_cut = reply.truncated
        answer = msgspec.structs.replace(blank or blank_answer(self.model), reply=reply)
        self._memory.keep(f"resp_{answer.id}", messages, reply)
        return answer

    async def close(self) -> None:
        """Refuse further requests, and cancel those under way."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._is_cut:
            self._seat.trace.truncated = True

    def _admit(self) -> None:
        if self._is_closed:
            raise GatewayRefusedError(CLOSED)
        most = self._max_requests
        if most is not None and self.traffic.answered + len(self._tasks) >= most:
            self.traffic.refused = True
            self._seat.trace.stop_condition = "max_steps"
            self._seat.trace.truncated = True
            raise no_steps_left(most)

    async def _complete(
        self, messages: Sequence[Message], request: ModelRequest, pieces: PieceListener | None
    ) -> Reply:
        """Run in a task of its own: close() cancels it, and the program still receives the refusal."""
        task = asyncio.ensure_future(
            self._seat.complete(messages, tools=request.tools, sampling=request.sampling, pieces=pieces)
        )
        self._tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise GatewayRefusedError(CLOSED) from None
            raise
        finally:
            self._tasks.discard(task)
