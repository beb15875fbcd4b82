"""The OpenAI chat completions API as a stream: read from a provider in pieces, and written by the gateway.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.trace import Piece
from proctor.wires.chat_server import delta_events, deltas, encode_reply, encode_stream, stream_head
from proctor.wires.codec import NOTHING, copy_if_present, encode_event, encode_json, event_data
from proctor.wires.wire import Answer, ModelRequest, rest_of

DONE = b"[DONE]"
STREAM_PARAMETERS = {"stream": True, "stream_options": {"include_usage": True}}


class FunctionDelta(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: FunctionDelta = FunctionDelta()


class MessageDelta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None


class LogprobsDelta(msgspec.Struct, frozen=True):
    content: list[Any] | None = None


class ChoiceDelta(msgspec.Struct, frozen=True):
    delta: MessageDelta = MessageDelta()
    text: str | None = None
    """Of a text completion."""
    finish_reason: str | None = None
    logprobs: LogprobsDelta | None = None


class ChatChunk(msgspec.Struct, frozen=True):
    choices: list[ChoiceDelta] | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


_decode_chunk = msgspec.json.Decoder(ChatChunk).decode


class ChatAssembler:
    """Puts a provider's stream together again, as the reply it would have sent without one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []
        self._finish_reason: str | None = None
        self._last = ChatChunk()
        self._usage: dict[str, Any] | None = None
        self._error: msgspec.Raw | None = None

    def feed(self, event: bytes) -> Sequence[Piece]:
        data = event_data(event)
        if not data:
            return ()
        if data == DONE:
            self.is_whole = True
            return ()
        chunk = _decode_chunk(data)
        self._usage = chunk.usage or self._usage
        if error := copy_if_present(chunk.error):
            self._error, self.is_whole = error, True
        if not chunk.choices:
            self.is_whole = self.is_whole or chunk.usage is not None  # some servers leave out [DONE]
            return ()
        self._last = chunk
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish_reason, self.is_whole = choice.finish_reason, True
        self._logprobs += (choice.logprobs and choice.logprobs.content) or ()
        for call in choice.delta.tool_calls or ():
            self._add_call(call)
        return self._add_texts(choice)

    def whole(self) -> bytes:
        if self._error is not None:
            return encode_json({"error": self._error})
        message = {name: "".join(texts) for name, texts in self._texts.items()}
        calls = [call for _, call in sorted(self._calls.items())]
        choice: dict[str, Any] = {
            "message": {"role": "assistant", **message, **({"tool_calls": calls} if calls else {})},
            "text": message.get("content", ""),
            "finish_reason": self._finish_reason,
            "logprobs": {"content": self._logprobs} if self._logprobs else None,
        }
        head = {"id": self._last.id, "model": self._last.model}
        return encode_json({**head, "choices": [choice], "usage": self._usage})

    def _add_call(self, delta: CallDelta) -> None:
        call = self._calls.setdefault(delta.index, {"id": None, "function": {"name": "", "arguments": ""}})
        call["id"] = delta.id or call["id"]
        call["function"]["name"] += delta.function.name or ""
        call["function"]["arguments"] += delta.function.arguments or ""

    def _add_texts(self, choice: ChoiceDelta) -> list[Piece]:
        delta, pieces = choice.delta, []
        for name, text in (
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("content", delta.content or choice.text),
            ("refusal", delta.refusal),
        ):
            if text:
                self._texts.setdefault(name, []).append(text)
                pieces.append(Piece("thought" if name.startswith("reasoning") else "text", text))
        return pieces


class ChatStreamEncoder:
    """Writes an answer as it comes."""

    def __init__(self, request: ModelRequest, blank: Answer) -> None:
        self._request = request
        self._head = stream_head(encode_reply(request, blank))
        self._sent = {"reasoning_content": "", "content": ""}
        self._is_begun = False

    def add(self, piece: Piece) -> bytes:
        field = "content" if piece.kind == "text" else "reasoning_content"
        self._sent[field] += piece.text
        new = [{field: piece.text}]
        if not self._is_begun:
            self._is_begun = True
            new.insert(0, {"role": "assistant", "content": ""})
        return b"".join(map(self._encode, new))

    def end(self, answer: Answer) -> bytes:
        """The rest of the answer, and the end of the stream."""
        body = encode_reply(self._request, answer)
        if not self._is_begun:
            return b"".join(encode_stream(self._request, body))
        message = dict(body["choices"][0]["message"])
        for field, sent in self._sent.items():
            message[field] = rest_of(message.get(field), sent)
        _, *left = deltas(message)
        return b"".join(delta_events(self._request, body, left))

    def _encode(self, delta: dict[str, Any]) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return encode_event({**self._head, "choices": [choice]})
