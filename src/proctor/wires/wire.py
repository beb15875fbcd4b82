"""One API as a server speaks it: a request decoded, a reply encoded, a refusal, a stream metered.

Knows nothing of HTTP servers or rollouts.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from proctor.trace import Message, Piece, Reply, ToolSpec, Usage
from proctor.wires.codec import UNREADABLE
from proctor.wires.content import Part
from proctor.wires.errors import Refusal, malformed_error

T = TypeVar("T")
Body = dict[str, Any]

STILL_WORKING = b": still at it\n\n"
"""A comment, which keeps a stream alive and which clients ignore."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program's request in the neutral shape."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    sampling: Mapping[str, Any] = {}
    """The parameters that the program set itself, under the chat API's names."""
    stream: bool = False
    wants_usage: bool = True
    """Whether a stream ends with its usage."""
    wants_thoughts: bool = False
    previous: str | None = None
    """The id of the answer that this request continues."""
    freeform: frozenset[str] = frozenset()
    """Tools that take free text instead of JSON."""
    groups: Mapping[str, str] = {}
    """The name of each tool's group, for tools that came in one."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply, with the model's name and the id that the program sees."""

    reply: Reply
    model: str
    id: str
    at: int
    """Seconds since 1970."""


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One API, as a server speaks it."""

    client_type: str
    """The client type that speaks the same API to a provider."""
    path: str
    decode_request: Callable[[bytes], ModelRequest]
    """Raises GatewayRefusedError, which names the field that cannot be read."""
    encode_reply: Callable[[ModelRequest, Answer], Body]
    encode_stream: Callable[[ModelRequest, Body], Iterator[bytes]]
    """The events that add up to the given reply."""
    encode_refusal: Callable[[Refusal], Body]
    encode_broken_stream: Callable[[Refusal], bytes]
    """How a stream ends that has begun and fails."""
    keep_alive: bytes
    """Sent while the answer takes its time."""
    reply_usage: Callable[[bytes], Usage]
    """The usage of a provider's complete reply."""
    event_usage: Callable[[bytes, Usage], Usage]
    """The usage so far, after one more event of a provider's stream that mentions usage."""
    stream_ends: tuple[bytes, ...]
    """How the last event of a stream begins."""
    forwarded_headers: frozenset[bytes] = frozenset()
    """Headers of a client's request that its provider must see."""


class StreamAssembler(Protocol):
    """Reads a provider's stream."""

    @property
    def is_whole(self) -> bool:
        """The stream ended."""

    def feed(self, event: bytes) -> Sequence[Piece]:
        """The pieces in one more event."""

    def whole(self) -> bytes:
        """The reply as the provider would have sent it without a stream."""


def blank_answer(model: str) -> Answer:
    """An answer before anything of it is known."""
    reply = Reply({"role": "assistant", "content": None})
    return Answer(reply=reply, model=model, id=secrets.token_hex(12), at=int(time.time()))


def rest_of(whole: str | None, sent: str) -> str:
    """What is left of a text of which the beginning was sent."""
    return (whole or "").removeprefix(sent) if (whole or "").startswith(sent) else ""


def decode_as(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except UNREADABLE as error:
        raise malformed_error(f"The request cannot be read: {error}") from error


def require_text(part: Mapping[str, Any], field: str, where: str) -> str:
    value = part.get(field)
    if not isinstance(value, str):
        raise malformed_error(f"{where}.{field} must be a text.")
    return value


def require_parts(content: object, where: str, kind: str) -> list[Part]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise malformed_error(f"{where}.content must be a text or a list of {kind}.")
    return content


def drop_defaults(**parameters: Any) -> dict[str, Any]:
    """The parameters that a program set to something other than the default."""
    defaults: tuple[object, ...] = (None, "auto", {"type": "text"}, [])
    return {name: value for name, value in parameters.items() if value not in defaults}
