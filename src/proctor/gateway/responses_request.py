"""Requests of the OpenAI responses API, read. Knows nothing of answers.

What a program says about its own turns comes as items; neighbours of one turn become one message. Tools that
only the provider itself can offer are left out: the model is not told of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.gateway.wire import (
    ModelRequest,
    Part,
    as_content,
    as_result,
    decode_request,
    drop_defaults,
    encode_json,
    image_part,
    malformed_error,
    require_text,
    text_part,
)
from proctor.trace import Content, Message, ToolSpec

FREEFORM_PARAMETERS = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
TEXTS = ("input_text", "output_text", "text")
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Kinds of calls, and where their arguments are."""


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


def read(content: bytes) -> ModelRequest:
    body = decode_request(content, ResponsesRequest)
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    said = messages_of(items)
    if not said:
        raise malformed_error("input is empty.")
    system: list[Message] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    tools = flatten_tools(body.tools or ())
    return ModelRequest(
        messages=[*system, *said],
        tools=[spec for place, tool in enumerate(tools) if (spec := tool_of(tool, f"tools[{place}]"))],
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
    """What stands beside the type here is nested under `json_schema` in the chat API."""
    match described:
        case {"type": "json_schema", **rest}:
            return {"type": "json_schema", "json_schema": rest}
    return described


# Tools


def flatten_tools(tools: Sequence[Part]) -> list[Part]:
    """Tools one by one; those that came in a group with its name."""
    listed: list[Part] = []
    for tool in tools:
        inner = tool.get("tools")
        if tool.get("type") == "namespace" and isinstance(inner, list):
            group = str(tool.get("name"))
            listed += [{**each, "group": group} for each in inner if isinstance(each, dict)]
        else:
            listed.append(tool)
    return listed


def tool_of(tool: Part, where: str) -> ToolSpec | None:
    kind = require_text(tool, "type", where)
    if kind not in ("function", "custom"):
        return None
    name, description = require_text(tool, "name", where), str(tool.get("description") or "")
    if kind == "custom":
        grammar = (tool.get("format") or {}).get("definition")
        described = f"{description}\n\n{grammar}" if grammar else description
        return ToolSpec(name, described, FREEFORM_PARAMETERS)
    parameters = tool.get("parameters") or {"type": "object", "properties": {}}
    return ToolSpec(name, description, parameters)


# Items


def messages_of(items: Sequence[Part]) -> list[Message]:
    messages: list[Message] = []
    for place, item in enumerate(items):
        where = f"input[{place}]"
        kind = item.get("type") or "message"
        if kind == "message" and item.get("role") != "assistant":
            messages.append(read_message(item, where))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call = require_text(item, "call_id", where)
            messages.append({"role": "tool", "tool_call_id": call, "content": result_of(item, where)})
        elif kind in ("message", "reasoning", *CALLS):
            add_to_turn(open_assistant_turn(messages), item, kind, where)
        else:
            raise malformed_error(f"{where} is of type {kind!r}, which cannot be read here.")
    return messages


def read_message(item: Part, where: str) -> Message:
    role = require_text(item, "role", where)
    if role not in ("user", "system", "developer"):
        raise malformed_error(f"{where}.role is {role!r}.")
    return {"role": "user" if role == "user" else "system", "content": as_content(parts_of(item, where))}


def open_assistant_turn(messages: list[Message]) -> Message:
    """The assistant's turn that goes on, or a new one."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def add_to_turn(turn: Message, item: Part, kind: str, where: str) -> None:
    if kind == "message":
        text = "".join(part.get("text", "") for part in parts_of(item, where))
        turn["content"] = f"{turn['content'] or ''}{text}" or None
    elif kind == "reasoning":
        told = [*(item.get("content") or ()), *(item.get("summary") or ())]
        thoughts = "\n\n".join(part["text"] for part in told if isinstance(part.get("text"), str))
        if thoughts:
            turn["reasoning_content"] = thoughts
    else:
        arguments = require_text(item, CALLS[kind], where)
        if kind == "custom_tool_call":
            arguments = encode_json({"input": arguments}).decode()
        call = {"id": require_text(item, "call_id", where), "name": require_text(item, "name", where)}
        turn.setdefault("tool_calls", []).append({**call, "arguments": arguments})


def result_of(item: Part, where: str) -> Content:
    output = item.get("output")
    if isinstance(output, str):
        return output
    return as_result(parts_of({"content": output}, where))


def parts_of(item: Part, where: str) -> list[Part]:
    content = item.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise malformed_error(f"{where}.content must be a text or a list of parts.")
    return [part_of(part, f"{where}.content[{place}]") for place, part in enumerate(content)]


def part_of(part: Part, where: str) -> Part:
    kind = part.get("type")
    if kind in TEXTS:
        return text_part(require_text(part, "text", where))
    if kind == "refusal":
        return text_part(require_text(part, "refusal", where))
    if kind == "input_image":
        detail = part.get("detail")
        return image_part(require_text(part, "image_url", where), None if detail == "auto" else detail)
    raise malformed_error(f"{where} is of type {kind!r}; texts and images by their URL can be read.")
