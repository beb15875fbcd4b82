"""The OpenAI responses API, as a server. Knows nothing of HTTP or of who answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.gateway.chat_wire import refusal as refusal
from proctor.gateway.responses_request import read as read
from proctor.gateway.wire import (
    Answer,
    Body,
    ModelRequest,
    Part,
    Refusal,
    encode_event,
    parse_arguments,
    thoughts_of,
)
from proctor.trace import Usage

KEEP_ALIVE = b": still at it\n\n"


def answer(asked: ModelRequest, told: Answer) -> Body:
    reply = told.reply
    is_cut, is_filtered = reply.truncated, reply.finish_reason == "content_filter"
    why = "max_output_tokens" if is_cut else "content_filter" if is_filtered else None
    return {
        "id": f"resp_{told.id}",
        "object": "response",
        "created_at": told.at,
        "status": "incomplete" if why else "completed",
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": None,
        "metadata": {},
        "model": told.model,
        "output": encode_output(asked, told),
        "parallel_tool_calls": True,
        "previous_response_id": asked.previous,
        "temperature": asked.sampling.get("temperature"),
        "top_p": asked.sampling.get("top_p"),
        "tool_choice": asked.sampling.get("tool_choice", "auto"),
        "tools": [],
        "usage": encode_usage(reply.usage),
    }


def encode_output(asked: ModelRequest, told: Answer) -> list[Part]:
    reply, output = told.reply, list[Part]()
    if thoughts := thoughts_of(reply.message):
        summary = [{"type": "summary_text", "text": thoughts}]
        output.append({"type": "reasoning", "id": f"rs_{told.id}", "summary": summary})
    if reply.text or not reply.tool_calls:
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        said = {"type": "message", "id": f"msg_{told.id}", "role": "assistant", "status": "completed"}
        output.append({**said, "content": [text]})
    for place, call in enumerate(reply.tool_calls):
        output.append(encode_call(asked, call, f"{told.id}_{place}"))
    return output


def encode_call(asked: ModelRequest, call: Part, own: str) -> Part:
    head = {"call_id": call["id"], "name": call["name"], "status": "completed"}
    if call["name"] in asked.groups:
        head["namespace"] = asked.groups[call["name"]]
    if call["name"] in asked.freeform:
        text = parse_arguments(call["arguments"]).get("input", call["arguments"])
        return {"type": "custom_tool_call", "id": f"ctc_{own}", **head, "input": str(text)}
    return {"type": "function_call", "id": f"fc_{own}", **head, "arguments": call["arguments"]}


def encode_usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


# Streams


def events(asked: ModelRequest, body: Body) -> Iterator[bytes]:  # noqa: ARG001
    for number, (kind, data) in enumerate(response_events(body)):
        yield encode_event({"type": kind, "sequence_number": number, **data}, kind)


def response_events(body: Body) -> Iterator[tuple[str, Body]]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for place, item in enumerate(body["output"]):
        yield from item_events(place, item)
    yield f"response.{body['status']}", {"response": body}


def item_events(place: int, item: Part) -> Iterator[tuple[str, Body]]:
    at = {"output_index": place}
    yield "response.output_item.added", {**at, "item": empty_item(item)}
    for kind, data in part_events(item):
        yield f"response.{kind}", {**at, "item_id": item["id"], **data}
    yield "response.output_item.done", {**at, "item": item}


def empty_item(item: Part) -> Part:
    """An item as it begins."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
    begun = {name: empty.get(name, value) for name, value in item.items()}
    return {**begun, "status": "in_progress"} if "status" in item else begun


def part_events(item: Part) -> Iterator[tuple[str, Body]]:
    match item:
        case {"type": "message", "content": parts}:
            for index, part in enumerate(parts):
                at = {"content_index": index}
                yield "content_part.added", {**at, "part": {**part, "text": ""}}
                yield "output_text.delta", {**at, "delta": part["text"], "logprobs": []}
                yield "output_text.done", {**at, "text": part["text"], "logprobs": []}
                yield "content_part.done", {**at, "part": part}
        case {"type": "reasoning", "summary": parts}:
            for index, part in enumerate(parts):
                at = {"summary_index": index}
                yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
                yield "reasoning_summary_text.delta", {**at, "delta": part["text"]}
                yield "reasoning_summary_text.done", {**at, "text": part["text"]}
                yield "reasoning_summary_part.done", {**at, "part": part}
        case {"type": "function_call", "arguments": arguments}:
            yield "function_call_arguments.delta", {"delta": arguments}
            yield "function_call_arguments.done", {"arguments": arguments, "name": item["name"]}
        case {"type": "custom_tool_call", "input": text}:
            yield "custom_tool_call_input.delta", {"delta": text}
            yield "custom_tool_call_input.done", {"input": text}


def broken_off(why: Refusal) -> bytes:
    error = refusal(why)["error"]
    failed = {"object": "response", "status": "failed", "error": error, "output": []}
    return encode_event(
        {"type": "response.failed", "sequence_number": 0, "response": failed}, "response.failed"
    )
