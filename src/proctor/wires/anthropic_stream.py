"""The Anthropic messages API as a stream: read from a provider in pieces, and written by the gateway.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.trace import Piece
from proctor.wires.anthropic import without_nulls
from proctor.wires.anthropic_events import block_events, closing_events, encode_typed_event, opening_event
from proctor.wires.anthropic_server import encode_reply, encode_stream
from proctor.wires.codec import encode_json, event_data
from proctor.wires.content import Part, text_part
from proctor.wires.wire import Answer, ModelRequest, rest_of

STREAM_PARAMETERS = {"stream": True}
TEXT_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
KINDS = {"text": "text", "thought": "thinking"}


class MessageStreamEvent(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


_decode_event = msgspec.json.Decoder(MessageStreamEvent).decode


class MessagesAssembler:
    """Puts a provider's stream together again, as the reply it would have sent without one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._body: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        """The JSON of tool calls' inputs, as far as it came."""

    def feed(self, event: bytes) -> Sequence[Piece]:
        data = event_data(event)
        if not data:
            return ()
        read = _decode_event(data)
        if read.error is not None:
            self._body, self.is_whole = {"error": read.error}, True
        elif read.message is not None:
            self._body = dict(read.message)
        elif read.content_block is not None:
            self._blocks[read.index] = read.content_block
        elif read.type == "content_block_delta" and read.delta is not None:
            return self._add(read.index, read.delta)
        elif read.type == "message_delta":
            self._body.update(read.delta or {})
            self._body["usage"] = {**(self._body.get("usage") or {}), **without_nulls(read.usage or {})}
        elif read.type == "message_stop":
            self.is_whole = True
        return ()

    def whole(self) -> bytes:
        if "error" in self._body:
            return encode_json(self._body)
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = msgspec.json.decode(text) if text else {}
        blocks = [block for _, block in sorted(self._blocks.items())]
        return encode_json({**self._body, "content": blocks or self._body.get("content")})

    def _add(self, index: int, delta: Part) -> Sequence[Piece]:
        block, kind = self._blocks.setdefault(index, text_part("")), delta.get("type")
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block.setdefault("citations", []).append(delta.get("citation"))
        elif field := TEXT_DELTAS.get(str(kind)):
            text = str(delta.get(field) or "")
            block[field] = str(block.get(field) or "") + text
            if text and field != "signature":
                return [Piece("text" if field == "text" else "thought", text)]
        return ()


class MessagesStreamEncoder:
    """Writes an answer as it comes."""

    def __init__(self, request: ModelRequest, blank: Answer) -> None:
        self._request = request
        self._blank = encode_reply(request, blank)
        self._index = -1
        self._open = ""
        """The type of the block that is being written."""
        self._sent: dict[str, str] = {}

    def add(self, piece: Piece) -> bytes:
        if piece.kind == "thought" and not self._request.wants_thoughts:
            return b""
        kind, events = KINDS[piece.kind], list[bytes]()
        if self._index < 0:
            events.append(opening_event(self._blank))
        if kind != self._open:
            events += self._close()
            self._index, self._open = self._index + 1, kind
            empty = text_part("") if kind == "text" else {"type": kind, kind: "", "signature": ""}
            events.append(encode_typed_event("content_block_start", index=self._index, content_block=empty))
        self._sent[kind] = self._sent.get(kind, "") + piece.text
        return b"".join([*events, self._encode_delta(f"{kind}_delta", kind, piece.text)])

    def end(self, answer: Answer) -> bytes:
        """The rest of the answer, and the end of the stream."""
        body = encode_reply(self._request, answer)
        if self._index < 0:
            return b"".join(encode_stream(self._request, body))
        events, unsent = list[bytes](), list[Part]()
        for block in body["content"]:
            kind = block["type"]
            if kind not in self._sent:
                unsent.append(block)
            elif kind == self._open and (rest := rest_of(block[kind], self._sent[kind])):
                events.append(self._encode_delta(f"{kind}_delta", kind, rest))
        events += self._close()
        for index, block in enumerate(unsent, self._index + 1):
            events += block_events(index, block)
        return b"".join([*events, *closing_events(body)])

    def _close(self) -> list[bytes]:
        if not self._open:
            return []
        sealed = self._encode_delta("signature_delta", "signature", "") if self._open == "thinking" else b""
        return [sealed + encode_typed_event("content_block_stop", index=self._index)]

    def _encode_delta(self, kind: str, field: str, text: str) -> bytes:
        delta = {"type": kind, field: text}
        return encode_typed_event("content_block_delta", index=self._index, delta=delta)
