"""The Anthropic messages API as a server speaks it: programs' requests and the gateway's replies.

Results of tools are part of a user's turn here and messages of their own in the neutral shape. Tools that
only the provider itself can run are left out of a program's request. Knows nothing of HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from proctor.trace import Content, Message, ToolSpec
from proctor.wires.anthropic import CLIENT_TYPE, STATUSES, encode_tool_use, event_usage, reply_usage
from proctor.wires.anthropic_events import block_events, closing_events, encode_typed_event, opening_event
from proctor.wires.codec import encode_event, encode_json
from proctor.wires.content import (
    Part,
    all_text,
    as_content,
    as_result,
    assistant_message,
    image_part,
    reply_calls,
    text_part,
    thoughts_of,
)
from proctor.wires.errors import Refusal, malformed_error
from proctor.wires.wire import (
    Answer,
    Body,
    ModelRequest,
    Wire,
    decode_as,
    drop_defaults,
    require_parts,
    require_text,
)

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
ERROR_TYPES = {503: "overloaded_error", **{status: kind for kind, status in STATUSES.items()}}
TOOL_CHOICES = {"any": "required", "none": "none"}
LOW_BUDGET, MEDIUM_BUDGET = 4096, 16384
"""The largest thinking budgets that still count as low and as medium effort."""
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1500


# The shape of requests


class AnthropicMessage(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[Part]


class AnthropicTool(msgspec.Struct):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    """None for tools that only the provider itself can run."""


class ToolChoice(msgspec.Struct):
    type: str
    name: str | None = None


class Thinking(msgspec.Struct):
    type: str
    budget_tokens: int | None = None


class MessagesRequest(msgspec.Struct):
    messages: list[AnthropicMessage]
    system: str | list[Part] | None = None
    max_tokens: int | None = None
    tools: list[AnthropicTool] | None = None
    tool_choice: ToolChoice | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    thinking: Thinking | None = None
    output_config: dict[str, Any] | None = None


# A program's request


def decode_request(content: bytes) -> ModelRequest:
    body = decode_as(content, MessagesRequest)
    if not body.messages:
        raise malformed_error("messages is empty.")
    turns = [
        message
        for index, turn in enumerate(body.messages)
        for message in read_turn(turn, f"messages[{index}]")
    ]
    return ModelRequest(
        messages=[*read_system(body.system), *turns],
        tools=[read_tool(tool) for tool in body.tools or () if tool.input_schema is not None],
        sampling=sampling_of(body),
        stream=bool(body.stream),
        wants_thoughts=body.thinking is not None and body.thinking.type != "disabled",
    )


def read_system(system: str | list[Part] | None) -> list[Message]:
    if not system:
        return []
    if not isinstance(system, str):
        texts = [require_text(part, "text", f"system[{index}]") for index, part in enumerate(system)]
        system = "\n\n".join(texts)
    return [{"role": "system", "content": system}]


def read_turn(turn: AnthropicMessage, where: str) -> list[Message]:
    if turn.role == "system":
        return read_system(turn.content)
    blocks = [text_part(turn.content)] if isinstance(turn.content, str) else turn.content
    if turn.role == "assistant":
        return [read_assistant_turn(blocks, where)]
    results: list[Message] = []
    parts: list[Part] = []
    for index, block in enumerate(blocks):
        at = f"{where}.content[{index}]"
        if block.get("type") == "tool_result":
            call = require_text(block, "tool_use_id", at)
            results.append({"role": "tool", "tool_call_id": call, "content": read_result(block, at)})
        else:
            parts.append(read_block(block, at))
    return results + ([{"role": "user", "content": as_content(parts)}] if parts or not results else [])


def read_assistant_turn(blocks: Sequence[Part], where: str) -> Message:
    texts, thoughts, calls = [], [], []
    for index, block in enumerate(blocks):
        at = f"{where}.content[{index}]"
        kind = block.get("type")
        if kind == "text":
            texts.append(require_text(block, "text", at))
        elif kind == "thinking":
            thoughts.append(require_text(block, "thinking", at))
        elif kind == "tool_use":
            calls.append(
                {
                    "id": require_text(block, "id", at),
                    "name": require_text(block, "name", at),
                    "arguments": encode_json(block.get("input") or {}).decode(),
                }
            )
        elif kind != "redacted_thinking":
            raise malformed_error(
                f"{at} is of type {kind!r}, which this gateway does not accept in an assistant's turn."
            )
    return assistant_message("".join(texts) or None, "\n\n".join(thoughts) if any(thoughts) else None, calls)


def read_result(block: Part, where: str) -> Content:
    content = block.get("content") or ""
    if isinstance(content, str):
        return content
    blocks = require_parts(content, where, "blocks")
    return as_result([read_block(part, f"{where}.content[{index}]") for index, part in enumerate(blocks)])


def read_block(block: Part, where: str) -> Part:
    match block:
        case {"type": "text"}:
            return text_part(require_text(block, "text", where))
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return image_part(f"data:{kind};base64,{data}")
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return image_part(url)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text_part(text)
        case {"type": "tool_reference", "tool_name": str(name)}:
            return text_part(name)
    raise malformed_error(
        f"{where} is of type {block.get('type')!r}; this gateway accepts texts, images (base64 or url) "
        "and results of tools."
    )


def read_tool(tool: AnthropicTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description or "", tool.input_schema or {})


def sampling_of(body: MessagesRequest) -> dict[str, Any]:
    return drop_defaults(
        max_tokens=body.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=body.stop_sequences,
        tool_choice=tool_choice_of(body.tool_choice),
        reasoning_effort=effort_of(body.thinking, body.output_config or {}),
        response_format=format_of((body.output_config or {}).get("format")),
    )


def tool_choice_of(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.type == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    return TOOL_CHOICES.get(choice.type)


def effort_of(thinking: Thinking | None, output: dict[str, Any]) -> str | None:
    if thinking is None or thinking.type == "disabled":
        return None
    if isinstance(output.get("effort"), str):
        return str(output["effort"])
    budget = thinking.budget_tokens
    if budget is None:
        return None
    return "low" if budget <= LOW_BUDGET else "medium" if budget <= MEDIUM_BUDGET else "high"


def format_of(described: Any) -> Any:
    match described:
        case {"type": "json_schema", "schema": schema}:
            return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return None


def count_tokens(request: ModelRequest) -> Body:
    """An estimate: the gateway does not know the model's tokenizer."""
    letters = sum(map(len, all_text(request.messages)))
    letters += sum(len(encode_json(tool)) for tool in request.tools)
    images = sum(
        part.get("type") == "image_url"
        for message in request.messages
        if isinstance(message["content"], list)
        for part in message["content"]
    )
    return {"input_tokens": math.ceil(letters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE}


# The gateway's reply


def encode_reply(request: ModelRequest, answer: Answer) -> Body:
    reply = answer.reply
    content: list[Part] = []
    if request.wants_thoughts and (thoughts := thoughts_of(reply.message)):
        content.append({"type": "thinking", "thinking": thoughts, "signature": ""})
    if reply.text:
        content.append(text_part(reply.text))
    content += [encode_tool_use(call) for call in reply_calls(reply)]
    usage = reply.usage
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
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


def encode_stream(request: ModelRequest, body: Body) -> Iterator[bytes]:  # noqa: ARG001
    yield opening_event(body)
    for index, block in enumerate(body["content"]):
        yield from block_events(index, block)
    yield from closing_events(body)


def encode_refusal(refusal: Refusal) -> Body:
    fallback = "invalid_request_error" if refusal.status < 500 else "api_error"
    message = refusal.message
    if refusal.code == "context_length_exceeded":
        message = f"prompt is too long: {message}"  # programs look for these words
    return {
        "type": "error",
        "error": {"type": ERROR_TYPES.get(refusal.status, fallback), "message": message},
    }


def encode_broken_stream(refusal: Refusal) -> bytes:
    return encode_event(encode_refusal(refusal), "error")


WIRE = Wire(
    client_type=CLIENT_TYPE,
    path="/messages",
    decode_request=decode_request,
    encode_reply=encode_reply,
    encode_stream=encode_stream,
    encode_refusal=encode_refusal,
    encode_broken_stream=encode_broken_stream,
    keep_alive=encode_typed_event("ping"),
    reply_usage=reply_usage,
    event_usage=event_usage,
    stream_ends=(b"event: message_stop",),
    forwarded_headers=frozenset({b"anthropic-version", b"anthropic-beta"}),
)
