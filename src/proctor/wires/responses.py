"""The OpenAI responses API: both sides of it.

A turn of the assistant is a list of items here and one message in the neutral shape. Tools that only the
provider itself can run are left out of a program's request. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from proctor.trace import Content, Message, Reply, ToolSpec, Usage, text_of
from proctor.wires import chat
from proctor.wires.chat import NO_PARAMETERS, TokenDetails
from proctor.wires.codec import NOTHING, copy_if_present, encode_event, encode_json
from proctor.wires.content import (
    Part,
    ToolCall,
    arguments_of,
    as_content,
    as_result,
    assistant_message,
    image_of,
    image_part,
    native_content,
    parts_of,
    reply_calls,
    text_part,
    thoughts_of,
    tool_calls_of,
)
from proctor.wires.errors import ErrorInReplyError, Refusal, UnusableReplyError, malformed_error
from proctor.wires.wire import (
    STILL_WORKING,
    Answer,
    Body,
    ModelRequest,
    Wire,
    decode_as,
    drop_defaults,
    require_parts,
    require_text,
)

CLIENT_TYPE = "openai_responses"

Event = tuple[str, Body]
"""The type of an event, and its fields."""

FINISH_REASONS = {"max_output_tokens": "length"}
STATUSES = {"rate_limit_exceeded": 429, "context_length_exceeded": 400, "invalid_prompt": 400}
CALL_FIELDS = frozenset({"type", "call_id", "name", "arguments", "id", "status"})
MESSAGE_FIELDS = frozenset({"type", "role", "content", "id", "status"})
TEXT_FIELDS = frozenset({"type", "text", "annotations", "logprobs"})

FREEFORM_PARAMETERS = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
TEXT_TYPES = ("input_text", "output_text", "text")
CALL_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls, and the field that holds their arguments."""


# The shape of requests


class Reasoning(msgspec.Struct):
    effort: str | None = None


class TextSettings(msgspec.Struct):
    format: dict[str, Any] | None = None


class ResponsesRequest(msgspec.Struct):
    input: str | list[Part]
    instructions: str | None = None
    tools: list[Part] | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    top_logprobs: int | None = None
    tool_choice: str | dict[str, Any] | None = None
    reasoning: Reasoning | None = None
    text: TextSettings | None = None


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


# A program's request


def decode_request(content: bytes) -> ModelRequest:
    body = decode_as(content, ResponsesRequest)
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    messages = read_items(items)
    if not messages:
        raise malformed_error("input is empty.")
    system: list[Message] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    tools = flatten_tools(body.tools or ())
    return ModelRequest(
        messages=[*system, *messages],
        tools=[spec for index, tool in enumerate(tools) if (spec := read_tool(tool, f"tools[{index}]"))],
        sampling=sampling_of(body),
        stream=bool(body.stream),
        wants_thoughts=True,
        previous=body.previous_response_id,
        freeform=frozenset(str(tool.get("name")) for tool in tools if tool.get("type") == "custom"),
        groups={str(tool.get("name")): tool["group"] for tool in tools if "group" in tool},
    )


def sampling_of(body: ResponsesRequest) -> dict[str, Any]:
    return drop_defaults(
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=body.max_output_tokens,
        top_logprobs=body.top_logprobs or None,
        tool_choice=tool_choice_of(body.tool_choice),
        reasoning_effort=body.reasoning and body.reasoning.effort,
        response_format=format_of(body.text and body.text.format),
    )


def tool_choice_of(choice: Any) -> Any:
    match choice:
        case {"type": "function" | "custom", "name": name}:
            return {"type": "function", "function": {"name": name}}
        case str():
            return choice
    return None


def format_of(described: Any) -> Any:
    """The schema is beside the type here; the chat API nests it under `json_schema`."""
    match described:
        case {"type": "json_schema", **rest}:
            return {"type": "json_schema", "json_schema": rest}
    return described


def flatten_tools(tools: Sequence[Part]) -> list[Part]:
    """The tools one by one; a tool that came in a group carries the group's name."""
    flat: list[Part] = []
    for tool in tools:
        inner = tool.get("tools")
        if tool.get("type") == "namespace" and isinstance(inner, list):
            group = str(tool.get("name"))
            flat += [{**each, "group": group} for each in inner if isinstance(each, dict)]
        else:
            flat.append(tool)
    return flat


def read_tool(tool: Part, where: str) -> ToolSpec | None:
    kind = require_text(tool, "type", where)
    if kind not in ("function", "custom"):
        return None
    name, description = require_text(tool, "name", where), str(tool.get("description") or "")
    if kind == "custom":
        grammar = (tool.get("format") or {}).get("definition")
        described = f"{description}\n\n{grammar}" if grammar else description
        return ToolSpec(name, described, FREEFORM_PARAMETERS)
    return ToolSpec(name, description, tool.get("parameters") or NO_PARAMETERS)


def read_items(items: Sequence[Part]) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = item.get("type") or "message"
        if kind == "message" and item.get("role") != "assistant":
            messages.append(read_message(item, where))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call = require_text(item, "call_id", where)
            messages.append({"role": "tool", "tool_call_id": call, "content": read_result(item, where)})
        elif kind in ("message", "reasoning", *CALL_ARGUMENTS):
            add_to_turn(open_assistant_turn(messages), item, kind, where)
        else:
            raise malformed_error(f"{where} is of type {kind!r}, which this gateway does not accept.")
    return messages


def read_message(item: Part, where: str) -> Message:
    role = require_text(item, "role", where)
    if role not in ("user", "system", "developer"):
        raise malformed_error(f"{where}.role is {role!r}; it must be user, assistant, system or developer.")
    return {"role": "user" if role == "user" else "system", "content": as_content(read_parts(item, where))}


def open_assistant_turn(messages: list[Message]) -> Message:
    """The assistant's turn at the end of the conversation, or a new one."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def add_to_turn(turn: Message, item: Part, kind: str, where: str) -> None:
    if kind == "message":
        text = "".join(part.get("text", "") for part in read_parts(item, where))
        turn["content"] = f"{turn['content'] or ''}{text}" or None
    elif kind == "reasoning":
        parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
        thoughts = "\n\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if thoughts:
            turn["reasoning_content"] = thoughts
    else:
        arguments = require_text(item, CALL_ARGUMENTS[kind], where)
        if kind == "custom_tool_call":
            arguments = encode_json({"input": arguments}).decode()
        call = {"id": require_text(item, "call_id", where), "name": require_text(item, "name", where)}
        turn.setdefault("tool_calls", []).append({**call, "arguments": arguments})


def read_result(item: Part, where: str) -> Content:
    output = item.get("output")
    if isinstance(output, str):
        return output
    return as_result(read_parts({"content": output}, where))


def read_parts(item: Part, where: str) -> list[Part]:
    content = item.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    parts = require_parts(content, where, "parts")
    return [read_part(part, f"{where}.content[{index}]") for index, part in enumerate(parts)]


def read_part(part: Part, where: str) -> Part:
    kind = part.get("type")
    if kind in TEXT_TYPES:
        return text_part(require_text(part, "text", where))
    if kind == "refusal":
        return text_part(require_text(part, "refusal", where))
    if kind == "input_image":
        detail = part.get("detail")
        return image_part(require_text(part, "image_url", where), None if detail == "auto" else detail)
    raise malformed_error(f"{where} is of type {kind!r}; this gateway accepts texts, and images by URL.")


# The gateway's reply


def encode_reply(request: ModelRequest, answer: Answer) -> Body:
    reply = answer.reply
    is_cut, is_filtered = reply.truncated, reply.finish_reason == "content_filter"
    why = "max_output_tokens" if is_cut else "content_filter" if is_filtered else None
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.at,
        "status": "incomplete" if why else "completed",
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "output": encode_output(request, answer),
        "parallel_tool_calls": True,
        "previous_response_id": request.previous,
        "temperature": request.sampling.get("temperature"),
        "top_p": request.sampling.get("top_p"),
        "tool_choice": request.sampling.get("tool_choice", "auto"),
        "tools": [],
        "usage": encode_usage(reply.usage),
    }


def encode_output(request: ModelRequest, answer: Answer) -> list[Part]:
    reply, output = answer.reply, list[Part]()
    if thoughts := thoughts_of(reply.message):
        output.append(reasoning_item(answer.id, thoughts))
    if reply.text or not reply.tool_calls:
        output.append(text_item(answer.id, reply.text))
    for index, call in enumerate(reply_calls(reply)):
        output.append(encode_output_call(request, call, f"{answer.id}_{index}"))
    return output


def reasoning_item(answer_id: str, thoughts: str) -> Part:
    summary = [{"type": "summary_text", "text": thoughts}]
    return {"type": "reasoning", "id": f"rs_{answer_id}", "summary": summary}


def text_item(answer_id: str, text: str) -> Part:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    head = {"type": "message", "id": f"msg_{answer_id}", "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def encode_output_call(request: ModelRequest, call: ToolCall, own_id: str) -> Part:
    head = {"call_id": call.id, "name": call.name, "status": "completed"}
    if call.name in request.groups:
        head["namespace"] = request.groups[call.name]
    if call.name in request.freeform:
        text = (arguments_of(call) or {}).get("input", call.arguments)
        return {"type": "custom_tool_call", "id": f"ctc_{own_id}", **head, "input": str(text)}
    return {"type": "function_call", "id": f"fc_{own_id}", **head, "arguments": call.arguments}


def encode_usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def encode_stream(request: ModelRequest, body: Body) -> Iterator[bytes]:  # noqa: ARG001
    for number, (kind, data) in enumerate(response_events(body)):
        yield encode_event({"type": kind, "sequence_number": number, **data}, kind)


def response_events(body: Body) -> Iterator[Event]:
    yield from opening_events(body)
    for index, item in enumerate(body["output"]):
        yield from item_events(index, item)
    yield f"response.{body['status']}", {"response": body}


def opening_events(body: Body) -> Iterator[Event]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}


def item_events(index: int, item: Part) -> Iterator[Event]:
    yield from opening_item_events(index, item)
    if texts := texts_of(item):
        yield delta_event(index, item, texts[0]["text"])
    yield from closing_item_events(index, item)


def opening_item_events(index: int, item: Part) -> Iterator[Event]:
    at = {"output_index": index}
    yield "response.output_item.added", {**at, "item": empty_item(item)}
    for name, data in part_events(item, "added"):
        yield f"response.{name}", {**at, "item_id": item["id"], **data}


def delta_event(index: int, item: Part, text: str) -> Event:
    """More text of an item's only part."""
    where = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "reasoning":
        return "response.reasoning_summary_text.delta", {**where, "summary_index": 0, "delta": text}
    return "response.output_text.delta", {**where, "content_index": 0, "delta": text, "logprobs": []}


def closing_item_events(index: int, item: Part) -> Iterator[Event]:
    at = {"output_index": index}
    for name, data in part_events(item, "done"):
        yield f"response.{name}", {**at, "item_id": item["id"], **data}
    yield "response.output_item.done", {**at, "item": item}


def texts_of(item: Part) -> Sequence[Part]:
    parts: Sequence[Part] = item.get("content") or item.get("summary") or ()
    return parts


def empty_item(item: Part) -> Part:
    """An item as it begins."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
    begun = {name: empty.get(name, value) for name, value in item.items()}
    return {**begun, "status": "in_progress"} if "status" in item else begun


def part_events(item: Part, moment: Literal["added", "done"]) -> Iterator[Event]:
    """The events about an item's only part, before its text comes or when it is whole."""
    is_done = moment == "done"
    match item:
        case {"type": "message", "content": [part, *_]}:
            at = {"content_index": 0}
            if is_done:
                yield "output_text.done", {**at, "text": part["text"], "logprobs": []}
            yield f"content_part.{moment}", {**at, "part": part if is_done else {**part, "text": ""}}
        case {"type": "reasoning", "summary": [part, *_]}:
            at = {"summary_index": 0}
            if is_done:
                yield "reasoning_summary_text.done", {**at, "text": part["text"]}
            yield (
                f"reasoning_summary_part.{moment}",
                {**at, "part": part if is_done else {**part, "text": ""}},
            )
        case {"type": "function_call", "arguments": arguments} if is_done:
            yield "function_call_arguments.delta", {"delta": arguments}
            yield "function_call_arguments.done", {"arguments": arguments, "name": item["name"]}
        case {"type": "custom_tool_call", "input": text} if is_done:
            yield "custom_tool_call_input.delta", {"delta": text}
            yield "custom_tool_call_input.done", {"input": text}


def encode_broken_stream(refusal: Refusal) -> bytes:
    error = chat.encode_refusal(refusal)["error"]
    failed = {"object": "response", "status": "failed", "error": error, "output": []}
    return encode_event(
        {"type": "response.failed", "sequence_number": 0, "response": failed}, "response.failed"
    )


WIRE = Wire(
    client_type=CLIENT_TYPE,
    path="/responses",
    decode_request=decode_request,
    encode_reply=encode_reply,
    encode_stream=encode_stream,
    encode_refusal=chat.encode_refusal,
    encode_broken_stream=encode_broken_stream,
    keep_alive=STILL_WORKING,
    reply_usage=reply_usage,
    event_usage=event_usage,
    stream_ends=(b"event: response.completed", b"event: response.incomplete", b"event: response.failed"),
)
