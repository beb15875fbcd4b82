"""What has to be known of a wire to pass its answers on untouched: where requests go, and what they took.

Of a request only the model's name and whether it streams are read, of an answer only its usage. Knows
nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from proctor.gateway import chat_wire, messages_wire, responses_wire
from proctor.gateway.wire import Wire, malformed_error
from proctor.models import anthropic_messages, openai_chat, openai_responses
from proctor.models.http_client import UNREADABLE
from proctor.trace import Usage


class StreamUsageOptions(msgspec.Struct):
    include_usage: bool | None = None


class RequestHead(msgspec.Struct):
    """What is read of a request before it is passed on."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamUsageOptions | None = None


class ChatAnswer(msgspec.Struct):
    usage: openai_chat.ChatUsage | None = None
    choices: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing; an answer's choices are never decoded, for they may be millions."""
        return b"".join(bytes(self.choices)[:100].split()) in (b"[]", b"null")


class Refused(msgspec.Struct):
    error: msgspec.Raw = msgspec.Raw(b"null")


class ResponsesAnswer(msgspec.Struct):
    usage: openai_responses.ResponsesUsage | None = None


class ResponsesEvent(msgspec.Struct):
    response: ResponsesAnswer | None = None


class MessagesAnswer(msgspec.Struct):
    usage: anthropic_messages.AnthropicUsage | None = None


class MessagesEvent(msgspec.Struct):
    message: MessagesAnswer | None = None
    usage: anthropic_messages.AnthropicUsage | None = None


_refused = msgspec.json.Decoder(Refused).decode
_chat = msgspec.json.Decoder(ChatAnswer).decode
_responses = msgspec.json.Decoder(ResponsesAnswer).decode
_responses_event = msgspec.json.Decoder(ResponsesEvent).decode
_messages = msgspec.json.Decoder(MessagesAnswer).decode
_messages_event = msgspec.json.Decoder(MessagesEvent).decode


class NativeWire(msgspec.Struct, frozen=True, kw_only=True):
    """One wire, as its own provider speaks it."""

    wire: Wire
    client_type: str
    path: str
    usage: Callable[[bytes], Usage]
    """Of a whole answer."""
    event_usage: Callable[[bytes, Usage], Usage]
    """After one event of a stream that says something of it."""
    last: tuple[bytes, ...]
    """How the event is known that ends a stream."""
    passed: frozenset[bytes] = frozenset()
    """Headers of a client that its provider is to see."""


# Requests


def parse_head(body: Mapping[str, Any]) -> RequestHead:
    try:
        return msgspec.convert(body, RequestHead)
    except msgspec.ValidationError as error:
        raise malformed_error(f"The request cannot be read: {error}") from error


def hides_usage(native: NativeWire, head: RequestHead) -> bool:
    """Whether a stream must say what it took although its client did not ask for that."""
    asked = head.stream_options is not None and head.stream_options.include_usage
    return native is CHAT and bool(head.stream) and not asked


# Answers


def chat_usage(content: bytes) -> Usage:
    return openai_chat.usage_of(_chat(content).usage)


def responses_usage(content: bytes) -> Usage:
    return openai_responses.usage_of(_responses(content).usage)


def messages_usage(content: bytes) -> Usage:
    return anthropic_messages.usage_of(_messages(content).usage)


def chat_event_usage(data: bytes, before: Usage) -> Usage:
    told = _chat(data).usage
    return before if told is None else openai_chat.usage_of(told)


def responses_event_usage(data: bytes, before: Usage) -> Usage:
    response = _responses_event(data).response
    told = None if response is None else response.usage
    return before if told is None else openai_responses.usage_of(told)


def messages_event_usage(data: bytes, before: Usage) -> Usage:
    """The beginning tells what was read, the end what was written, and sometimes both again."""
    event = _messages_event(data)
    told = event.usage
    if told is None and event.message is not None:
        told = event.message.usage
    if told is None:
        return before
    now = anthropic_messages.usage_of(told)
    return Usage(
        max(before.input_tokens, now.input_tokens),
        max(before.output_tokens, now.output_tokens),
        max(before.cached_tokens, now.cached_tokens),
        max(before.reasoning_tokens, now.reasoning_tokens),
    )


CHAT = NativeWire(
    wire=cast(Wire, chat_wire),
    client_type="openai_chat_completions",
    path="/chat/completions",
    usage=chat_usage,
    event_usage=chat_event_usage,
    last=(b"data: [DONE]", b"data:[DONE]"),
)
RESPONSES = NativeWire(
    wire=cast(Wire, responses_wire),
    client_type=openai_responses.CLIENT_TYPE,
    path="/responses",
    usage=responses_usage,
    event_usage=responses_event_usage,
    last=(b"event: response.completed", b"event: response.incomplete", b"event: response.failed"),
)
MESSAGES = NativeWire(
    wire=cast(Wire, messages_wire),
    client_type=anthropic_messages.CLIENT_TYPE,
    path="/messages",
    usage=messages_usage,
    event_usage=messages_event_usage,
    last=(b"event: message_stop",),
    passed=frozenset({b"anthropic-version", b"anthropic-beta"}),
)


FAILED = b"event: response.failed"


class StreamTap:
    """A stream on its way through: whole events out, and what they say of its cost kept."""

    def __init__(self, native: NativeWire, hide_usage: bool) -> None:
        self.usage = Usage()
        self.is_told = False
        """Its provider said what it took."""
        self.is_whole = False
        """It came to its end."""
        self.events = 0
        self._native = native
        self._hide = hide_usage
        self._rest = bytearray()
        self._carriage_return = b""

    def feed(self, chunk: bytes) -> tuple[bytes, bytes]:
        """What can be passed on at once, and what ends the stream, which waits until it is booked.

        Only what is new is searched: an event that does not end would otherwise be read again with each byte.
        """
        chunk, self._carriage_return = self._carriage_return + chunk, b""
        if chunk.endswith(b"\r"):  # the line feed may come next
            chunk, self._carriage_return = chunk[:-1], b"\r"
        seen = max(0, len(self._rest) - 1)
        self._rest += chunk.replace(b"\r\n", b"\n")
        if self._rest.find(b"\n\n", seen) < 0:
            return b"", b""
        *whole, rest = bytes(self._rest).split(b"\n\n")
        self._rest = bytearray(rest)
        return self._read(whole)

    @property
    def waiting(self) -> int:
        """Bytes of an event that has begun."""
        return len(self._rest)

    def end(self) -> tuple[bytes, bytes]:
        """What is left when nothing more comes."""
        rest, self._rest = bytes(self._rest) + self._carriage_return, bytearray()
        left = self._read([rest]) if rest.strip() else (b"", b"")
        if self._native is CHAT and self.is_told:
            self.is_whole = True  # not every server says that it is done, but its usage comes last
        return left

    @property
    def is_metered(self) -> bool:
        """The stream came to its end and said what it took."""
        return self.is_told and self.is_whole

    @property
    def spent(self) -> Usage:
        """What was told; of a stream that broke off, or told nothing, a token for each event at least."""
        if self.is_metered:
            return self.usage
        return replace(self.usage, output_tokens=max(self.usage.output_tokens, self.events))

    def _read(self, events: list[bytes]) -> tuple[bytes, bytes]:
        now: list[bytes] = []
        for place, event in enumerate(events):
            if event.startswith(self._native.last):
                self._take(event)
                self.is_whole = not event.startswith(FAILED)
                held = b"".join(each + b"\n\n" for each in events[place:])
                return b"".join(now), held
            self.events += 1
            if not (b'"usage"' in event and self._take(event)):
                now.append(event + b"\n\n")
        return b"".join(now), b""

    def _take(self, event: bytes) -> bool:
        """Read what an event says of the usage; whether it is to be hidden."""
        data = event_data(event)
        if b'"usage"' not in data:
            return False
        try:
            usage = self._native.event_usage(data, self.usage)
            is_told = usage is not self.usage
            self.usage, self.is_told = usage, self.is_told or is_told
            return self._hide and is_told and _chat(data).is_empty
        except UNREADABLE:
            return False


def event_data(event: bytes) -> bytes:
    lines = event.split(b"\n")
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))


def has_error(content: bytes) -> bool:
    """Whether somebody sent an error in the shape that all wires share."""
    try:
        return bytes(_refused(content).error).startswith(b"{")
    except UNREADABLE:
        return False
