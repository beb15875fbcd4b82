"""Neutral messages: their parts, images, thoughts and tool calls, read and written.

Knows nothing of any API, except that datasets bring tool calls and images in OpenAI's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.trace import Content, Message, Reply
from proctor.wires.codec import UNREADABLE, encode_json

Part = dict[str, Any]

EDITABLE_FIELDS = ("content", "reasoning_content", "tool_calls")
"""The fields of an assistant's message that an environment may edit."""

INVALID_JSON = "INVALID_JSON"
"""The field for arguments that are not a JSON object, in APIs that accept nothing but objects."""


class ToolCall(NamedTuple):
    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, valid or not."""


class Image(NamedTuple):
    url: str
    media_type: str | None = None
    data: str | None = None
    """Base64, when the image is in the message itself; then there is a media type too."""


# Writing


def text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def image_part(url: str, detail: str | None = None) -> Part:
    return {"type": "image_url", "image_url": {"url": url, "detail": detail} if detail else {"url": url}}


def as_content(parts: Sequence[Part]) -> Content:
    """A single text as a string, anything else as parts."""
    if not parts:
        return ""
    if len(parts) == 1 and is_bare_text(parts[0]):
        text: str = parts[0]["text"]
        return text
    return list(parts)


def as_result(parts: Sequence[Part]) -> Content:
    """The result of a tool: a string where there is only text, as most servers expect."""
    if all(map(is_bare_text, parts)):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


def assistant_message(
    content: Content | None, thoughts: str | None, calls: Sequence[Mapping[str, Any]]
) -> Message:
    message: Message = {"role": "assistant", "content": content}
    if thoughts is not None:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return message


# Reading


def is_bare_text(part: Mapping[str, Any]) -> bool:
    return part.keys() == {"type", "text"}


def tool_calls_of(message: Message) -> list[ToolCall]:
    return [read_tool_call(call, number) for number, call in enumerate(message.get("tool_calls") or ())]


def read_tool_call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = call.get("function", call)
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else encode_json(arguments).decode()
    return ToolCall(call.get("id") or f"call_{number}", function["name"], text)


def reply_calls(reply: Reply) -> list[ToolCall]:
    """A reply's calls exactly as they were made: the program will send them back."""
    return [ToolCall(call["id"], call["name"], call["arguments"]) for call in reply.tool_calls]


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object; None if the text is not a JSON object."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except UNREADABLE:
        return None
    return arguments if isinstance(arguments, dict) else None


def parts_of(content: str | Sequence[Part] | None) -> Iterator[Part]:
    """The parts of a content, without empty texts."""
    if isinstance(content, str):
        content = [text_part(content)]
    for part in content or ():
        if part.get("type") != "text" or part.get("text"):
            yield part


def image_of(part: Mapping[str, Any]) -> Image | None:
    """The image in a part; None for any other part, and for images in a provider's own shape."""
    if part.get("type") != "image_url":
        return None
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str):
        return None
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(url, head[len("data:") :].partition(";")[0], data)
    return Image(url)


def thoughts_of(message: Message) -> str:
    thoughts = message.get("reasoning_content") or message.get("reasoning") or ""
    return thoughts if isinstance(thoughts, str) else ""


def all_text(messages: Iterable[Message]) -> Iterator[str]:
    """Every text in the messages, to search or to measure."""
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            yield content
        else:
            yield from (part.get("text") or "" for part in content)
        for call in message.get("tool_calls") or ():
            yield call["arguments"]


def native_content(
    message: Message, client_type: str, read: Callable[[Sequence[Part]], Message]
) -> Sequence[Part] | None:
    """The content as its provider wrote it, if the message still says the same.

    An environment may have edited the message since; then the message counts, and this is None.
    """
    native = message.get("native")
    if not native or native.get("by") != client_type:
        return None
    content: Sequence[Part] = native.get("content") or ()
    try:
        written = read(content)
    except msgspec.ValidationError:
        return None
    if any((written.get(field) or None) != (message.get(field) or None) for field in EDITABLE_FIELDS):
        return None
    return content
