"""The Anthropic messages API, as a server. Knows nothing of HTTP or of who answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.gateway.messages_request import count_tokens as count_tokens
from proctor.gateway.messages_request import read as read
from proctor.gateway.wire import (
    Answer,
    Body,
    ModelRequest,
    Part,
    Refusal,
    encode_event,
    encode_json,
    parse_arguments,
    text_part,
    thoughts_of,
)

KEEP_ALIVE = encode_event({"type": "ping"}, "ping")

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def answer(asked: ModelRequest, told: Answer) -> Body:
    reply = told.reply
    content: list[Part] = []
    if asked.wants_thoughts and (thoughts := thoughts_of(reply.message)):
        content.append({"type": "thinking", "thinking": thoughts, "signature": ""})
    if reply.text:
        content.append(text_part(reply.text))
    content += [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["name"],
            "input": parse_arguments(call["arguments"]),
        }
        for call in reply.tool_calls
    ]
    usage = reply.usage
    return {
        "id": f"msg_{told.id}",
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": content,
        "stop_reason": STOP_REASONS.get(reply.finish_reason, "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": max(0, usage.input_tokens - usage.cached_tokens),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def events(asked: ModelRequest, body: Body) -> Iterator[bytes]:  # noqa: ARG001
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 0}}
    yield encode_typed_event("message_start", message=begun)
    for index, block in enumerate(body["content"]):
        empty, deltas = split_block(block)
        yield encode_typed_event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield encode_typed_event("content_block_delta", index=index, delta=delta)
        yield encode_typed_event("content_block_stop", index=index)
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield encode_typed_event("message_delta", delta=delta, usage=body["usage"])
    yield encode_typed_event("message_stop")


def split_block(block: Part) -> tuple[Part, list[Part]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "tool_use":
        whole = {"type": "input_json_delta", "partial_json": encode_json(block["input"]).decode()}
        return {**block, "input": {}}, [whole]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        return {**block, "thinking": ""}, [thought, {"type": "signature_delta", "signature": ""}]
    return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]


def encode_typed_event(kind: str, **data: Any) -> bytes:
    return encode_event({"type": kind, **data}, kind)


def refusal(why: Refusal) -> Body:
    fallback = "invalid_request_error" if why.status < 500 else "api_error"
    message = why.message
    if why.code == "context_length_exceeded":
        message = f"prompt is too long: {message}"  # programs look for these words
    return {
        "type": "error",
        "error": {"type": ERROR_TYPES.get(why.status, fallback), "message": message},
    }


def broken_off(why: Refusal) -> bytes:
    return encode_event(refusal(why), "error")
