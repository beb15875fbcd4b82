"""The OpenAI responses API: a client's requests, a provider's replies, and what they used.

A turn of the assistant is a list of items here and one message in the neutral shape. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.trace import Message, Reply, ToolSpec, Usage, text_of
from proctor.wires import chat
from proctor.wires.chat import TokenDetails
from proctor.wires.codec import NOTHING, copy_if_present, encode_json
from proctor.wires.content import (
    Part,
    ToolCall,
    assistant_message,
    image_of,
    native_content,
    parts_of,
    tool_calls_of,
)
from proctor.wires.errors import ErrorInReplyError, UnusableReplyError

CLIENT_TYPE = "openai_responses"

FINISH_REASONS = {"max_output_tokens": "length"}
STATUSES = {"rate_limit_exceeded": 429, "context_length_exceeded": 400, "invalid_prompt": 400}
CALL_FIELDS = frozenset({"type", "call_id", "name", "arguments", "id", "status"})
MESSAGE_FIELDS = frozenset({"type", "role", "content", "id", "status"})
TEXT_FIELDS = frozenset({"type", "text", "annotations", "logprobs"})


# The shape of replies


class ItemPart(msgspec.Struct):
    type: str
    text: str = ""
    refusal: str = ""
    logprobs: list[Any] | None = None


class ResponseItem(msgspec.Struct):
    """The fields of an item that the neutral message needs."""

    type: str
    content: list[ItemPart] | None = None
    summary: list[ItemPart] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class ResponsesUsage(msgspec.Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class IncompleteDetails(msgspec.Struct):
    reason: str | None = None


class MeteredResponse(msgspec.Struct):
    """The part of a reply that is needed to meter it."""

    usage: ResponsesUsage | None = None


class ResponseReply(MeteredResponse):
    output: list[dict[str, Any]] | None = None
    status: str | None = None
    incomplete_details: IncompleteDetails | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


class ResponseEvent(msgspec.Struct):
    """The part of an event of a stream that is needed to meter it."""

    response: MeteredResponse | None = None


_decode_reply = msgspec.json.Decoder(ResponseReply).decode
_decode_metered = msgspec.json.Decoder(MeteredResponse).decode
_decode_event = msgspec.json.Decoder(ResponseEvent).decode


# A client's request


def encode_sampling(sampling: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(sampling)
    if "max_tokens" in own:
        own["max_output_tokens"] = own.pop("max_tokens")
    if "reasoning_effort" in own:
        own["reasoning"] = {"effort": own.pop("reasoning_effort"), **(own.get("reasoning") or {})}
    wanted = own.pop("response_format", None)
    if wanted is not None:
        own["text"] = {"format": encode_format(wanted), **(own.get("text") or {})}
    choice = own.get("tool_choice")
    if isinstance(choice, Mapping) and "function" in choice:
        own["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    return own


def encode_format(wanted: Any) -> Any:
    """The chat API nests the schema under `json_schema`; here it is beside the type."""
    match wanted:
        case {"json_schema": {**described}, **rest}:
            return {**rest, **described}
    return wanted


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    # Strict is this API's default, and refuses schemas that the chat API takes.
    return {"type": "function", **chat.describe_function(tool), "strict": False}


def encode_items(messages: Iterable[Message]) -> list[Part]:
    return [item for message in messages for item in encode_message(message)]


def encode_message(message: Message) -> Sequence[Part]:
    role = message["role"]
    if role == "assistant":
        native = native_content(message, CLIENT_TYPE, message_of)
        return assistant_items(message) if native is None else list(drop_unsendable(native))
    content = encode_content(message)
    if role == "tool":
        call_id = message.get("tool_call_id")
        return [{"type": "function_call_output", "call_id": call_id, "output": content}]
    return [{"type": "message", "role": role, "content": content}]


def encode_content(message: Message) -> str | list[Part]:
    content = message.get("content") or ""
    return content if isinstance(content, str) else [encode_part(part) for part in parts_of(content)]


def encode_part(part: Part) -> Part:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part["text"]}
    image = image_of(part)
    if image is None:
        return part
    given = part["image_url"]
    detail = given.get("detail") if isinstance(given, Mapping) else None
    return {"type": "input_image", "image_url": image.url, "detail": detail or "auto"}


def assistant_items(message: Message) -> list[Part]:
    text = text_of(message)
    items: list[Part] = [{"type": "message", "role": "assistant", "content": text}] if text else []
    return items + [encode_call(call) for call in tool_calls_of(message)]


def encode_call(call: ToolCall) -> Part:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def drop_unsendable(items: Iterable[Part]) -> Iterator[Part]:
    """Leave out thoughts that came only as a summary: a server that stored nothing does not know them."""
    for item in items:
        if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content"):
            yield item


# A provider's reply


def decode_reply(content: bytes, max_tokens: int | None = None) -> Reply:
    body = _decode_reply(content)
    items = msgspec.convert(body.output or [], list[ResponseItem])
    if error := copy_if_present(body.error):
        raise error_in_reply(error)
    if body.output is None:
        raise UnusableReplyError("answered without any output.")
    if body.status not in (None, "completed", "incomplete"):
        raise UnusableReplyError(f"left its answer {body.status}.")
    usage = usage_of(body.usage)
    return Reply(
        message_with_native(body.output),
        "length" if is_silently_cut(body, usage, max_tokens) else finish_reason(body, items),
        usage,
        body.model,
        body.id,
        logprobs_of(items),
    )


def message_with_native(output: list[dict[str, Any]]) -> Message:
    """The neutral message, with the provider's own items where they say more."""
    message = message_of(output)
    if [simplify_item(item) for item in drop_unsendable(output)] != assistant_items(message):
        message["native"] = {"by": CLIENT_TYPE, "content": output}
    return message


def simplify_item(item: Part) -> Part:
    """An item as we would have written it, or unchanged if it says more than that."""
    fields = {name for name, value in item.items() if value is not None}
    if item.get("type") == "function_call" and fields <= CALL_FIELDS:
        return {name: item.get(name) for name in ("type", "call_id", "name", "arguments")}
    parts = item.get("content") or ()
    if item.get("type") == "message" and fields <= MESSAGE_FIELDS and all(map(is_plain_text, parts)):
        return {"type": "message", "role": "assistant", "content": "".join(part["text"] for part in parts)}
    return item


def is_plain_text(part: Part) -> bool:
    return part.get("type") == "output_text" and part.keys() <= TEXT_FIELDS and not part.get("annotations")


def message_of(output: Sequence[Part]) -> Message:
    items = msgspec.convert(output, list[ResponseItem])
    texts = [part.text or part.refusal for part in message_parts(items)]
    thoughts = [thought for item in items if (thought := thought_of(item))]
    calls = [
        {"id": item.call_id, "name": item.name, "arguments": item.arguments}
        for item in items
        if item.type == "function_call"
    ]
    return assistant_message("".join(texts) if texts else None, "\n\n".join(thoughts) or None, calls)


def message_parts(items: Iterable[ResponseItem]) -> Iterator[ItemPart]:
    for item in items:
        if item.type == "message":
            yield from item.content or ()


def thought_of(item: ResponseItem) -> str:
    """The text of a thought where the provider shows it, else its summary."""
    if item.type != "reasoning":
        return ""
    return "\n\n".join(part.text for part in item.content or item.summary or () if part.text)


def finish_reason(body: ResponseReply, items: Sequence[ResponseItem]) -> str:
    if any(part.type == "refusal" for part in message_parts(items)):
        return "content_filter"
    if body.status == "incomplete":
        reason = (body.incomplete_details and body.incomplete_details.reason) or "max_output_tokens"
        return FINISH_REASONS.get(reason, reason)
    return "tool_calls" if any(item.type == "function_call" for item in items) else "stop"


def is_silently_cut(body: ResponseReply, usage: Usage, max_tokens: int | None) -> bool:
    """Whether a server that never reports incomplete replies stopped at the limit (llama.cpp does)."""
    is_silent = body.incomplete_details is msgspec.UNSET and body.status != "incomplete"
    return is_silent and max_tokens is not None and usage.output_tokens >= max_tokens


def usage_of(body: ResponsesUsage | None) -> Usage:
    if body is None:
        return Usage()
    read, written = body.input_tokens_details, body.output_tokens_details
    return Usage(
        body.input_tokens or 0,
        body.output_tokens or 0,
        (read.cached_tokens or 0) if read else 0,
        (written.reasoning_tokens or 0) if written else 0,
    )


def logprobs_of(items: Iterable[ResponseItem]) -> msgspec.Raw | None:
    """In the shape of the chat API."""
    tokens = [token for part in message_parts(items) for token in part.logprobs or ()]
    return msgspec.Raw(encode_json({"content": tokens})) if tokens else None


def error_in_reply(error: msgspec.Raw) -> ErrorInReplyError:
    body: Any = msgspec.json.decode(error)
    status = STATUSES.get(str(body.get("code"))) if isinstance(body, Mapping) else None
    return chat.error_in_reply(error) if status is None else ErrorInReplyError(status, bytes(error))


def reply_usage(content: bytes) -> Usage:
    return usage_of(_decode_metered(content).usage)


def event_usage(data: bytes, before: Usage) -> Usage:
    response = _decode_event(data).response
    reported = None if response is None else response.usage
    return before if reported is None else usage_of(reported)
