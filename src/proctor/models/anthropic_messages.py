"""A client for the Anthropic messages API.

This API requires a limit of tokens: 4096 plus the room for thinking, unless the sampling sets `max_tokens`.
Other parameters are translated from OpenAI's names (`wires/anthropic_sampling.py`); unknown ones pass
unchanged.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.models.http_client import HttpClient
from proctor.models.http_model import HttpModel, StreamingRoute
from proctor.trace import Reply
from proctor.wires.anthropic import VERSION, decode_reply, encode_system, encode_tool, encode_turns
from proctor.wires.anthropic_sampling import encode_sampling
from proctor.wires.anthropic_stream import STREAM_PARAMETERS, MessagesAssembler

STREAMING = StreamingRoute(MessagesAssembler, STREAM_PARAMETERS)


class AnthropicMessages(HttpModel):
    """A model behind `POST {url}/v1/messages`; the URL may end in `/v1` or not."""

    expected = "a message"

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint = replace(endpoint, url=base_url(endpoint.url))
        http = HttpClient(endpoint, {"anthropic-version": VERSION}, key_header="x-api-key")
        super().__init__(endpoint, http)

    async def complete(self, request: Request) -> Reply:
        return await self.ask("/messages", self.body(request), request, decode_reply, STREAMING)

    def body(self, request: Request) -> dict[str, Any]:
        max_tokens, sampling = encode_sampling(request.sampling, self.endpoint.model)
        body: dict[str, Any] = {"model": self.endpoint.model, "max_tokens": max_tokens}
        if system := encode_system(request.messages):
            body["system"] = system
        body["messages"] = encode_turns(request.messages)
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        return {**body, **sampling}


def base_url(url: str) -> str:
    url = url.rstrip("/").removesuffix("/messages")
    return url if url.endswith("/v1") else f"{url}/v1"
