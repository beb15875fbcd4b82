"""The encoder of each wire's live stream. Knows nothing of where it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from proctor.trace import Piece
from proctor.wires import anthropic_server, chat_server, responses_server
from proctor.wires.anthropic_stream import MessagesStreamEncoder
from proctor.wires.chat_stream import ChatStreamEncoder
from proctor.wires.responses_stream import ResponsesStreamEncoder
from proctor.wires.wire import Answer, ModelRequest, Wire


class StreamEncoder(Protocol):
    """Writes one answer as it comes."""

    def add(self, piece: Piece) -> bytes: ...
    def end(self, answer: Answer) -> bytes: ...


ENCODERS: dict[str, Callable[[ModelRequest, Answer], StreamEncoder]] = {
    chat_server.WIRE.path: ChatStreamEncoder,
    responses_server.WIRE.path: ResponsesStreamEncoder,
    anthropic_server.WIRE.path: MessagesStreamEncoder,
}


def open_encoder(wire: Wire, request: ModelRequest, blank: Answer) -> StreamEncoder:
    """The encoder for an answer of which, so far, only the model and the id are known."""
    return ENCODERS[wire.path](request, blank)
