"""A provider's stream, put together again, is the reply it would have sent without one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from proctor.trace import Piece, Reply, Usage
from proctor.wires import anthropic, anthropic_server, chat, chat_server, gemini, responses, responses_server
from proctor.wires.anthropic_stream import MessagesAssembler
from proctor.wires.chat_stream import ChatAssembler
from proctor.wires.encoders import open_encoder
from proctor.wires.events import EventSplitter
from proctor.wires.gemini_stream import GeminiAssembler
from proctor.wires.responses_stream import ResponsesAssembler
from proctor.wires.wire import ModelRequest, StreamAssembler, Wire, blank_answer


def event(data: Any) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode())


def read(assembler: StreamAssembler, *events: Any) -> list[Piece]:
    return [piece for each in events for piece in assembler.feed(event(each))]


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, **more}]}


def test_a_chat_stream() -> None:
    assembler = ChatAssembler()

    pieces = read(
        assembler,
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": "Fo"}, logprobs={"content": [{"token": "Fo"}]}),
        chunk({"content": "ur."}, logprobs={"content": [{"token": "ur."}]}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
        chunk({}, finish_reason="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        b"[DONE]",
    )

    assert pieces == [Piece("thought", "Hm."), Piece("text", "Fo"), Piece("text", "ur.")]
    assert assembler.is_whole
    reply = chat.decode_reply(assembler.whole())
    assert (reply.text, reply.message["reasoning_content"]) == ("Four.", "Hm.")
    assert reply.tool_calls == [{"id": "a", "name": "look", "arguments": '{"x": 1}'}]
    assert (reply.finish_reason, reply.usage.input_tokens, reply.usage.output_tokens) == ("tool_calls", 7, 3)
    assert (reply.id, reply.model) == ("c1", "m")
    assert json.loads(bytes(reply.logprobs or b"")) == {"content": [{"token": "Fo"}, {"token": "ur."}]}


def test_a_messages_stream_keeps_what_only_its_provider_can_read() -> None:
    assembler = MessagesAssembler()

    pieces = read(
        assembler,
        {
            "type": "message_start",
            "message": {"id": "m1", "model": "m", "content": [], "usage": {"input_tokens": 7}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Four."}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"x": 1}'},
        },
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )

    assert pieces == [Piece("thought", "Hm."), Piece("text", "Four.")]
    assert assembler.is_whole
    reply = anthropic.decode_reply(assembler.whole())
    assert (reply.text, reply.finish_reason, reply.usage.input_tokens) == ("Four.", "tool_calls", 7)
    assert json.loads(reply.tool_calls[0]["arguments"]) == {"x": 1}
    thought = reply.message["native"]["content"][0]
    assert thought == {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def test_a_responses_stream() -> None:
    assembler = ResponsesAssembler()
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Four."}]}]

    pieces = read(
        assembler,
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        {"type": "response.output_text.delta", "delta": "Four."},
        {"type": "response.completed", "response": {"status": "completed", "output": output}},
    )

    assert pieces == [Piece("thought", "Hm."), Piece("text", "Four.")]
    assert assembler.is_whole
    assert responses.decode_reply(assembler.whole()).text == "Four."


def test_a_gemini_stream_joins_text_and_keeps_signed_parts_apart() -> None:
    assembler = GeminiAssembler()

    def part(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}

    pieces = read(
        assembler,
        part({"text": "Hm.", "thought": True}),
        part({"text": "Fo"}),
        part({"text": "ur."}),
        part({"functionCall": {"name": "look", "args": {"x": 1}}, "thoughtSignature": "s"}),
        {
            **part(finishReason="STOP"),
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
            "modelVersion": "m",
        },
    )

    assert pieces == [Piece("thought", "Hm."), Piece("text", "Fo"), Piece("text", "ur.")]
    assert assembler.is_whole
    reply = gemini.decode_reply(assembler.whole())
    assert (reply.text, reply.model, reply.usage.input_tokens) == ("Four.", "m", 7)
    assert reply.tool_calls[0]["name"] == "look"
    assert reply.message["native"]["content"][-1]["thoughtSignature"] == "s"


@pytest.mark.parametrize(
    ("assembler", "decode", "failed"),
    [
        (ChatAssembler, chat.decode_reply, {"error": {"code": 503, "message": "busy"}}),
        (
            MessagesAssembler,
            anthropic.decode_reply,
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        ),
        (
            ResponsesAssembler,
            responses.decode_reply,
            {"type": "error", "code": "server_error", "message": "busy"},
        ),
        (GeminiAssembler, gemini.decode_reply, {"error": {"code": 503, "message": "busy"}}),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_the_providers_error(
    assembler: Any, decode: Any, failed: dict[str, Any]
) -> None:
    made = assembler()
    read(made, failed)

    assert made.is_whole
    with pytest.raises(Exception, match="reports an error of status 5"):
        decode(made.whole())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_whole_however_they_are_cut(size: int) -> None:
    sent = b"data: one\r\n\r\ndata: two\n\ndata: three"
    splitter = EventSplitter()

    events = [
        each for start in range(0, len(sent), size) for each in splitter.feed(sent[start : start + size])
    ]
    events += splitter.end()

    assert events == [b"data: one", b"data: two", b"data: three"]


def test_a_stream_that_is_cut_short_is_not_whole() -> None:
    for made in (ChatAssembler(), MessagesAssembler(), ResponsesAssembler(), GeminiAssembler()):
        assert not made.is_whole
    assembler = ChatAssembler()
    read(assembler, chunk({"content": "Fo"}))
    assert not assembler.is_whole
    assert isinstance(chat.decode_reply(assembler.whole()), Reply)


CALL = {"id": "a", "name": "look", "arguments": '{"x":1}'}
ANSWER = {"role": "assistant", "reasoning_content": "Hm. So.", "content": "Four. Five.", "tool_calls": [CALL]}
STREAMED = [
    [],
    [Piece("text", "Four."), Piece("text", " Five.")],
    [Piece("thought", "Hm."), Piece("thought", " So."), Piece("text", "Four.")],
    [Piece("thought", "Hm. So."), Piece("text", "Four. Five.")],
]


@pytest.mark.parametrize("pieces", STREAMED, ids=["nothing", "text", "a part", "all but the calls"])
@pytest.mark.parametrize(
    ("wire", "assembler", "decode"),
    [
        (chat_server.WIRE, ChatAssembler, chat.decode_reply),
        (responses_server.WIRE, ResponsesAssembler, responses.decode_reply),
        (anthropic_server.WIRE, MessagesAssembler, anthropic.decode_reply),
    ],
)
def test_whatever_was_sent_early_a_client_reads_the_whole_answer(
    wire: Wire, assembler: Any, decode: Any, pieces: list[Piece]
) -> None:
    request = ModelRequest(messages=[], stream=True, wants_thoughts=True)
    blank = blank_answer("m")
    encoder = open_encoder(wire, request, blank)
    sent = b"".join(encoder.add(piece) for piece in pieces)
    sent += encoder.end(replace(blank, reply=Reply(ANSWER, "tool_calls", Usage(7, 3))))

    client = assembler()
    read = [piece for each in EventSplitter().feed(sent) for piece in client.feed(each)]

    assert client.is_whole
    reply = decode(client.whole())
    assert (reply.text, reply.tool_calls) == ("Four. Five.", [CALL])
    assert (reply.finish_reason, reply.usage.output_tokens) == ("tool_calls", 3)
    assert "".join(piece.text for piece in read if piece.kind == "text") == "Four. Five."
    assert b"\n\n\n" not in sent
