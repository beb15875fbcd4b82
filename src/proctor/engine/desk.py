"""Desk: where an agent works on one rollout. Everything it says and does is recorded as it happens.

Knows nothing of which agent works there or how it is scored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from proctor.contracts import Agent, HttpEndpoint, HttpEndpointOpener, Seat, Toolbox, Workspace
from proctor.errors import AgentError, DeadlineError, RolloutError
from proctor.trace import Content, Message, Reply, ToolSpec

LATE_CALL_SECONDS = 1.0
"""A late call waits this long before it is rejected: an agent that keeps calling must not starve others."""


class RecordedDesk:
    """The engine's Desk. The trace is the conversation: whatever ends the agent, it is kept."""

    def __init__(
        self,
        seat: Seat,
        messages: Sequence[Message],
        toolbox: Toolbox | None,
        gateway: HttpEndpointOpener | None = None,
    ) -> None:
        self._seat = seat
        self._toolbox = toolbox
        self._gateway = gateway
        self._trace = trace = seat.trace
        self._is_closed = False
        if trace.prompt:
            trace.completion.extend(messages)
        else:
            trace.prompt = list(messages)

    @property
    def messages(self) -> list[Message]:
        return [*self._trace.prompt, *self._trace.completion]

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return () if self._toolbox is None else self._toolbox.tools

    @property
    def workspace(self) -> Workspace | None:
        return None if self._toolbox is None else self._toolbox.workspace

    async def ask(
        self, messages: Sequence[Message] | None = None, *, sampling: Mapping[str, Any] | None = None
    ) -> Reply:
        if self._is_closed:
            await reject_late_call()
        own = messages is None
        asked = self.messages if messages is None else messages
        reply = await self._seat.complete(asked, tools=self.tools, sampling=sampling)
        if own:
            self.add(reply.message)
            if reply.truncated:
                self._trace.truncated = True
        return reply

    async def use(self, call: Mapping[str, Any]) -> Message:
        if self._is_closed:
            await reject_late_call()
        name, completion = str(call.get("name") or ""), self._trace.completion
        message: Message = {"role": "tool", "tool_call_id": call.get("id") or "", "content": ""}
        completion.append(message)  # reserves its position: parallel calls end in any order
        try:
            message["content"] = await self._result(name, call.get("arguments") or "")
        except BaseException:
            completion[:] = [each for each in completion if each is not message]
            raise
        return message

    async def _result(self, name: str, arguments: str) -> Content:
        if self._toolbox is None:
            return f"There is no tool {name[:100]!r}; this task has no tools."
        return await self._toolbox.call(name, arguments)

    def add(self, message: Message) -> None:
        trace = self._trace
        if message.get("role") == "system":
            trace.prompt.insert(0, message)
        else:
            trace.completion.append(message)

    def door(self, *, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:
        if self._gateway is None:
            raise AgentError("this run has no gateway, so the model cannot be reached over HTTP")
        return self._gateway.open(self._seat, max_requests)

    def ended_by(self, reason: str, *, truncated: bool = False) -> None:
        trace = self._trace
        trace.stop_condition = reason
        trace.truncated = trace.truncated or truncated

    def close(self) -> None:
        """The agent's time is up: reject further model and tool calls."""
        self._is_closed = True


async def reject_late_call() -> None:
    await asyncio.sleep(LATE_CALL_SECONDS)
    raise DeadlineError("the agent's time is up")


async def run_agent(desk: RecordedDesk, agent: Agent) -> str:
    """Let an agent work. Whatever it raises itself becomes an AgentError."""
    try:
        answer: object = await agent(desk)
    except (RolloutError, asyncio.CancelledError):
        raise
    except GeneratorExit:
        raise
    except BaseException as error:  # also SystemExit, which would end the run
        said = f": {error}" if str(error) else ""
        raise AgentError(f"{agent.name} raised {type(error).__name__}{said}") from error
    if not isinstance(answer, str):
        raise AgentError(f"{agent.name} returned {type(answer).__name__}; an answer is text")
    return answer
