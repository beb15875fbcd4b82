"""A client for the Gemini API, `generateContent`, as Google serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import ModelError, RateLimitError
from proctor.models.http_client import HttpClient, error_for_status, key_error
from proctor.models.http_model import HttpModel, StreamingRoute
from proctor.trace import Reply
from proctor.wires.gemini import (
    decode_reply,
    encode_contents,
    encode_tool,
    failure_details,
    seconds_of,
    split_instruction,
)
from proctor.wires.gemini_sampling import encode_sampling
from proctor.wires.gemini_stream import GeminiAssembler

DEFAULT_URL = "https://generativelanguage.googleapis.com/v1beta"


class Gemini(HttpModel):
    """A model behind `POST {url}/models/{model}:generateContent`."""

    expected = "generated content"

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint = endpoint if endpoint.url else replace(endpoint, url=DEFAULT_URL)
        super().__init__(endpoint, HttpClient(endpoint, key_header="x-goog-api-key", failure=gemini_failure))
        resource = f"/{quote(resource_name(endpoint.model))}"
        self._path = f"{resource}:generateContent"
        self._streaming = StreamingRoute(GeminiAssembler, path=f"{resource}:streamGenerateContent?alt=sse")

    async def complete(self, request: Request) -> Reply:
        return await self.ask(self._path, self.body(request), request, decode_reply, self._streaming)

    def body(self, request: Request) -> dict[str, Any]:
        instruction, turns = split_instruction(request.messages)
        body: dict[str, Any] = {"contents": encode_contents(turns)}
        if instruction:
            body["systemInstruction"] = {"parts": instruction}
        config, beside = encode_sampling(request.sampling, self.endpoint.model)
        body.update(beside)
        if config:
            body["generationConfig"] = config
        if request.tools:
            declared = {"functionDeclarations": [encode_tool(tool) for tool in request.tools]}
            body["tools"] = [*body.get("tools", ()), declared]
        return body


def resource_name(model: str) -> str:
    """The model as the URL spells it: from a bare name, `models/…`, or a gateway's `google/…`."""
    name = model.removeprefix("google/")
    return name if "/" in name else f"models/{name}"


def gemini_failure(status: int, content: bytes, headers: Mapping[str, str], endpoint: Endpoint) -> ModelError:
    """The error that a response with this status means; Google explains more in the body's details."""
    details = failure_details(content)
    error = error_for_status(status, content, headers, endpoint)
    if any(detail.reason == "API_KEY_INVALID" for detail in details):
        return key_error(str(error), status, endpoint)
    if isinstance(error, RateLimitError) and error.retry_after_seconds is None:
        delays = [seconds_of(detail.retry_delay) for detail in details if detail.retry_delay]
        error.retry_after_seconds = next((delay for delay in delays if delay is not None), None)
    return error
