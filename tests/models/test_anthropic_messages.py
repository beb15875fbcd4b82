"""What is peculiar to Anthropic's API; what it shares with others is in `test_conformance.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
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
from proctor.models.anthropic_messages import AnthropicMessages
from proctor.trace import Message, Reply, Usage

if TYPE_CHECKING:
    from tests.conftest import Provider

    Serve = Callable[..., Provider]

HELLO: Message = {"role": "user", "content": "hello"}
CALL = {"id": "call_a", "name": "weather", "arguments": "{}"}


def answer(*content: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"body": {"type": "message", "role": "assistant", "content": list(content), **more}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def ask(url: str, *messages: Message, headers: Mapping[str, str] | None = None, **request: Any) -> Reply:
    async def once() -> Reply:
        model = AnthropicMessages.at(Endpoint(model="tiny", url=url, headers=headers or {}))
        try:
            return await model.complete(Request(messages or (HELLO,), **request))
        finally:
            await model.close()

    return asyncio.run(once())


def body(*messages: Message, model: str = "tiny", **sampling: Any) -> dict[str, Any]:
    """What would be sent."""
    client = AnthropicMessages(Endpoint(model=model, url="http://127.0.0.1:1"))
    return client.body(Request(messages or (HELLO,), sampling=sampling))


def failure(url: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(url)
    return caught.value


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages", "/proxy", "/proxy/v1"])
def test_the_address_may_be_given_with_or_without_its_end(provider: Serve, ending: str) -> None:
    server = provider(answer(text("hi")))

    ask(server.url.removesuffix("/v1") + ending)

    prefix = "/proxy" if "proxy" in ending else ""
    assert server.requests[0].path == f"{prefix}/v1/messages"


def test_the_version_is_told_and_a_registry_may_tell_another(provider: Serve) -> None:
    server = provider(answer(text("hi")))

    ask(server.url)
    ask(server.url, headers={"Anthropic-Version": "2030-01-01", "anthropic-beta": "new"})

    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"
    assert server.requests[1].headers["anthropic-version"] == "2030-01-01"
    assert server.requests[1].headers["anthropic-beta"] == "new"


def test_a_gateway_that_is_authorized_in_its_own_way_is_not_sent_the_key(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = provider(answer(text("hi")))

    async def once() -> None:
        headers = {"Authorization": "Bearer token"}
        model = AnthropicMessages(Endpoint(model="tiny", url=server.url, key_var="MY_KEY", headers=headers))
        try:
            await model.complete(Request((HELLO,)))
        finally:
            await model.close()

    asyncio.run(once())

    assert server.requests[0].headers["authorization"] == "Bearer token"
    assert "sesame" not in str(server.requests[0].headers)


def test_the_limit_of_tokens_that_is_demanded_leaves_room_to_answer_after_thinking() -> None:
    thinking = {"type": "enabled", "budget_tokens": 10_000}

    assert body()["max_tokens"] == 4096
    assert body(max_tokens=None)["max_tokens"] == 4096
    assert body(thinking=thinking)["max_tokens"] == 14_096
    assert body(thinking=thinking, max_tokens=12_000)["max_tokens"] == 12_000
    assert body(thinking={"type": "adaptive"})["max_tokens"] == 4096


OLDER = [
    "claude-3-7-sonnet-20250219",
    "claude-opus-4-20250514",
    "claude-sonnet-4@20250514",
    "claude-opus-4-1",
    "claude-haiku-4-5-20251001",
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "anthropic/claude-sonnet-4.5",
]
LATER = [
    "claude-opus-4-6",
    "anthropic.claude-opus-4-6-v1",
    "claude-opus-4-10",
    "claude-4.6-sonnet",
    "claude-sonnet-5",
    "claude-opus-5-20270101",
    "claude-preview",
    "somebody-elses",
]


@pytest.mark.parametrize("model", OLDER)
def test_effort_is_a_budget_for_models_that_know_no_other(model: str) -> None:
    asked = body(model=model, reasoning_effort="medium")

    assert asked["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert asked["max_tokens"] == 4096 + 8192
    assert not asked.keys() & {"output_config", "reasoning_effort"}


@pytest.mark.parametrize("model", LATER)
def test_effort_is_a_word_for_later_models_that_are_asked_to_tell_their_thoughts(model: str) -> None:
    asked = body(model=model, reasoning_effort="medium")

    assert asked["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert asked["output_config"] == {"effort": "medium"}
    assert asked["max_tokens"] == 4096 + 8192


@pytest.mark.parametrize("model", [OLDER[0], LATER[0]])
def test_no_effort_is_no_thinking(model: str) -> None:
    asked = body(model=model, reasoning_effort="none")

    assert asked["thinking"] == {"type": "disabled"}
    assert asked["max_tokens"] == 4096
    assert "output_config" not in asked
    assert not body(model=model, reasoning_effort=None).keys() & {"thinking", "reasoning_effort"}


def test_the_least_effort_is_the_least_that_this_api_knows() -> None:
    assert body(reasoning_effort="minimal")["output_config"] == {"effort": "low"}
    assert body(model=OLDER[0], reasoning_effort="minimal")["thinking"]["budget_tokens"] == 1024


@pytest.mark.parametrize(("limit", "budget"), [(100_000, 24_576), (8000, 4000), (1500, 1024)])
def test_a_budget_leaves_room_below_the_limit_that_was_set(limit: int, budget: int) -> None:
    asked = body(model=OLDER[0], reasoning_effort="high", max_tokens=limit)

    assert (asked["max_tokens"], asked["thinking"]["budget_tokens"]) == (limit, budget)


@pytest.mark.parametrize("model", [OLDER[0], LATER[0]])
def test_who_says_how_to_think_is_obeyed(model: str) -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}

    asked = body(model=model, reasoning_effort="high", thinking=thinking)

    assert asked["thinking"] == thinking
    assert asked["output_config"] == {"effort": "high"}
    assert asked["max_tokens"] == 6096


def test_effort_and_format_stand_beside_what_the_user_says_in_this_apis_words() -> None:
    schema = {"type": "object", "properties": {}}
    wanted = {"type": "json_schema", "json_schema": {"name": "nothing", "schema": schema}}

    asked = body(
        reasoning_effort="low", response_format=wanted, output_config={"effort": "max", "from_the_future": 1}
    )

    assert asked["output_config"] == {
        "format": {"type": "json_schema", "schema": schema},
        "effort": "max",
        "from_the_future": 1,
    }
    assert "response_format" not in asked


@pytest.mark.parametrize("wanted", [{"type": "json_object"}, {"type": "json_schema", "json_schema": "oops"}])
def test_a_format_that_this_api_does_not_know_is_left_for_the_provider_to_refuse(wanted: Any) -> None:
    asked = body(response_format=wanted)

    assert asked["response_format"] == wanted
    assert "output_config" not in asked


def test_plain_text_is_what_comes_unasked() -> None:
    assert body(response_format={"type": "text"}) == body() == body(response_format=None)


@pytest.mark.parametrize(("stop", "sequences"), [("END", ["END"]), (["a", "b"], ["a", "b"])])
def test_stop_words_go_under_their_own_name(stop: Any, sequences: list[str]) -> None:
    assert body(stop=stop)["stop_sequences"] == sequences
    assert "stop" not in body(stop=stop)


def test_no_stop_words_are_not_sent() -> None:
    assert not {"stop", "stop_sequences"} & body(stop=None).keys()


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "weather"}}, {"type": "tool", "name": "weather"}),
        (
            {"type": "any", "disable_parallel_tool_use": True},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_a_choice_of_tools_is_understood_in_both_dialects(choice: Any, sent: Any) -> None:
    assert body(tool_choice=choice)["tool_choice"] == sent


def test_results_of_parallel_calls_and_what_the_user_adds_are_one_message_with_the_results_first() -> None:
    calls = [{**CALL, "id": "a"}, {**CALL, "id": "b"}]

    sent = body(
        HELLO,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "user", "content": "hurry up"},
        {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
    )

    assert sent["messages"] == [
        HELLO,
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "weather", "input": {}},
                {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "b", "content": ""},
                {"type": "text", "text": "hurry up"},
            ],
        },
    ]


def test_a_turn_in_which_nothing_was_said_is_left_out() -> None:
    nothing: Message = {"role": "assistant", "content": None}

    assert body(HELLO, nothing, {"role": "user", "content": "well?"})["messages"] == [
        {"role": "user", "content": [text("hello"), text("well?")]}
    ]


def test_system_messages_are_gathered_and_keep_what_their_parts_say() -> None:
    brief: Message = {"role": "system", "content": "Be brief."}
    late: Message = {"role": "developer", "content": "Be kind."}
    cached = {**text("A long story."), "cache_control": {"type": "ephemeral"}}

    assert body(brief, HELLO, late)["system"] == "Be brief.\n\nBe kind."
    assert body(brief, {"role": "system", "content": [cached]}, HELLO)["system"] == [
        text("Be brief."),
        cached,
    ]
    assert "system" not in body(HELLO)


def test_parts_in_anthropics_own_shape_pass_untouched() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}

    sent = body({"role": "user", "content": [document, text("what is it?")]})

    assert sent["messages"] == [{"role": "user", "content": [document, text("what is it?")]}]


def test_thoughts_go_back_in_the_order_they_came_hidden_ones_included(provider: Serve) -> None:
    content = [
        {"type": "thinking", "thinking": "First.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "hidden"},
        text("Let me see."),
        {"type": "thinking", "thinking": "Second.", "signature": "s2"},
        {"type": "tool_use", "id": "call_a", "name": "weather", "input": {"city": "Köln"}},
    ]
    server = provider(answer(*content, stop_reason="tool_use"), answer(text("Sunny.")))
    result: Message = {"role": "tool", "tool_call_id": "call_a", "content": "sunny"}

    first = ask(server.url)
    ask(server.url, HELLO, first.message, result)

    assert first.message["reasoning_content"] == "First.\n\nSecond."
    assert server.requests[1].body["messages"][1] == {"role": "assistant", "content": content}


def test_calls_that_an_environment_edited_are_sent_as_they_read_now(provider: Serve) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    use = {"type": "tool_use", "id": "call_a", "name": "weather", "input": {"city": "Ulm"}}
    first = ask(provider(answer(thought, use)).url).message
    edited = {**first, "tool_calls": [{**first["tool_calls"][0], "arguments": '{"city":"Bonn"}'}]}

    assert body(HELLO, edited)["messages"][1]["content"] == [{**use, "input": {"city": "Bonn"}}]


def test_what_only_the_provider_can_read_is_kept_only_where_something_would_be_lost(provider: Serve) -> None:
    use = {"type": "tool_use", "id": "call_a", "name": "weather", "input": {}}
    plain = answer({**text("hi"), "citations": None}, use)
    cited = answer({**text("hi"), "citations": [{"cited_text": "x"}]}, use)

    assert "native" not in ask(provider(plain).url).message
    assert ask(provider(cited).url).message["native"]["content"] == cited["body"]["content"]


@pytest.mark.parametrize(
    "native", [{"by": "anthropic_messages"}, {"by": "anthropic_messages", "content": [1]}]
)
def test_a_spoiled_keepsake_is_ignored(native: Any) -> None:
    spoiled: Message = {"role": "assistant", "content": "hi", "native": native}

    assert body(HELLO, spoiled)["messages"][1] == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("stop_sequence", "stop"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        (None, "stop"),
    ],
)
def test_every_reason_to_stop_is_told(provider: Serve, reason: str | None, ours: str) -> None:
    assert ask(provider(answer(text("so"), stop_reason=reason)).url).finish_reason == ours


def test_what_the_cache_gave_and_took_is_part_of_the_input(provider: Serve) -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 300,
        "cache_creation_input_tokens": 50,
        "output_tokens": 7,
    }

    assert ask(provider(answer(text("so"), usage=usage)).url).usage == Usage(360, 7, 300)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("authentication_error", AuthError),
        ("invalid_request_error", RequestRefusedError),
        ("request_too_large", ContextTooLongError),
        ("rate_limit_error", RateLimitError),
        ("overloaded_error", OverloadedError),
        ("from_the_future", OverloadedError),
    ],
)
def test_an_error_that_comes_as_a_success_is_named_by_its_type(
    provider: Serve, kind: str, named: type[ModelError]
) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "It cannot be."}}

    assert type(failure(provider({"body": error}).url)) is named


def test_a_limit_that_does_not_fit_beside_the_prompt_is_a_conversation_too_long(provider: Serve) -> None:
    words = "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}

    assert type(failure(provider({"status": 400, "body": error}).url)) is ContextTooLongError


@pytest.mark.parametrize(
    "content",
    ["words", [1], [{"text": "no type"}], [{"type": "text", "text": 5}], [{"type": "tool_use", "input": []}]],
    ids=json.dumps,
)
def test_blocks_nobody_can_read_are_said_to_be_so(provider: Serve, content: Any) -> None:
    error = failure(provider({"body": {"type": "message", "content": content}}).url)

    assert type(error) is MalformedReplyError
    assert "did not answer with a message" in str(error)
