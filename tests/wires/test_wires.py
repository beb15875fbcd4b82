"""Each wire as a server: what it reads from a program's request, and how it writes the model's reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.trace import Message, Reply, Usage
from proctor.wires import anthropic_server, chat_server, responses_server
from proctor.wires.errors import GatewayRefusedError, Refusal
from proctor.wires.wire import Answer, ModelRequest, Wire

PNG = "data:image/png;base64,aWNvbg=="
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
CALL = {"id": "c1", "name": "add", "arguments": '{"a":1}'}
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}

CALLED: Message = {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}
CONVERSATION: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]},
    {**CALLED, "reasoning_content": "Hm."},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}, IMAGE]},
    {"role": "user", "content": "Go on."},
]

CHAT = {
    "model": "any",
    "messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]},
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}, IMAGE]},
        {"role": "user", "content": "Go on."},
    ],
    "tools": [
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": SCHEMA}}
    ],
    "temperature": 0,
    "max_completion_tokens": 50,
    "stop": ["\n"],
    "seed": 7,
    "tool_choice": "required",
    "reasoning_effort": "low",
    "user": "somebody",
    "store": False,
    "metadata": {"x": "y"},
    "parallel_tool_calls": True,
}
RESPONSES = {
    "model": "any",
    "instructions": "Be brief.",
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a":1}'},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "seen"},
                {"type": "input_image", "image_url": PNG},
            ],
        },
        {"type": "message", "role": "user", "content": "Go on."},
    ],
    "tools": [
        {"type": "function", "name": "add", "description": "Adds.", "parameters": SCHEMA, "strict": True},
        {"type": "web_search"},
    ],
    "temperature": 0,
    "max_output_tokens": 50,
    "tool_choice": "required",
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
}
MESSAGES = {
    "model": "any",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "seen"},
                        {"type": "image", "source": {"type": "url", "url": PNG}},
                    ],
                },
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
    "tools": [
        {"name": "add", "description": "Adds.", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "temperature": 0,
    "max_tokens": 50,
    "stop_sequences": ["\n"],
    "tool_choice": {"type": "any"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "metadata": {"user_id": "somebody"},
}
COMMON = {"temperature": 0, "max_tokens": 50, "tool_choice": "required", "reasoning_effort": "low"}


def read(wire: Wire, body: Any) -> ModelRequest:
    asked: ModelRequest = wire.decode_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    return asked


@pytest.mark.parametrize(
    ("wire", "body", "sampling"),
    [
        (chat_server.WIRE, CHAT, {**COMMON, "stop": ["\n"], "seed": 7}),
        (responses_server.WIRE, RESPONSES, COMMON),
        (anthropic_server.WIRE, MESSAGES, {**COMMON, "stop": ["\n"]}),
    ],
)
def test_a_conversation_comes_to_the_same_on_every_wire(
    wire: Wire, body: Any, sampling: dict[str, Any]
) -> None:
    asked = read(wire, body)

    assert list(asked.messages) == CONVERSATION
    assert [(tool.name, tool.description, tool.parameters) for tool in asked.tools] == [
        ("add", "Adds.", SCHEMA)
    ]
    assert asked.sampling == sampling


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (chat_server.WIRE, {"messages": [{"role": "user", "content": "hi"}], "tool_choice": "auto", "n": 1}),
        (responses_server.WIRE, {"input": "hi", "tool_choice": "auto", "text": {"format": {"type": "text"}}}),
        (
            anthropic_server.WIRE,
            {"messages": [{"role": "user", "content": "hi"}], "thinking": {"type": "disabled"}},
        ),
    ],
)
def test_what_a_program_did_not_set_is_not_asked_for(wire: Wire, body: Any) -> None:
    asked = read(wire, body)

    assert (asked.messages, asked.sampling) == ([{"role": "user", "content": "hi"}], {})


FORMAT = {"type": "json_schema", "name": "n", "schema": SCHEMA}
USER = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("wire", "body", "sampling"),
    [
        (
            responses_server.WIRE,
            {"input": "hi", "text": {"format": FORMAT}, "tool_choice": {"type": "function", "name": "f"}},
            {
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
        ),
        (
            anthropic_server.WIRE,
            {
                "messages": USER,
                "tool_choice": {"type": "tool", "name": "f"},
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
            },
            {
                "tool_choice": {"type": "function", "function": {"name": "f"}},
                "reasoning_effort": "high",
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SCHEMA},
                },
            },
        ),
    ],
)
def test_settings_are_said_in_the_words_of_the_chat_api(
    wire: Wire, body: Any, sampling: dict[str, Any]
) -> None:
    assert read(wire, body).sampling == sampling


@pytest.mark.parametrize(
    ("wire", "body", "named"),
    [
        (chat_server.WIRE, b"{", "truncated"),
        (chat_server.WIRE, {"model": "m"}, "`messages`"),
        (chat_server.WIRE, {"messages": []}, "messages is empty"),
        (chat_server.WIRE, {"messages": USER, "n": 2}, "n is 2"),
        (chat_server.WIRE, {"messages": [{"role": "wizard", "content": ""}]}, "$.messages[0].role"),
        (chat_server.WIRE, {"messages": [{"role": "user"}]}, "messages[0].content"),
        (chat_server.WIRE, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (chat_server.WIRE, {"messages": USER, "temperature": "hot"}, "$.temperature"),
        (
            chat_server.WIRE,
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": PNG}]}]},
            "messages[0].content[0].image_url",
        ),
        (responses_server.WIRE, {"instructions": "x"}, "`input`"),
        (responses_server.WIRE, {"input": []}, "input is empty"),
        (responses_server.WIRE, {"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        (responses_server.WIRE, {"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].arguments"),
        (
            responses_server.WIRE,
            {"input": [{"role": "user", "content": [{"type": "input_file"}]}]},
            "input_file",
        ),
        (responses_server.WIRE, {"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        (anthropic_server.WIRE, {"messages": []}, "messages is empty"),
        (anthropic_server.WIRE, {"messages": [{"role": "user"}]}, "`content`"),
        (
            anthropic_server.WIRE,
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            "messages[0].content[0].tool_use_id",
        ),
        (
            anthropic_server.WIRE,
            {"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]},
            "messages[0].content[0] is of type 'document'",
        ),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_by_the_name_of_the_field(
    wire: Wire, body: Any, named: str
) -> None:
    with pytest.raises(GatewayRefusedError) as refused:
        read(wire, body)

    assert refused.value.refusal.status == 400
    assert named in refused.value.refusal.message


# What is answered

REPLY = Reply(
    {**CALLED, "reasoning_content": "Hm."}, "tool_calls", Usage(10, 4, cached_tokens=6, reasoning_tokens=1)
)
ASKED = ModelRequest(messages=USER, wants_thoughts=True)


def as_answer(reply: Reply) -> Answer:
    return Answer(reply=reply, model="evaluated", id="1f", at=5)


def events(wire: Wire, reply: Reply, asked: ModelRequest = ASKED) -> list[tuple[str | None, Any]]:
    """The events of a stream, by name; what is no JSON as it is."""
    listed: list[tuple[str | None, Any]] = []
    for event in wire.encode_stream(asked, wire.encode_reply(asked, as_answer(reply))):
        lines = dict(line.split(": ", 1) for line in event.decode().strip().split("\n"))
        data = lines["data"]
        listed.append((lines.get("event"), data if data == "[DONE]" else json.loads(data)))
    return listed


def test_a_chat_completion() -> None:
    body = chat_server.WIRE.encode_reply(ASKED, as_answer(REPLY))

    (choice,) = body["choices"]
    assert (body["object"], body["model"], body["created"]) == ("chat.completion", "evaluated", 5)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Let me see."
    assert choice["message"]["reasoning_content"] == "Hm."
    assert choice["message"]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    ]
    assert (body["usage"]["prompt_tokens"], body["usage"]["total_tokens"]) == (10, 14)
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 6}


def test_a_chat_stream_adds_up_to_the_completion() -> None:
    streamed = [data for _, data in events(chat_server.WIRE, REPLY)]

    deltas = [data["choices"][0]["delta"] for data in streamed if data != "[DONE]" and data["choices"]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        {"content": "Let me see."},
        {
            "tool_calls": [
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]},
        {},
    ]
    assert streamed[-3]["choices"][0]["finish_reason"] == "tool_calls"
    assert (streamed[-2]["choices"], streamed[-2]["usage"]["total_tokens"]) == ([], 14)
    assert streamed[-1] == "[DONE]"


def test_a_response() -> None:
    body = responses_server.WIRE.encode_reply(ASKED, as_answer(REPLY))

    assert (body["object"], body["status"], body["model"]) == ("response", "completed", "evaluated")
    assert [item["type"] for item in body["output"]] == ["reasoning", "message", "function_call"]
    assert body["output"][1]["content"][0]["text"] == "Let me see."
    assert (body["output"][2]["call_id"], body["output"][2]["arguments"]) == ("c1", '{"a":1}')
    assert body["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}


def test_a_stream_of_a_response_says_every_item_in_its_order() -> None:
    streamed = events(responses_server.WIRE, REPLY)

    assert [name for name, _ in streamed] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [data["sequence_number"] for _, data in streamed] == list(range(len(streamed)))
    assert all(data["type"] == name for name, data in streamed)
    assert streamed[0][1]["response"]["status"] == "in_progress"
    assert len(streamed[-1][1]["response"]["output"]) == 3


def test_a_response_that_was_cut_is_incomplete() -> None:
    cut = Reply({"role": "assistant", "content": "Once upon"}, "length")

    assert events(responses_server.WIRE, cut)[-1][0] == "response.incomplete"
    assert responses_server.WIRE.encode_reply(ASKED, as_answer(cut))["incomplete_details"] == {
        "reason": "max_output_tokens"
    }


def test_tools_that_take_any_text_and_tools_in_groups_are_called_as_they_were_offered() -> None:
    asked = read(
        responses_server.WIRE,
        {
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "custom_tool_call", "call_id": "c0", "name": "patch", "input": "*** Begin"},
                {"type": "custom_tool_call_output", "call_id": "c0", "output": "done"},
            ],
            "tools": [
                {"type": "custom", "name": "patch", "description": "Patches."},
                {
                    "type": "namespace",
                    "name": "helpers",
                    "tools": [{"type": "function", "name": "ask", "parameters": SCHEMA}],
                },
            ],
        },
    )
    calls = [
        {"id": "c1", "name": "patch", "arguments": '{"input":"*** Begin"}'},
        {"id": "c2", "name": "ask", "arguments": "{}"},
    ]
    reply = Reply({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")

    patch, ask = responses_server.WIRE.encode_reply(asked, as_answer(reply))["output"]

    assert [tool.name for tool in asked.tools] == ["patch", "ask"]
    assert asked.messages[1]["tool_calls"][0]["arguments"] == '{"input":"*** Begin"}'
    assert (patch["type"], patch["input"]) == ("custom_tool_call", "*** Begin")
    assert (ask["type"], ask["namespace"]) == ("function_call", "helpers")


def test_an_anthropic_message() -> None:
    body = anthropic_server.WIRE.encode_reply(ASKED, as_answer(REPLY))

    assert (body["type"], body["stop_reason"], body["model"]) == ("message", "tool_use", "evaluated")
    assert body["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
    ]
    assert (body["usage"]["input_tokens"], body["usage"]["cache_read_input_tokens"]) == (4, 6)


def test_an_anthropic_stream_opens_and_closes_every_block() -> None:
    streamed = events(anthropic_server.WIRE, REPLY)

    assert [(name, data.get("index")) for name, data in streamed] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert streamed[0][1]["message"]["content"] == []
    assert streamed[8][1]["content_block"] == {"type": "tool_use", "id": "c1", "name": "add", "input": {}}
    assert streamed[9][1]["delta"] == {"type": "input_json_delta", "partial_json": '{"a":1}'}
    assert streamed[-2][1]["delta"]["stop_reason"] == "tool_use"
    assert streamed[-2][1]["usage"]["output_tokens"] == 4


def test_thoughts_are_shown_only_to_programs_that_asked_for_them() -> None:
    body = anthropic_server.WIRE.encode_reply(ModelRequest(messages=USER), as_answer(REPLY))

    assert [block["type"] for block in body["content"]] == ["text", "tool_use"]


def test_arguments_that_are_no_object_still_reach_a_program_that_wants_one() -> None:
    call = {"id": "c1", "name": "add", "arguments": '{"a":'}
    reply = Reply({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")

    (block,) = anthropic_server.WIRE.encode_reply(ASKED, as_answer(reply))["content"]

    assert block["input"] == {"INVALID_JSON": '{"a":'}


def test_tokens_are_counted_roughly() -> None:
    few = anthropic_server.count_tokens(read(anthropic_server.WIRE, {"messages": USER}))["input_tokens"]
    more = anthropic_server.count_tokens(read(anthropic_server.WIRE, MESSAGES))["input_tokens"]

    assert few == 1
    assert more > 3000  # two images


@pytest.mark.parametrize(
    ("wire", "refusal", "error"),
    [
        (
            chat_server.WIRE,
            Refusal(401, "key", "no"),
            {"type": "authentication_error", "code": "invalid_api_key"},
        ),
        (
            chat_server.WIRE,
            Refusal(400, "context_length_exceeded", "no"),
            {"type": "invalid_request_error", "code": "context_length_exceeded"},
        ),
        (
            responses_server.WIRE,
            Refusal(503, "overloaded", "no"),
            {"type": "server_error", "code": "overloaded"},
        ),
        (anthropic_server.WIRE, Refusal(401, "key", "no"), {"type": "authentication_error", "message": "no"}),
        (anthropic_server.WIRE, Refusal(429, "rate_limit_exceeded", "no"), {"type": "rate_limit_error"}),
        (anthropic_server.WIRE, Refusal(503, "overloaded", "no"), {"type": "overloaded_error"}),
        (
            anthropic_server.WIRE,
            Refusal(400, "context_length_exceeded", "no"),
            {"type": "invalid_request_error", "message": "prompt is too long: no"},
        ),
    ],
)
def test_every_wire_says_no_in_its_own_words(wire: Wire, refusal: Refusal, error: dict[str, str]) -> None:
    said = wire.encode_refusal(refusal)["error"]

    assert {name: said[name] for name in error} == error
    assert b"no" in wire.encode_broken_stream(refusal)
