"""A client for the OpenAI responses API, without state on the server.

Thoughts come sealed where the model has any, and go back as they came. Unknown sampling parameters pass
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import RequestRefusedError
from proctor.models.http_model import HttpModel, StreamingRoute
from proctor.trace import Reply
from proctor.wires.responses import decode_reply, encode_items, encode_sampling, encode_tool
from proctor.wires.responses_stream import STREAM_PARAMETERS, ResponsesAssembler

STREAMING = StreamingRoute(ResponsesAssembler, STREAM_PARAMETERS)
SEALED_THOUGHTS = "reasoning.encrypted_content"


class OpenAIResponses(HttpModel):
    """A model behind `POST {url}/responses`."""

    expected = "a response object"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._seals_thoughts = True

    async def complete(self, request: Request) -> Reply:
        body = self.body(request)
        try:
            return await self._ask(body, request)
        except RequestRefusedError as error:
            if "include" in request.sampling or not refuses_sealing(error, body):
                raise
            self._seals_thoughts = False
            return await self._ask(self.body(request), request)

    async def _ask(self, body: Mapping[str, Any], request: Request) -> Reply:
        most = body.get("max_output_tokens")
        return await self.ask(
            "/responses", body, request, lambda content: decode_reply(content, most), STREAMING
        )

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.endpoint.model, "input": encode_items(request.messages)}
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        body["store"] = False
        if self._seals_thoughts:
            body["include"] = [SEALED_THOUGHTS]
        return {**body, **encode_sampling(request.sampling)}


def refuses_sealing(error: RequestRefusedError, body: Mapping[str, Any]) -> bool:
    """A model without reasoning refuses to seal its thoughts, and no list says which models reason."""
    return error.status == 400 and "include" in body and "encrypted content" in str(error).lower()
