"""Inspect's messages in our shape: reasoning beside the text, tool arguments as JSON text.

Knows nothing of samples or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.formats.sources import get_list
from proctor.trace import Message

ATTACHMENT = "attachment://"
MOST_DEPTH = 60


def resolve_attachments(value: Any, attachments: Mapping[str, Any], depth: int = 0) -> Any:
    """The value with the texts that the log keeps once in place of the references to them."""
    if isinstance(value, str):
        return (
            attachments.get(value.removeprefix(ATTACHMENT), value) if value.startswith(ATTACHMENT) else value
        )
    if depth > MOST_DEPTH:
        return value
    if isinstance(value, list):
        return [resolve_attachments(item, attachments, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: resolve_attachments(item, attachments, depth + 1) for key, item in value.items()}
    return value


def convert_message(message: Any) -> Message:
    if not isinstance(message, dict):
        return {"role": "user", "content": str(message)}
    converted: Message = {"role": str(message.get("role", "user"))}
    content, reasoning = convert_content(message.get("content"))
    converted["content"] = content
    if reasoning:
        converted["reasoning_content"] = reasoning
    if calls := get_list(message, "tool_calls"):
        converted["tool_calls"] = [convert_tool_call(call) for call in calls if isinstance(call, dict)]
    if converted["role"] == "tool" and isinstance(message.get("tool_call_id"), str):
        converted["tool_call_id"] = message["tool_call_id"]
    error = message.get("error")
    if isinstance(error, dict) and not content:
        converted["content"] = str(error.get("message", ""))
    return converted


def convert_content(content: Any) -> tuple[Any, str]:
    """Text or parts, and the reasoning that Inspect keeps among the parts."""
    if not isinstance(content, list):
        return ("" if content is None else content), ""
    reasoning = [
        str(part.get("reasoning") or part.get("summary") or "")
        for part in content
        if isinstance(part, dict) and part.get("type") == "reasoning"
    ]
    parts = [convert_part(part) for part in content if not is_reasoning(part)]
    only_text = all(part.get("type") == "text" for part in parts)
    text = "".join(str(part.get("text", "")) for part in parts)
    return (text if only_text else parts), "\n".join(filter(None, reasoning))


def is_reasoning(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "reasoning"


def convert_part(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {"type": "text", "text": str(part)}
    if part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    if part.get("type") == "image" and isinstance(part.get("image"), str):
        return {"type": "image_url", "image_url": {"url": part["image"]}}
    return part


def convert_tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return {"id": call.get("id"), "name": str(call.get("function", "")), "arguments": text}
