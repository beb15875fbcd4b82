"""The events of a responses API's stream: how an answer, its items and their texts begin, grow and end.

Knows nothing of HTTP, or of when an answer's text comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from proctor.wires.content import Part
from proctor.wires.wire import Body

Event = tuple[str, Body]
"""The type of an event, and its fields."""


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
