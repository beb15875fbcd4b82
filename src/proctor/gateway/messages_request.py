"""Requests of the Anthropic messages API, read. Knows nothing of answers.

Results of tools stand in a user's turn there, and are messages of their own here. Tools that only the
provider itself can offer are left out: the model is not told of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from proctor.gateway.wire import (
    Body,
    ModelRequest,
    Part,
    all_text,
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

TOOL_CHOICES = {"any": "required", "none": "none"}
LOW_BUDGET, MEDIUM_BUDGET = 4096, 16384
"""Tokens to think with that are still a low, and a medium effort."""
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1500


class AnthropicMessage(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[Part]


class AnthropicTool(msgspec.Struct):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    """None for tools that only the provider itself can offer."""


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


def read(content: bytes) -> ModelRequest:
    body = decode_request(content, MessagesRequest)
    if not body.messages:
        raise malformed_error("messages is empty.")
    turns = [
        message
        for place, turn in enumerate(body.messages)
        for message in messages_of(turn, f"messages[{place}]")
    ]
    return ModelRequest(
        messages=[*system_of(body.system), *turns],
        tools=[tool_of(tool) for tool in body.tools or () if tool.input_schema is not None],
        sampling=sampling_of(body),
        stream=bool(body.stream),
        wants_thoughts=body.thinking is not None and body.thinking.type != "disabled",
    )


def system_of(system: str | list[Part] | None) -> list[Message]:
    if not system:
        return []
    if not isinstance(system, str):
        texts = [require_text(part, "text", f"system[{place}]") for place, part in enumerate(system)]
        system = "\n\n".join(texts)
    return [{"role": "system", "content": system}]


def messages_of(turn: AnthropicMessage, where: str) -> list[Message]:
    if turn.role == "system":
        return system_of(turn.content)
    blocks = [text_part(turn.content)] if isinstance(turn.content, str) else turn.content
    if turn.role == "assistant":
        return [assistant_message(blocks, where)]
    results, said = [], []
    for place, block in enumerate(blocks):
        at = f"{where}.content[{place}]"
        if block.get("type") == "tool_result":
            call = require_text(block, "tool_use_id", at)
            results.append({"role": "tool", "tool_call_id": call, "content": result_of(block, at)})
        else:
            said.append(part_of(block, at))
    return results + ([{"role": "user", "content": as_content(said)}] if said or not results else [])


def assistant_message(blocks: Sequence[Part], where: str) -> Message:
    texts, thoughts, calls = [], [], []
    for place, block in enumerate(blocks):
        at = f"{where}.content[{place}]"
        kind = block.get("type")
        if kind == "text":
            texts.append(require_text(block, "text", at))
        elif kind == "thinking":
            thoughts.append(require_text(block, "thinking", at))
        elif kind == "tool_use":
            arguments = encode_json(block.get("input") or {}).decode()
            calls.append(
                {
                    "id": require_text(block, "id", at),
                    "name": require_text(block, "name", at),
                    "arguments": arguments,
                }
            )
        elif kind != "redacted_thinking":
            raise malformed_error(
                f"{at} is of type {kind!r}, which an assistant's turn has no place for here."
            )
    message: Message = {"role": "assistant", "content": "".join(texts) or None}
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def result_of(block: Part, where: str) -> Content:
    content = block.get("content") or ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise malformed_error(f"{where}.content must be a text or a list of blocks.")
    return as_result([part_of(part, f"{where}.content[{place}]") for place, part in enumerate(content)])


def part_of(block: Part, where: str) -> Part:
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
        f"{where} is of type {block.get('type')!r}; texts, images (base64 or url) and results can be read."
    )


def tool_of(tool: AnthropicTool) -> ToolSpec:
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


def count_tokens(asked: ModelRequest) -> Body:
    """An estimate: the tokenizer of whoever answers is not known here."""
    letters = sum(map(len, all_text(asked.messages)))
    letters += sum(len(encode_json(tool)) for tool in asked.tools)
    images = sum(
        part.get("type") == "image_url"
        for message in asked.messages
        if isinstance(message["content"], list)
        for part in message["content"]
    )
    return {"input_tokens": math.ceil(letters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE}
