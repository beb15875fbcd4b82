"""A seat on the environment's side of a channel: its models are asked by whoever drives the rollout.

A judge of the environment's own is asked from here; what it said is kept, and told with the grade.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.channel.frames import RemoteError
from proctor.channel.grades import decode_failure
from proctor.contracts import Model, Request, Toolbox
from proctor.errors import EnvError, Failure, ModelError
from proctor.trace import Message, ModelCall, Reply, ToolSpec, Trace

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class RemoteSeat:
    """Implements the Seat of a rollout that is played from elsewhere."""

    def __init__(self, ask: Ask | None) -> None:
        self.trace = Trace()
        self.facts: Mapping[str, Any] = {}
        self._ask = ask

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        sampling: Mapping[str, Any] | None = None,
        role: str = "agent",
        model: Model | None = None,
    ) -> Reply:
        if model is not None:
            return await self._complete_here(model, messages, tools, dict(sampling or {}), role)
        if self._ask is None:
            raise EnvError("whoever plays this task offers no model; name a judge of the environment's own")
        params = {"messages": list(messages), "tools": list(tools), "sampling": sampling or {}, "role": role}
        try:
            return msgspec.convert(await self._ask("model.complete", params), Reply)
        except RemoteError as error:
            raise decode_failure(error, ModelError) from error
        except ConnectionError as error:
            raise ModelError("nobody is there any more to ask the model") from error

    async def _complete_here(
        self,
        model: Model,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        sampling: dict[str, Any],
        role: str,
    ) -> Reply:
        call = ModelCall(role, model.name, tuple(messages), sampling, time.time(), tools)
        self.trace.calls.append(call)
        started = time.perf_counter()
        try:
            call.reply = await model.complete(Request(tuple(messages), tools, sampling))
        except ModelError as error:
            call.failure = Failure.of(error)
            raise
        finally:
            call.seconds = time.perf_counter() - started
        return call.reply

    def take_calls(self) -> list[Any]:
        """The calls that were made from here, as plain data; each is told once."""
        calls, self.trace.calls = self.trace.calls, []
        told: list[Any] = msgspec.to_builtins(calls)
        return told

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:  # noqa: ARG002
        raise EnvError("an environment that is served has no agent of its own")
