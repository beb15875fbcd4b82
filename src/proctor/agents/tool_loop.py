"""The plain agent: ask the model, make its tool calls, and repeat until it answers without any.

Knows nothing of tasks, providers or of what the tools do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.config.endpoints import ModelPreference
from proctor.contracts import Desk
from proctor.errors import ConfigError, ContextTooLongError
from proctor.support.in_order import run_in_order
from proctor.trace import Message, Reply

TOOL_LOOP = "tool_loop"
MAX_STEPS = 10

CUT_OFF = "This call was cut off before it was complete, and was not made."
TOO_LATE = "This call was not made: no steps are left."

Call = Mapping[str, Any]


class ToolLoop:
    """Calls the model at most `max_steps` times per answer, and makes the tool calls of a reply in order;
    consecutive calls whose tools are all marked as parallel are made together.

    `model` and `provider` are its default model, unless the user names another.
    """

    def __init__(
        self,
        *,
        max_steps: int = MAX_STEPS,
        system_prompt: str | None = None,
        name: str = TOOL_LOOP,
        model: str | None = None,
        provider: str | None = None,
        client_type: str | None = None,
    ) -> None:
        if max_steps < 1:
            raise ConfigError(f"max_steps of {name} is {max_steps}; it must be at least 1.")
        self.name = name
        self.max_steps = max_steps
        self.system_prompt = system_prompt
        self.prefers = ModelPreference(model=model, provider=provider, client_type=client_type)

    async def __call__(self, desk: Desk) -> str:
        self._introduce(desk)
        answer = ""
        for step in range(1, self.max_steps + 1):
            try:
                reply = await desk.ask()
            except ContextTooLongError:
                desk.ended_by("prompt_too_long", truncated=True)
                return answer
            if not reply.tool_calls:
                return reply.text
            answer = reply.text or answer
            if step < self.max_steps:
                await make_calls(desk, reply)
        refuse_calls(desk, reply.tool_calls, TOO_LATE)
        desk.ended_by("max_steps", truncated=True)
        return answer

    def _introduce(self, desk: Desk) -> None:
        """Add the system prompt once: a task may have several turns."""
        message: Message = {"role": "system", "content": self.system_prompt}
        if self.system_prompt is not None and message not in desk.messages[:1]:
            desk.add(message)


async def make_calls(desk: Desk, reply: Reply) -> None:
    """Make the calls of a reply in their order; refuse those that truncation left incomplete."""
    complete = [call for call in reply.tool_calls if not reply.truncated or is_complete(call)]
    parallel = {tool.name for tool in desk.tools if tool.parallel}
    await run_in_order(complete, desk.use, lambda call: call.get("name") in parallel)
    refuse_calls(desk, [call for call in reply.tool_calls if call not in complete], CUT_OFF)


def is_complete(call: Call) -> bool:
    """Whether the arguments are a complete object; an empty text may be a truncated one."""
    try:
        return isinstance(msgspec.json.decode(call.get("arguments") or ""), dict)
    except msgspec.DecodeError:
        return False


def refuse_calls(desk: Desk, calls: Sequence[Call], why: str) -> None:
    """Answer calls that are not made: no provider continues a conversation with unanswered calls."""
    for call in calls:
        desk.add({"role": "tool", "tool_call_id": call.get("id") or "", "content": why})
