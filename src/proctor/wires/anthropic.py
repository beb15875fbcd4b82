"""The Anthropic messages API: a client's requests, a provider's replies, and what they used.

Thinking goes back to the provider as it came, with its signatures: this API refuses edited thoughts. Results
of tools are part of a user's turn here and messages of their own in the neutral shape. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from proctor.trace import Message, Reply, ToolSpec, Usage
from proctor.wires.codec import NOTHING, copy_if_present, encode_json
from proctor.wires.content import (
    INVALID_JSON,
    Part,
    ToolCall,
    arguments_of,
    assistant_message,
    image_of,
    is_bare_text,
    native_content,
    parts_of,
    tool_calls_of,
)
from proctor.wires.errors import ErrorInReplyError, UnusableReplyError

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


# The shape of replies


class ContentBlock(msgspec.Struct):
    """The fields of a block that the neutral message needs."""

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


class MeteredMessage(msgspec.Struct):
    """The part of a reply that is needed to meter it."""

    usage: AnthropicUsage | None = None


class MessageReply(MeteredMessage):
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


class MessageEvent(MeteredMessage):
    """The part of an event of a stream that is needed to meter it."""

    message: MeteredMessage | None = None


_decode_reply = msgspec.json.Decoder(MessageReply).decode
_decode_metered = msgspec.json.Decoder(MeteredMessage).decode
_decode_event = msgspec.json.Decoder(MessageEvent).decode


# A client's request


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def is_system(message: Message) -> bool:
    return message["role"] in ("system", "developer")


def encode_system(messages: Iterable[Message]) -> str | list[Part]:
    """All system messages, wherever they are: this API has one field for them."""
    parts = [part for message in messages if is_system(message) for part in parts_of(message.get("content"))]
    if all(map(is_bare_text, parts)):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def encode_turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """User and assistant in turn: neighbors of one side become one message."""
    every = [(side_of(message), encode_blocks(message)) for message in messages if not is_system(message)]
    kept = [(side, blocks) for side, blocks in every if blocks or side == "user"]
    return [
        {"role": side, "content": encode_turn(side, [block for _, blocks in turn for block in blocks])}
        for side, turn in groupby(kept, key=lambda each: each[0])
    ]


def side_of(message: Message) -> str:
    return "assistant" if message["role"] == "assistant" else "user"


def encode_turn(side: str, blocks: list[Part]) -> str | list[Part]:
    if side == "user":
        if not blocks:
            return ""
        blocks.sort(key=lambda block: block.get("type") != "tool_result")  # refused unless they come first
    if len(blocks) == 1 and is_bare_text(blocks[0]):
        text: str = blocks[0]["text"]
        return text
    return blocks


def encode_blocks(message: Message) -> list[Part]:
    if message["role"] == "assistant":
        native = native_content(message, CLIENT_TYPE, message_of)
        return list(native) if native is not None else assistant_blocks(message)
    blocks = [encode_block(part) for part in parts_of(message.get("content"))]
    return [encode_tool_result(message, blocks)] if message["role"] == "tool" else blocks


def assistant_blocks(message: Message) -> list[Part]:
    texts = [encode_block(part) for part in parts_of(message.get("content"))]
    return texts + [encode_tool_use(call) for call in tool_calls_of(message)]


def encode_block(part: Part) -> Part:
    image = image_of(part)
    if image is None:
        return part
    if image.data is None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def encode_tool_use(call: ToolCall) -> Part:
    arguments = arguments_of(call)
    if arguments is None:  # this API accepts only an object, so the text becomes part of one
        arguments = {INVALID_JSON: call.arguments}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def encode_tool_result(message: Message, blocks: Sequence[Part]) -> Part:
    content = message.get("content")
    return {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id"),
        "content": content if isinstance(content, str) else blocks,
    }


# A provider's reply


def decode_reply(content: bytes) -> Reply:
    body = _decode_reply(content)
    message = None if body.content is None else message_with_native(body.content)
    if error := copy_if_present(body.error):
        raise error_in_reply(error)
    if message is None:
        raise UnusableReplyError("answered without any content.")
    reason = body.stop_reason or "end_turn"
    return Reply(
        message,
        FINISH_REASONS.get(reason, reason),
        usage_of(body.usage),
        body.model,
        body.id,
    )


def message_with_native(content: list[dict[str, Any]]) -> Message:
    """The neutral message, with the provider's own content where it says more."""
    message = message_of(content)
    if [without_nulls(block) for block in content] != assistant_blocks(message):
        message["native"] = {"by": CLIENT_TYPE, "content": content}
    return message


def without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def message_of(content: Sequence[Part]) -> Message:
    blocks = msgspec.convert(content, list[ContentBlock])
    texts = [block.text for block in blocks if block.type == "text"]
    thoughts = [block.thinking for block in blocks if block.type == "thinking" and block.thinking]
    calls = [
        {"id": block.id, "name": block.name, "arguments": encode_json(block.input).decode()}
        for block in blocks
        if block.type == "tool_use"
    ]
    return assistant_message("".join(texts) if texts else None, "\n\n".join(thoughts) or None, calls)


def usage_of(body: AnthropicUsage | None) -> Usage:
    """The input in total: this API counts tokens read from its cache, or written to it, separately."""
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


def error_in_reply(error: msgspec.Raw) -> ErrorInReplyError:
    """An error that came with a status of success, as gateways send it."""
    body: Any = msgspec.json.decode(error)
    kind = body.get("type") if isinstance(body, Mapping) else None
    return ErrorInReplyError(STATUSES.get(str(kind), 500), bytes(error))


def reply_usage(content: bytes) -> Usage:
    return usage_of(_decode_metered(content).usage)


def event_usage(data: bytes, before: Usage) -> Usage:
    """The first event reports the input, the last one the output, and sometimes both again."""
    event = _decode_event(data)
    reported = event.usage
    if reported is None and event.message is not None:
        reported = event.message.usage
    if reported is None:
        return before
    now = usage_of(reported)
    return Usage(
        max(before.input_tokens, now.input_tokens),
        max(before.output_tokens, now.output_tokens),
        max(before.cached_tokens, now.cached_tokens),
        max(before.reasoning_tokens, now.reasoning_tokens),
    )
