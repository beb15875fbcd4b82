"""The Anthropic messages API: both sides of it.

Thinking goes back to the provider as it came, with its signatures: this API refuses edited thoughts. Results
of tools are part of a user's turn here and messages of their own in the neutral shape. Tools that only the
provider itself can run are left out of a program's request. Knows nothing of HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec

from proctor.trace import Content, Message, Reply, ToolSpec, Usage
from proctor.wires.codec import NOTHING, copy_if_present, encode_event, encode_json
from proctor.wires.content import (
    INVALID_JSON,
    Part,
    ToolCall,
    all_text,
    arguments_of,
    as_content,
    as_result,
    assistant_message,
    image_of,
    image_part,
    is_bare_text,
    native_content,
    parts_of,
    reply_calls,
    text_part,
    thoughts_of,
    tool_calls_of,
)
from proctor.wires.errors import ErrorInReplyError, Refusal, UnusableReplyError, malformed_error
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
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
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
    """User and assistant in turn: neighbours of one side become one message."""
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


def without_nulls(block: Part) -> Part:
    return {name: value for name, value in block.items() if value is not None}


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


def opening_event(body: Body) -> bytes:
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 0}}
    return encode_typed_event("message_start", message=begun)


def block_events(index: int, block: Part) -> Iterator[bytes]:
    empty, deltas = split_block(block)
    yield encode_typed_event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield encode_typed_event("content_block_delta", index=index, delta=delta)
    yield encode_typed_event("content_block_stop", index=index)


def closing_events(body: Body) -> Iterator[bytes]:
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield encode_typed_event("message_delta", delta=delta, usage=body["usage"])
    yield encode_typed_event("message_stop")


def split_block(block: Part) -> tuple[Part, list[Part]]:
    """A block as it begins, and the deltas that complete it."""
    if block["type"] == "tool_use":
        whole = {"type": "input_json_delta", "partial_json": encode_json(block["input"]).decode()}
        return {**block, "input": {}}, [whole]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        return {**block, "thinking": ""}, [thought, {"type": "signature_delta", "signature": ""}]
    return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]


def encode_typed_event(kind: str, **data: Any) -> bytes:
    return encode_event({"type": kind, **data}, kind)


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
