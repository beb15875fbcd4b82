"""The Gemini client against a real server on this machine that answers as Google does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import (
    AuthError,
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
)
from proctor.models.gemini import DEFAULT_URL, Gemini
from proctor.trace import Message, Reply, ToolSpec, Usage

if TYPE_CHECKING:
    from tests.conftest import Answer, Provider, Ran

    Serve = Callable[..., Provider]

HELLO: Message = {"role": "user", "content": "hello"}
WEATHER = ToolSpec(
    "weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)


def generated(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> Answer:
    """A whole answer of Google's, made of these parts."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return {
        "body": {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "served",
            "responseId": "reply-1",
            **more,
        }
    }


def call(
    name: str, /, identity: str | None = None, signature: str | None = None, **args: Any
) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": args}}
    if identity:
        part["functionCall"]["id"] = identity
    if signature:
        part["thoughtSignature"] = signature
    return part


def ask(
    url: str, *messages: Message, model: str = "tiny", key_var: str | None = None, **request: Any
) -> Reply:
    async def conversation() -> Reply:
        gemini = Gemini.at(Endpoint(model=model, client_type="gemini", url=url, key_var=key_var))
        try:
            return await gemini.complete(Request(messages or (HELLO,), **request))
        finally:
            await gemini.close()

    return asyncio.run(conversation())


def failure(url: str, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(url, **settings)
    return caught.value


def body(*messages: Message, model: str = "tiny", **request: Any) -> dict[str, Any]:
    """What would be sent."""
    endpoint = Endpoint(model=model, client_type="gemini", url="http://127.0.0.1:1")
    return Gemini(endpoint).body(Request(messages or (HELLO,), **request))


def config(**sampling: Any) -> dict[str, Any]:
    settings: dict[str, Any] = body(sampling=sampling)["generationConfig"]
    return settings


# What is said


def test_a_text_comes_back_with_its_usage_and_the_model_that_served_it(provider: Serve) -> None:
    server = provider(generated({"text": "good day"}))

    reply = ask(server.url)

    assert reply.message == {"role": "assistant", "content": "good day"}
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(input_tokens=7, output_tokens=3)
    assert (reply.model, reply.id) == ("served", "reply-1")
    assert server.requests[0].path == "/v1/models/tiny:generateContent"
    assert server.requests[0].body == {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "models/gemini-2.5-pro", "google/gemini-2.5-pro"])
def test_a_model_may_be_named_as_google_does_or_as_gateways_do(provider: Serve, name: str) -> None:
    server = provider(generated({"text": "x"}))

    ask(server.url, model=name)

    assert server.requests[0].path == "/v1/models/gemini-2.5-pro:generateContent"


def test_the_key_goes_into_googles_header_and_nowhere_else(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = provider(generated({"text": "x"}))

    ask(server.url, key_var="MY_KEY")

    assert server.requests[0].headers["x-goog-api-key"] == "sesame"
    assert "authorization" not in server.requests[0].headers


def test_without_an_address_google_is_asked() -> None:
    assert Gemini.at(Endpoint(model="gemini-2.5-pro")).endpoint.url == DEFAULT_URL


def test_what_a_conversation_opens_with_is_its_instruction_and_turns_alternate() -> None:
    sent = body(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        HELLO,
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "hi"},
        {"role": "system", "content": "Time is short."},
        HELLO,
    )

    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert sent["contents"] == [
        {"role": "user", "parts": [{"text": "hello"}, {"text": "again"}]},
        {"role": "model", "parts": [{"text": "hi"}]},
        {"role": "user", "parts": [{"text": "Time is short."}, {"text": "hello"}]},
    ]


def test_an_empty_answer_is_left_out_because_google_refuses_a_turn_without_parts() -> None:
    assert body(HELLO, {"role": "assistant", "content": ""}, HELLO)["contents"] == [
        {"role": "user", "parts": [{"text": "hello"}, {"text": "hello"}]}
    ]


def test_pictures_travel_inside_the_message_and_addresses_as_addresses() -> None:
    content = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": "data:image/svg+xml,%3Csvg%2F%3E"},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpeg?x=1"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
        {"executableCode": {"code": "1"}},
    ]

    [turn] = body({"role": "user", "content": content})["contents"]

    assert turn["parts"] == [
        {"text": "what is it?"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"inlineData": {"mimeType": "image/svg+xml", "data": "PHN2Zy8+"}},
        {"fileData": {"fileUri": "https://example.com/cat.jpeg?x=1", "mimeType": "image/jpeg"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "BBBB"}},
        {"executableCode": {"code": "1"}},
    ]


def test_a_picture_that_the_model_draws_is_kept_and_can_be_sent_back(provider: Serve) -> None:
    drawn: list[dict[str, Any]] = [
        {"text": "a cat"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]
    reply = ask(provider(generated(*drawn)).url)

    assert reply.text == "a cat"
    assert reply.message["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert body(HELLO, reply.message)["contents"][1]["parts"] == drawn


# Parameters


def test_parameters_are_translated_into_googles_words() -> None:
    assert config(
        max_tokens=5, temperature=0, top_p=0.5, top_k=3, stop="END", seed=1, n=2, frequency_penalty=0.1
    ) == {
        "maxOutputTokens": 5,
        "temperature": 0,
        "topP": 0.5,
        "topK": 3,
        "stopSequences": ["END"],
        "seed": 1,
        "candidateCount": 2,
        "frequencyPenalty": 0.1,
    }
    assert config(stop=["a", "b"], logprobs=True, top_logprobs=4) == {
        "stopSequences": ["a", "b"],
        "responseLogprobs": True,
        "logprobs": 4,
    }


def test_googles_own_parameters_go_where_they_belong_and_others_stand_beside() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]

    sent = body(
        sampling={
            "media_resolution": "MEDIA_RESOLUTION_LOW",
            "responseModalities": ["TEXT"],
            "generationConfig": {"fromTheFuture": 1},
            "safetySettings": safety,
            "labels": {"team": "blue"},
            "stop": None,
        }
    )

    assert sent["generationConfig"] == {
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "responseModalities": ["TEXT"],
        "fromTheFuture": 1,
    }
    assert (sent["safetySettings"], sent["labels"]) == (safety, {"team": "blue"})
    assert "stop" not in sent


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-2.5-flash", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-3-pro-preview", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-flash-preview", "none", {"includeThoughts": False, "thinkingLevel": "minimal"}),
    ],
)
def test_effort_is_a_number_of_tokens_for_older_models_and_a_word_for_later_ones(
    model: str, effort: str, thinking: dict[str, Any]
) -> None:
    sent = body(model=model, sampling={"reasoning_effort": effort})

    assert sent["generationConfig"]["thinkingConfig"] == thinking


def test_an_explicit_thinking_setting_wins_over_the_effort() -> None:
    for sampling in (
        {"reasoning_effort": "low", "thinking_config": {"includeThoughts": False}},
        {"thinkingConfig": {"includeThoughts": False}, "reasoning_effort": "low"},
    ):
        assert config(**sampling)["thinkingConfig"] == {"includeThoughts": False, "thinkingLevel": "low"}


def test_a_wanted_format_and_a_choice_of_tools_are_translated() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}

    sent = body(
        sampling={
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        }
    )

    assert sent["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert sent["toolConfig"]["functionCallingConfig"] == {
        "mode": "ANY",
        "allowedFunctionNames": ["weather"],
    }
    assert body(sampling={"tool_choice": "required"})["toolConfig"]["functionCallingConfig"] == {
        "mode": "ANY"
    }


# Tools


def test_tools_are_declared_with_their_schema_as_it_is() -> None:
    bare = ToolSpec("now", "Tells the time.", {"type": "object", "properties": {}})

    sent = body(tools=(WEATHER, bare), sampling={"tools": [{"googleSearch": {}}]})

    assert sent["tools"] == [
        {"googleSearch": {}},
        {
            "functionDeclarations": [
                {
                    "name": "weather",
                    "description": "Tells the weather.",
                    "parametersJsonSchema": WEATHER.parameters,
                },
                {"name": "now", "description": "Tells the time."},
            ]
        },
    ]


def test_parallel_calls_without_ids_get_some_and_results_are_matched_in_the_order_of_the_calls(
    provider: Serve,
) -> None:
    calls = [call("weather", city="Ulm"), call("weather", city="Köln"), call("now")]
    server = provider(generated(*calls), generated({"text": "sunny"}))
    reply = ask(server.url, tools=(WEATHER,))

    assert reply.finish_reason == "tool_calls"
    assert reply.message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_0", "name": "weather", "arguments": '{"city":"Ulm"}'},
            {"id": "call_1", "name": "weather", "arguments": '{"city":"Köln"}'},
            {"id": "call_2", "name": "now", "arguments": "{}"},
        ],
    }

    ask(
        server.url,
        HELLO,
        reply.message,
        {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
        {"role": "tool", "tool_call_id": "call_0", "content": "sunny"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "rainy"}]},
        {"role": "user", "content": "and now?"},
    )

    assert server.requests[1].body["contents"][1:] == [
        {"role": "model", "parts": calls},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "weather", "response": {"output": "sunny"}}},
                {"functionResponse": {"name": "weather", "response": {"output": "rainy"}}},
                {"functionResponse": {"name": "now", "response": {"output": "noon"}}},
                {"text": "and now?"},
            ],
        },
    ]


def test_calls_with_ids_keep_them_and_the_results_name_them(provider: Serve) -> None:
    parts = [call("weather", identity="fc-1", city="Ulm"), call("weather", identity="fc-2", city="Köln")]
    reply = ask(provider(generated(*parts)).url)

    assert [said["id"] for said in reply.tool_calls] == ["fc-1", "fc-2"]
    assert "native" not in reply.message

    contents = body(
        HELLO,
        reply.message,
        {"role": "tool", "tool_call_id": "fc-1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "fc-2", "content": "rainy"},
    )["contents"]

    assert contents[1]["parts"] == parts
    assert [part["functionResponse"]["id"] for part in contents[2]["parts"]] == ["fc-1", "fc-2"]


def test_a_picture_that_a_tool_returns_stands_beside_its_result() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "name": "look", "arguments": "{}"}],
    }
    shown: Message = {
        "role": "tool",
        "tool_call_id": "a",
        "content": [{"type": "text", "text": "here"}, picture],
    }

    assert body(HELLO, asked, shown)["contents"][2]["parts"] == [
        {"functionResponse": {"id": "a", "name": "look", "response": {"output": "here"}}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]


def test_another_models_turn_with_arguments_that_are_no_json_can_still_be_sent() -> None:
    function = {"name": "weather", "arguments": "{city: nowhere"}
    asked: Message = {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
        "native": {"by": "anthropic_messages", "content": [{"type": "thinking"}]},
    }

    assert body(HELLO, asked)["contents"][1]["parts"] == [
        {"text": "Let me see."},
        {"functionCall": {"id": "a", "name": "weather", "args": {"arguments": "{city: nowhere"}}},
    ]


# What is kept across turns


def test_thoughts_are_told_apart_and_unsigned_ones_need_no_native(provider: Serve) -> None:
    reply = ask(provider(generated({"text": "Hm.", "thought": True}, {"text": "42"})).url)

    assert reply.message == {"role": "assistant", "content": "42", "reasoning_content": "Hm."}


def test_signatures_go_back_exactly_as_they_came(provider: Serve) -> None:
    parts = [{"text": "Hm.", "thought": True}, call("weather", signature="c2ln", city="Ulm"), call("now")]
    reply = ask(provider(generated(*parts)).url)

    assert reply.message["native"] == {"by": "gemini", "content": parts}
    assert reply.message["reasoning_content"] == "Hm."
    assert body(HELLO, reply.message)["contents"][1]["parts"] == parts


@pytest.mark.parametrize(
    ("edit", "sent"),
    [
        ({"content": "I said this."}, [{"text": "I said this."}, call("weather", city="Ulm")]),
        ({"tool_calls": None, "content": "No tools."}, [{"text": "No tools."}]),
        ({"reasoning_content": "Aha."}, [call("weather", city="Ulm")]),
        ({"reasoning_content": None}, [call("weather", signature="c2ln", city="Ulm")]),
        ({"native": {"by": "openai_responses", "content": []}}, [call("weather", city="Ulm")]),
    ],
)
def test_an_edited_answer_is_sent_as_it_was_edited(
    provider: Serve, edit: dict[str, Any], sent: list[dict[str, Any]]
) -> None:
    parts = [{"text": "Hm.", "thought": True}, call("weather", signature="c2ln", city="Ulm")]
    reply = ask(provider(generated(*parts)).url)

    assert body(HELLO, {**reply.message, **edit})["contents"][1]["parts"] == sent


def test_a_saved_conversation_can_be_continued(provider: Serve) -> None:
    reply = ask(provider(generated(call("weather", signature="c2ln", city="Ulm"))).url)
    saved = json.loads(json.dumps(reply.message))

    assert body(HELLO, saved) == body(HELLO, reply.message)


# Why it stopped, and what it took


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("OTHER", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "stop"),
    ],
)
def test_the_reason_to_stop_is_said_in_everybodys_words_and_an_unusual_one_is_kept(
    provider: Serve, finish: str, reason: str
) -> None:
    reply = ask(provider(generated({"text": "so far"}, finish=finish)).url)

    assert (reply.finish_reason, reply.text) == (reason, "so far")
    assert reply.message.get("native", {}).get("finish_reason", finish) == finish
    assert ("native" in reply.message) == (finish not in ("STOP", "MAX_TOKENS"))


def test_an_answer_cut_off_before_its_first_word_is_empty(provider: Serve) -> None:
    answer = {"candidates": [{"finishReason": "MAX_TOKENS", "content": {"role": "model"}}]}

    reply = ask(provider({"body": answer}).url)

    assert reply.truncated
    assert reply.message == {"role": "assistant", "content": ""}


def test_a_blocked_question_is_an_empty_answer_that_says_so(provider: Serve) -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
    }

    reply = ask(provider({"body": blocked}).url)

    assert (reply.finish_reason, reply.text) == ("content_filter", "")
    assert "PROHIBITED_CONTENT" in reply.message["native"]["finish_message"]
    assert reply.usage == Usage(input_tokens=9)


def test_thoughts_count_as_output_and_cached_tokens_as_input(provider: Serve) -> None:
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 80,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 40,
        "totalTokenCount": 155,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}],
    }

    reply = ask(provider(generated({"text": "x"}, usageMetadata=usage)).url)

    assert reply.usage == Usage(input_tokens=105, output_tokens=50, cached_tokens=80, reasoning_tokens=40)


def test_log_probabilities_are_kept_as_they_came(provider: Serve) -> None:
    result = {"chosenCandidates": [{"token": "x", "logProbability": -0.1}]}
    candidate = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP", "logprobsResult": result}

    reply = ask(provider({"body": {"candidates": [candidate]}}).url)

    assert reply.logprobs is not None
    assert json.loads(bytes(reply.logprobs)) == result


# What goes wrong


def google_error(code: int, message: str, status: str, *details: dict[str, Any]) -> Answer:
    error = {"code": code, "message": message, "status": status, "details": list(details)}
    return {"status": code, "body": {"error": error}}


BAD_KEY = google_error(
    400,
    "API key not valid. Please pass a valid API key.",
    "INVALID_ARGUMENT",
    {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (BAD_KEY, AuthError),
        (google_error(403, "Permission denied.", "PERMISSION_DENIED"), AuthError),
        (google_error(400, "Unknown name topk.", "INVALID_ARGUMENT"), RequestRefusedError),
        (google_error(404, "models/x is not found.", "NOT_FOUND"), RequestRefusedError),
        (
            google_error(
                400,
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                "INVALID_ARGUMENT",
            ),
            ContextTooLongError,
        ),
        (google_error(500, "An internal error.", "INTERNAL"), OverloadedError),
        (google_error(503, "The model is overloaded.", "UNAVAILABLE"), OverloadedError),
        ({"body": {"error": {"code": 503, "message": "overloaded"}}}, OverloadedError),
        ({"body": {}}, MalformedReplyError),
        ({"body": {"candidates": []}}, MalformedReplyError),
        ({"body": "hello?"}, MalformedReplyError),
        ({"body": "[]"}, MalformedReplyError),
        (generated(finish="MALFORMED_RESPONSE"), MalformedReplyError),
        (generated(finish="MISSING_THOUGHT_SIGNATURE"), RequestRefusedError),
    ],
)
def test_every_failure_becomes_the_error_that_names_its_cause(
    provider: Serve, answer: Answer, named: type[ModelError]
) -> None:
    server = provider(answer)

    error = failure(server.url)

    assert type(error) is named
    assert server.url in str(error)


@pytest.mark.parametrize(
    ("headers", "delay", "seconds"),
    [({}, "31.5s", 31.5), ({}, "soon", None), ({"Retry-After": "7"}, "31s", 7.0)],
)
def test_a_rate_limit_says_when_to_come_back(
    provider: Serve, headers: dict[str, str], delay: str, seconds: float | None
) -> None:
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    answer = google_error(429, "You exceeded your current quota.", "RESOURCE_EXHAUSTED", *details)

    error = failure(provider({**answer, "headers": headers}).url)

    assert isinstance(error, RateLimitError)
    assert error.retry_after_seconds == seconds


def test_a_key_that_google_calls_a_bad_request_stops_the_run_before_anything_is_paid_for(
    provider: Serve, proctor: Callable[..., Ran]
) -> None:
    server = provider(generated({"text": "x"}), models=BAD_KEY)

    ran = proctor(
        *("eval", "run", "echo", "-n", "1", "-r", "1", "-m", "tiny", "-b", server.url, "-k", "MY_KEY"),
        *("--api-client-type", "gemini"),
        environ={"MY_KEY": "sesame"},
    )

    assert ran.code == 2, ran.stderr
    assert "check the API key in MY_KEY" in ran.stderr
    assert not server.requests


def test_a_run_on_the_command_line_asks_gemini(provider: Serve, proctor: Callable[..., Ran]) -> None:
    server = provider(generated({"text": "say 0"}))

    ran = proctor(
        *("eval", "run", "echo", "-n", "1", "-r", "1", "-m", "tiny", "-b", server.url, "-t", "17", "--json"),
        *("--api-client-type", "gemini"),
    )

    assert ran.code == 0, ran.stderr
    assert server.requests[0].body["generationConfig"] == {"maxOutputTokens": 17}
    assert ran.rows[0]["reward"] == 1.0
