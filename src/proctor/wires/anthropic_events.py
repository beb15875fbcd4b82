"""The events of a messages API's stream: how an answer and its blocks begin, grow and end.

Knows nothing of HTTP, or of when an answer's text comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.wires.codec import encode_event, encode_json
from proctor.wires.content import Part
from proctor.wires.wire import Body


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
