"""A seat on the environment's side of a channel: the driver of the rollout asks its models.

A judge with a model of its own is called from here; its calls are kept and sent with the grade.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from proctor.channel.frames import RemoteError
from proctor.channel.grades import decode_failure
from proctor.contracts import HttpEndpoint, Model, PieceListener, Request, Toolbox
from proctor.engine.limits import RequestRepeats
from proctor.errors import EnvError, Failure, ModelError
from proctor.trace import Message, ModelCall, Reply, ToolSpec, Trace
from proctor.wires.extra_body import merge_extra_body

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class RemoteSeat:
    """Implements Seat for a rollout that another process drives."""

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
        pieces: PieceListener | None = None,  # noqa: ARG002
    ) -> Reply:
        if model is not None:
            return await self._complete_here(model, messages, tools, merge_extra_body(sampling or {}), role)
        if self._ask is None:
            raise EnvError(
                "the client that plays this task offers no model; give the judge a model of its own"
            )
        params = {"messages": list(messages), "tools": list(tools), "sampling": sampling or {}, "role": role}
        try:
            return msgspec.convert(await self._ask("model.complete", params), Reply)
        except RemoteError as error:
            raise decode_failure(error, ModelError) from error
        except ConnectionError as error:
            raise ModelError("the client that would ask the model has disconnected") from error

    async def _complete_here(
        self,
        model: Model,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        sampling: dict[str, Any],
        role: str,
    ) -> Reply:
        repeats = RequestRepeats(None)
        while True:
            call = ModelCall(role, model.name, tuple(messages), sampling, time.time(), tools)
            self.trace.calls.append(call)
            started = time.perf_counter()
            try:
                call.reply = await model.complete(Request(tuple(messages), tools, sampling))
                return call.reply
            except ModelError as error:
                call.failure = Failure.of(error)
                wait = repeats.next_wait(error, time.perf_counter() - started)
                if wait is None:
                    raise
            finally:
                call.seconds = time.perf_counter() - started
            await asyncio.sleep(wait)

    def take_calls(self) -> list[Any]:
        """Remove and return the calls made from here, as plain data."""
        calls, self.trace.calls = self.trace.calls, []
        plain: list[Any] = msgspec.to_builtins(calls)
        return plain

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:  # noqa: ARG002
        raise EnvError("a served environment has no agent of its own")

    def open_endpoint(self, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:  # noqa: ARG002
        raise EnvError("a served environment cannot reach the model over HTTP")
