"""Messages in OpenAI's shape, as several tools store them, in ours.

Tool calls may be objects or JSON text. Knows nothing of tools or files.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.formats.sources import decode_json, get_list
from proctor.trace import Message


def convert_conversation(value: Any, role: str) -> list[Message]:
    """A list of messages; text alone is one message of the given role."""
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value else []
    if not isinstance(value, list):
        return []
    return [convert_chat_message(each, role) for each in value]


def convert_chat_message(message: Any, role: str) -> Message:
    if not isinstance(message, dict):
        return {"role": role, "content": message if isinstance(message, str) else encode_text(message)}
    converted = {name: value for name, value in message.items() if value is not None}
    converted.setdefault("role", role)
    converted.setdefault("content", "")
    if calls := get_list(message, "tool_calls"):
        converted["tool_calls"] = [convert_chat_call(call) for call in calls]
    return converted


def convert_chat_call(call: Any) -> dict[str, Any]:
    if isinstance(call, str):
        try:
            call = decode_json(call.encode())
        except ValueError:
            return {"id": None, "name": call, "arguments": ""}
    if not isinstance(call, dict):
        return {"id": None, "name": str(call), "arguments": ""}
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    return {
        "id": call.get("id"),
        "name": str(named.get("name", "")),
        "arguments": encode_text(named.get("arguments", "")),
    }


def encode_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
