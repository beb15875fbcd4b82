"""The OpenAI responses API as a stream: read from a provider in pieces, and written by the gateway.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.trace import Piece
from proctor.wires.codec import NOTHING, encode_event, encode_json, event_data
from proctor.wires.content import Part
from proctor.wires.responses_events import (
    Event,
    closing_item_events,
    delta_event,
    item_events,
    opening_events,
    opening_item_events,
    texts_of,
)
from proctor.wires.responses_server import encode_reply, reasoning_item, text_item
from proctor.wires.wire import Answer, ModelRequest, rest_of

STREAM_PARAMETERS = {"stream": True}
ENDS = ("response.completed", "response.incomplete", "response.failed")
PIECES = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_text.delta": "thought",
    "response.reasoning_summary_text.delta": "thought",
}


class ResponseStreamEvent(msgspec.Struct):
    type: str = ""
    delta: Any = None
    response: msgspec.Raw = NOTHING
    code: str | None = None
    message: str | None = None


_decode_event = msgspec.json.Decoder(ResponseStreamEvent).decode


class ResponsesAssembler:
    """Reads a provider's stream; its last event holds the reply that would have come without one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._body = b""

    def feed(self, event: bytes) -> Sequence[Piece]:
        data = event_data(event)
        if not data or data == b"[DONE]":
            return ()
        read = _decode_event(data)
        if read.type in ENDS:
            self._body, self.is_whole = bytes(read.response), True
        elif read.type == "error":
            error = {"code": read.code, "message": read.message}
            self._body, self.is_whole = encode_json({"error": error}), True
        elif (kind := PIECES.get(read.type)) and isinstance(read.delta, str) and read.delta:
            return [Piece("text" if kind == "text" else "thought", read.delta)]
        return ()

    def whole(self) -> bytes:
        return self._body


class ResponsesStreamEncoder:
    """Writes an answer as it comes. Thoughts after the first text are part of the whole reply only."""

    def __init__(self, request: ModelRequest, blank: Answer) -> None:
        self._request = request
        self._blank = blank
        self._number = 0
        self._items: list[Part] = []
        """The items sent so far; the last one is still being written."""
        self._text = ""
        """Of the last one."""

    def add(self, piece: Piece) -> bytes:
        is_text = piece.kind == "text"
        events: list[Event] = []
        if not self._items:
            events += opening_events(encode_reply(self._request, self._blank))
        elif not is_text and self._items[-1]["type"] == "message":
            return b""
        item = (text_item if is_text else reasoning_item)(self._blank.id, "")
        if not self._items or self._items[-1]["type"] != item["type"]:
            if self._items:
                events += self._close(reasoning_item(self._blank.id, self._text))
            events += opening_item_events(len(self._items), item)
            self._items.append(item)
            self._text = ""
        self._text += piece.text
        events.append(delta_event(len(self._items) - 1, item, piece.text))
        return self._encode(events)

    def end(self, answer: Answer) -> bytes:
        """The rest of the answer, and the end of the stream."""
        body = encode_reply(self._request, answer)
        sent = {item["id"] for item in self._items}
        events: list[Event] = [] if self._items else list(opening_events(body))
        for item in body["output"]:
            if self._items and item["id"] == self._items[-1]["id"]:
                if rest := rest_of(texts_of(item)[0]["text"], self._text):
                    events.append(delta_event(len(self._items) - 1, item, rest))
                events += self._close(item)
        index = len(self._items)
        for item in body["output"]:
            if item["id"] not in sent:
                events += item_events(index, item)
                index += 1
        return self._encode([*events, (f"response.{body['status']}", {"response": body})])

    def _close(self, item: Part) -> list[Event]:
        return list(closing_item_events(len(self._items) - 1, item))

    def _encode(self, events: Sequence[Event]) -> bytes:
        encoded = []
        for kind, data in events:
            encoded.append(encode_event({"type": kind, "sequence_number": self._number, **data}, kind))
            self._number += 1
        return b"".join(encoded)
