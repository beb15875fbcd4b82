"""Read the parts of a neutral message, for client types whose provider writes them in another shape.

Knows nothing of any provider, except that datasets bring tool calls and images in OpenAI's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.models.http_client import UNREADABLE
from proctor.trace import Message

Part = Mapping[str, Any]

READABLE = ("content", "reasoning_content", "tool_calls")
"""The fields of an assistant's message that an environment may edit."""


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


def tool_calls_of(message: Message) -> list[ToolCall]:
    return [read_tool_call(call, number) for number, call in enumerate(message.get("tool_calls") or ())]


def read_tool_call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = call.get("function", call)
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(call.get("id") or f"call_{number}", function["name"], text)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object; None if the text is none."""
    try:
        arguments = msgspec.json.decode(call.arguments)
    except UNREADABLE:
        return None
    return arguments if isinstance(arguments, dict) else None


def parts_of(content: str | Sequence[Part] | None) -> Iterator[Part]:
    """The parts of a content that say anything."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content or ():
        if part.get("type") != "text" or part.get("text"):
            yield part


def image_of(part: Part) -> Image | None:
    """The image that a part shows; None if it shows none, or in a way only its provider knows."""
    if part.get("type") != "image_url":
        return None
    shown = part.get("image_url")
    url = shown.get("url") if isinstance(shown, Mapping) else shown
    if not isinstance(url, str):
        return None
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(url, head[len("data:") :].partition(";")[0], data)
    return Image(url)


def native_content(
    message: Message, client_type: str, read: Callable[[Sequence[Part]], Message]
) -> Sequence[Part] | None:
    """What a provider wrote itself, if the message still says just that.

    An environment may have edited the message meanwhile: then the message counts.
    """
    native = message.get("native")
    if not native or native.get("by") != client_type:
        return None
    content: Sequence[Part] = native.get("content") or ()
    try:
        written = read(content)
    except msgspec.ValidationError:
        return None
    if any((written.get(field) or None) != (message.get(field) or None) for field in READABLE):
        return None
    return content
