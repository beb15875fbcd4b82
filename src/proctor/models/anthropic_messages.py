"""The Anthropic Messages API.

It demands a limit of tokens: 4096, on top of what thinking may take, unless the sampling says `max_tokens`.
Other parameters are translated from OpenAI's words (`anthropic_sampling.py`), unknown ones pass untouched.
Thinking goes back as it came, with its signatures: this API refuses thoughts that were touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, ModelError
from proctor.models.anthropic_sampling import encode_sampling
from proctor.models.http_client import UNREADABLE, HttpClient, error_for_status
from proctor.models.http_model import HttpModel
from proctor.models.openai_chat import NOTHING, copy_if_present
from proctor.models.parts import (
    Part,
    ToolCall,
    arguments_of,
    image_of,
    native_content,
    parts_of,
    tool_calls_of,
)
from proctor.trace import Message, Reply, ToolSpec, Usage

CLIENT_TYPE = "anthropic_messages"
VERSION = "2023-06-01"

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class ContentBlock(msgspec.Struct):
    """What the neutral message takes from a block of an answer."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    output_tokens_details: OutputDetails | None = None


class AnthropicReplyBody(msgspec.Struct):
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    usage: AnthropicUsage | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnthropicReplyBody).decode


class AnthropicMessages(HttpModel):
    """A model behind `POST {url}/v1/messages`, whether the URL names the `/v1` or not."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint = replace(endpoint, url=base_url(endpoint.url))
        http = HttpClient(endpoint, {"anthropic-version": VERSION}, key_header="x-api-key")
        super().__init__(endpoint, http)

    async def complete(self, request: Request) -> Reply:
        content = await self.http.post("/messages", _encode(self.body(request)), request.headers)
        return read_reply(content, self.endpoint)

    def body(self, request: Request) -> dict[str, Any]:
        max_tokens, sampling = encode_sampling(request.sampling, self.endpoint.model)
        body: dict[str, Any] = {"model": self.endpoint.model, "max_tokens": max_tokens}
        if system := system_of(request.messages):
            body["system"] = system
        body["messages"] = turns_of(request.messages)
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        return {**body, **sampling}


def base_url(url: str) -> str:
    url = url.rstrip("/").removesuffix("/messages")
    return url if url.endswith("/v1") else f"{url}/v1"


# What is asked


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def is_system(message: Message) -> bool:
    return message["role"] in ("system", "developer")


def system_of(messages: Iterable[Message]) -> str | list[Part]:
    """All system messages, wherever they stand: this API knows one place for them."""
    parts = [part for message in messages if is_system(message) for part in parts_of(message.get("content"))]
    if all(part.keys() == {"type", "text"} for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def turns_of(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """User and assistant in turn: neighbours of one side become one message."""
    spoken = [(side_of(message), blocks_of(message)) for message in messages if not is_system(message)]
    said = [(side, blocks) for side, blocks in spoken if blocks or side == "user"]
    return [
        {"role": side, "content": content_of(side, [block for _, blocks in turn for block in blocks])}
        for side, turn in groupby(said, key=lambda each: each[0])
    ]


def side_of(message: Message) -> str:
    return "assistant" if message["role"] == "assistant" else "user"


def content_of(side: str, blocks: list[Part]) -> str | list[Part]:
    if side == "user":
        if not blocks:
            return ""
        blocks.sort(key=lambda block: block.get("type") != "tool_result")  # refused unless they come first
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return blocks


def blocks_of(message: Message) -> list[Part]:
    if message["role"] == "assistant":
        native = native_content(message, CLIENT_TYPE, message_of)
        return list(native) if native is not None else assistant_blocks(message)
    blocks = [block_of(part) for part in parts_of(message.get("content"))]
    return [tool_result(message, blocks)] if message["role"] == "tool" else blocks


def assistant_blocks(message: Message) -> list[Part]:
    said = [block_of(part) for part in parts_of(message.get("content"))]
    return said + [tool_use(call) for call in tool_calls_of(message)]


def block_of(part: Part) -> Part:
    image = image_of(part)
    if image is None:
        return part
    if image.data is None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def tool_use(call: ToolCall) -> Part:
    arguments = arguments_of(call)
    if arguments is None:  # only an object may stand here, so the text becomes part of one
        arguments = {"INVALID_JSON": call.arguments}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def tool_result(message: Message, blocks: Sequence[Part]) -> Part:
    content = message.get("content")
    return {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id"),
        "content": content if isinstance(content, str) else blocks,
    }


# What is answered


def read_reply(content: bytes, endpoint: Endpoint) -> Reply:
    try:
        answered = _decode(content)
        message = None if answered.content is None else message_with_native(answered.content)
    except UNREADABLE as error:
        sample = content[:120].decode(errors="replace")
        raise MalformedReplyError(
            f"{endpoint.url} answered with what is no message ({error}): {sample!r}"
        ) from error
    if told := copy_if_present(answered.error):
        raise read_error(told, endpoint)
    if message is None:
        raise MalformedReplyError(f"{endpoint.url} answered without any content.")
    reason = answered.stop_reason or "end_turn"
    return Reply(
        message,
        FINISH_REASONS.get(reason, reason),
        usage_of(answered.usage),
        answered.model,
        answered.id,
    )


def message_with_native(content: list[dict[str, Any]]) -> Message:
    """The neutral message, and what it would lose."""
    message = message_of(content)
    if [without_nulls(block) for block in content] != assistant_blocks(message):
        message["native"] = {"by": CLIENT_TYPE, "content": content}
    return message


def without_nulls(block: Part) -> Part:
    return {name: value for name, value in block.items() if value is not None}


def message_of(content: Sequence[Part]) -> Message:
    blocks = msgspec.convert(content, list[ContentBlock])
    texts = [block.text for block in blocks if block.type == "text"]
    thoughts = [block.thinking for block in blocks if block.type == "thinking" and block.thinking]
    calls = [
        {"id": block.id, "name": block.name, "arguments": _encode(block.input).decode()}
        for block in blocks
        if block.type == "tool_use"
    ]
    message: Message = {"role": "assistant", "content": "".join(texts) if texts else None}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def usage_of(body: AnthropicUsage | None) -> Usage:
    """The input in total: this API counts what it read from its cache, or wrote to it, apart."""
    if body is None:
        return Usage()
    cached = body.cache_read_input_tokens or 0
    details = body.output_tokens_details
    return Usage(
        (body.input_tokens or 0) + cached + (body.cache_creation_input_tokens or 0),
        body.output_tokens or 0,
        cached,
        (details.thinking_tokens or 0) if details else 0,
    )


def read_error(error: msgspec.Raw, endpoint: Endpoint) -> ModelError:
    """An error that came as a success, as gateways send it."""
    body: Any = msgspec.json.decode(error)
    kind = body.get("type") if isinstance(body, Mapping) else None
    return error_for_status(STATUSES.get(str(kind), 500), bytes(error), {}, endpoint)
