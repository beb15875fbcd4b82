"""What every wire has in common: a request read, a reply to be written, a refusal to be told.

A wire is a module that knows one API: how its requests are read, its answers and streams written, and how
it says no. Knows nothing of HTTP servers or rollouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from proctor.trace import Content, Message, Reply, ToolSpec

T = TypeVar("T")
Part = dict[str, Any]
Body = dict[str, Any]

_encode = msgspec.json.Encoder().encode

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading JSON may raise, whatever somebody sent."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program's request in neutral words."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    sampling: Mapping[str, Any] = {}
    """What the program set itself, in the words of the chat API."""
    stream: bool = False
    wants_usage: bool = True
    """Whether a stream is to end with the tokens it took."""
    wants_thoughts: bool = False
    previous: str | None = None
    """The id of an answer that this request goes on from."""
    freeform: frozenset[str] = frozenset()
    """Tools whose argument is any text instead of JSON."""
    groups: Mapping[str, str] = {}
    """The names of the groups that tools came in, by the names of the tools."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply, and under what name it goes out."""

    reply: Reply
    model: str
    id: str
    at: int
    """Seconds since 1970."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not answered."""

    status: int
    code: str
    message: str
    retry_after_seconds: float | None = None


class GatewayRefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Wire(Protocol):
    """One API."""

    def read(self, content: bytes) -> ModelRequest:
        """RefusedError names the field of a request that cannot be read."""

    def answer(self, asked: ModelRequest, told: Answer) -> Body: ...
    def events(self, asked: ModelRequest, body: Body) -> Iterator[bytes]:
        """The stream that comes to the same answer."""

    def refusal(self, why: Refusal) -> Body: ...
    def broken_off(self, why: Refusal) -> bytes:
        """The end of a stream that has begun, and cannot be answered."""

    @property
    def KEEP_ALIVE(self) -> bytes:  # noqa: N802
        """What says that the answer is still to come."""


# Reading


def malformed_error(message: str) -> GatewayRefusedError:
    return GatewayRefusedError(Refusal(400, "invalid_request", message))


def decode_request(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except UNREADABLE as error:
        raise malformed_error(f"The request cannot be read: {error}") from error


def text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def image_part(url: str, detail: str | None = None) -> Part:
    return {"type": "image_url", "image_url": {"url": url, "detail": detail} if detail else {"url": url}}


def require_text(part: Mapping[str, Any], field: str, where: str) -> str:
    """A text that a part must have."""
    value = part.get(field)
    if not isinstance(value, str):
        raise malformed_error(f"{where}.{field} must be a text.")
    return value


def as_content(parts: Sequence[Part]) -> Content:
    """One text as it is, whatever else as parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        text: str = parts[0]["text"]
        return text
    return list(parts)


def as_result(parts: Sequence[Part]) -> Content:
    """What a tool gave: most servers want text where there is nothing but text."""
    if all(part.keys() == {"type", "text"} for part in parts):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


def drop_defaults(**parameters: Any) -> dict[str, Any]:
    """The parameters that a program set to something that is not the default anyway."""
    dull: tuple[object, ...] = (None, "auto", {"type": "text"}, [])
    return {name: value for name, value in parameters.items() if value not in dull}


# Writing


def encode_json(value: object) -> bytes:
    return _encode(value)


def encode_event(data: object, event: str | None = None) -> bytes:
    """One event of a stream."""
    head = b"" if event is None else b"event: " + event.encode() + b"\n"
    return head + b"data: " + _encode(data) + b"\n\n"


def parse_arguments(arguments: str) -> dict[str, Any]:
    """A call's arguments where only an object may stand."""
    try:
        read = msgspec.json.decode(arguments or "{}")
    except UNREADABLE:
        read = None
    return read if isinstance(read, dict) else {"INVALID_JSON": arguments}


def thoughts_of(message: Message) -> str:
    thoughts = message.get("reasoning_content") or message.get("reasoning") or ""
    return thoughts if isinstance(thoughts, str) else ""


def all_text(messages: Iterable[Message]) -> Iterator[str]:
    """Every text in some messages, to search in or to measure."""
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            yield content
        else:
            yield from (part.get("text") or "" for part in content)
        for call in message.get("tool_calls") or ():
            yield call["arguments"]
