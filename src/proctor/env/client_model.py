"""A model behind a client of the OpenAI SDK, or behind any object with its `chat.completions.create`.

Rubrics that were given such a client ask it through the rollout's seat, so that the calls are recorded. Knows
nothing of rubrics.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from proctor.contracts import Request
from proctor.errors import (
    AuthError,
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.trace import Message, Reply, Usage

ERRORS: dict[str, type[ModelError]] = {
    "AuthenticationError": AuthError,
    "PermissionDeniedError": AuthError,
    "RateLimitError": RateLimitError,
    "APITimeoutError": ModelTimeoutError,
    "APIConnectionError": UnreachableError,
    "InternalServerError": OverloadedError,
    "BadRequestError": RequestRefusedError,
    "NotFoundError": RequestRefusedError,
    "UnprocessableEntityError": RequestRefusedError,
}
"""The SDK's exceptions by name, so that it need not be imported."""


class ClientModel:
    """A model that is called through a third-party client."""

    def __init__(self, client: Any, name: str) -> None:
        if not callable(getattr(getattr(getattr(client, "chat", None), "completions", None), "create", None)):
            raise TypeError(
                f"{type(client).__name__} has no chat.completions.create; give an AsyncOpenAI client"
            )
        self.client = client
        self.name = name

    async def check(self) -> None:
        """Whether it answers is seen when it is first asked."""

    async def complete(self, request: Request) -> Reply:
        create = self.client.chat.completions.create
        words = {"model": self.name, "messages": list(request.messages), **request.sampling}
        try:
            if inspect.iscoroutinefunction(create):
                answer = await create(**words)
            else:
                answer = await asyncio.to_thread(create, **words)
                answer = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            kind = ERRORS.get(type(error).__name__, ModelError)
            raise kind(f"{self.name}: {error}") from error
        return read_completion(answer, self.name)

    async def close(self) -> None:
        """The creator of the client closes it."""


def read_completion(answer: Any, name: str) -> Reply:
    """A chat completion, of the SDK's classes or as plain data."""
    try:
        choice = field(field(answer, "choices")[0], "message")
        message: Message = {"role": "assistant", "content": field(choice, "content")}
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise MalformedReplyError(
            f"{name} answered with {type(answer).__name__}, which holds no message"
        ) from error
    usage = field(answer, "usage", None)
    return Reply(
        message,
        finish_reason=str(field(field(answer, "choices")[0], "finish_reason", None) or "stop"),
        usage=Usage(
            int(field(usage, "prompt_tokens", 0) or 0), int(field(usage, "completion_tokens", 0) or 0)
        ),
        model=name,
    )


_REQUIRED = object()


def field(value: Any, name: str, default: Any = _REQUIRED) -> Any:
    if isinstance(value, Mapping):
        return value[name] if default is _REQUIRED else value.get(name, default)
    return getattr(value, name) if default is _REQUIRED else getattr(value, name, default)
