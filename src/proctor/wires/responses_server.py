"""The OpenAI responses API as a server speaks it: programs' requests and the gateway's replies.

A turn of the assistant is a list of items here and one message in the neutral shape. Tools that only the
provider itself can run are left out of a program's request. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proctor.trace import Content, Message, ToolSpec, Usage
from proctor.wires.chat_server import NO_PARAMETERS, encode_refusal
from proctor.wires.codec import encode_event, encode_json
from proctor.wires.content import (
    Part,
    ToolCall,
    arguments_of,
    as_content,
    as_result,
    image_part,
    reply_calls,
    text_part,
    thoughts_of,
)
from proctor.wires.errors import Refusal, malformed_error
from proctor.wires.responses import CLIENT_TYPE, event_usage, reply_usage
from proctor.wires.responses_events import response_events
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


def encode_broken_stream(refusal: Refusal) -> bytes:
    error = encode_refusal(refusal)["error"]
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
    encode_refusal=encode_refusal,
    encode_broken_stream=encode_broken_stream,
    keep_alive=STILL_WORKING,
    reply_usage=reply_usage,
    event_usage=event_usage,
    stream_ends=(b"event: response.completed", b"event: response.incomplete", b"event: response.failed"),
)
