"""The embedded model: a small language model in this process, used like any other chat model."""

from __future__ import annotations

import asyncio
import logging
import sys

from msgspec.structs import replace

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import RequestRefusedError
from proctor.models.embedded import EmbeddedServer
from proctor.models.openai_chat import OpenAIChat
from proctor.support.logs import log
from proctor.trace import Reply

SLOTS = 4
CONTEXT_TOKENS = 2048


class Local:
    """SmolLM2-135M-Instruct, or the .gguf file that PROCTOR_LOCAL_MODEL names."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._server: EmbeddedServer | None = None
        self._chat: OpenAIChat | None = None
        self._starting = asyncio.Lock()

    @classmethod
    def at(cls, endpoint: Endpoint) -> Local:
        return cls(endpoint)

    @property
    def name(self) -> str:
        return self.endpoint.model

    async def check(self) -> None:
        """Start the server, which is all that can fail. Concurrent calls start one server."""
        async with self._starting:
            if self._server is None:
                self._server = await asyncio.to_thread(EmbeddedServer.start, SLOTS, CONTEXT_TOKENS, say=say)
                served = replace(self.endpoint, url=self._server.base_url, model=self._server.model)
                self._chat = OpenAIChat(served)

    async def complete(self, request: Request) -> Reply:
        if self._chat is None:
            await self.check()
        assert self._chat is not None
        return await self._chat.complete(with_tool_choice(request))

    async def close(self) -> None:
        if self._chat is not None:
            await self._chat.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
            self._server = self._chat = None


def with_tool_choice(request: Request) -> Request:
    """The request as the embedded server honors it: it cannot be made to call a tool, and says so."""
    choice = request.sampling.get("tool_choice")
    if choice in (None, "auto"):
        return request
    if choice != "none":
        raise RequestRefusedError(
            f"The local model cannot be made to call a tool, as tool_choice {choice!r} asks; "
            "use auto or none, or another model.",
            status=400,
        )
    sampling = {name: value for name, value in request.sampling.items() if name != "tool_choice"}
    return replace(request, tools=(), sampling=sampling)


def say(sentence: str) -> None:
    """Report progress: the first use downloads 93 MB."""
    if log.isEnabledFor(logging.INFO):
        log.info("%s", sentence)
    else:  # a script that has not asked for logs should still know why it waits
        sys.stderr.write(f"{sentence}\n")
