"""A client for the OpenAI chat completions API. Unknown sampling parameters pass unchanged."""

from __future__ import annotations

from typing import Any

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.models.http_model import HttpModel, StreamingRoute
from proctor.trace import Reply
from proctor.wires.chat import decode_reply, encode_messages, encode_tool
from proctor.wires.chat_stream import STREAM_PARAMETERS, ChatAssembler

STREAMING = StreamingRoute(ChatAssembler, STREAM_PARAMETERS)


class OpenAIChat(HttpModel):
    """A model behind `POST {url}/chat/completions`."""

    expected = "a chat completion"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._max_tokens_name = (
            "max_completion_tokens" if "//api.openai.com" in endpoint.url else "max_tokens"
        )

    async def complete(self, request: Request) -> Reply:
        return await self.ask("/chat/completions", self.body(request), request, decode_reply, STREAMING)

    def body(self, request: Request) -> dict[str, Any]:
        sampling = dict(request.sampling)
        if "max_tokens" in sampling:
            sampling[self._max_tokens_name] = sampling.pop("max_tokens")
        body = {"model": self.endpoint.model, "messages": encode_messages(request.messages), **sampling}
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        return body
