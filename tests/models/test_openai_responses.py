"""What is peculiar to OpenAI's Responses API; what it shares with others is in `test_conformance.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import (
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
)
from proctor.models.openai_responses import OpenAIResponses
from proctor.trace import Message, Reply, ToolSpec

if TYPE_CHECKING:
    from tests.conftest import Provider

    Serve = Callable[..., Provider]

HELLO: Message = {"role": "user", "content": "hello"}
CALLED = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "arguments": "{}",
    "call_id": "call_a",
    "name": "weather",
}
UNSEALED = {
    "status": 400,
    "body": {
        "error": {
            "message": "Encrypted content is not supported with this model.",
            "type": "invalid_request_error",
            "param": "include",
            "code": None,
        }
    },
}


def answer(*output: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"body": {"status": "completed", "incomplete_details": None, "output": list(output), **more}}


def said(*parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": list(parts),
        **more,
    }


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "text": words, **more}


def ask(url: str, *messages: Message, times: int = 1, **request: Any) -> Reply:
    """Ask the same model a few times over; the last answer."""

    async def conversation() -> Reply:
        model = OpenAIResponses.at(Endpoint(model="tiny", url=url))
        try:
            for _ in range(times):
                reply = await model.complete(Request(messages or (HELLO,), **request))
            return reply
        finally:
            await model.close()

    return asyncio.run(conversation())


def body(*messages: Message, tools: tuple[ToolSpec, ...] = (), **sampling: Any) -> dict[str, Any]:
    """What would be sent."""
    model = OpenAIResponses(Endpoint(model="tiny", url="http://127.0.0.1:1/v1"))
    return model.body(Request(messages or (HELLO,), tools, sampling))


def failure(url: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(url)
    return caught.value


def test_nothing_is_stored_by_the_provider_unless_asked_for() -> None:
    assert body()["store"] is False
    assert body(store=True)["store"] is True


def test_a_model_that_does_not_think_is_asked_again_without_its_thoughts_and_then_never(
    provider: Serve,
) -> None:
    server = provider(UNSEALED, answer(said(text("hi"))))

    reply = ask(server.url, times=3)

    assert reply.text == "hi"
    assert ["include" in request.body for request in server.requests] == [True, False, False, False]


def test_a_refusal_of_something_else_is_not_asked_again(provider: Serve) -> None:
    server = provider({"status": 400, "body": {"error": {"message": "No such tool."}}})

    assert type(failure(server.url)) is RequestRefusedError
    assert len(server.requests) == 1


def test_what_the_user_wants_included_is_not_taken_back(provider: Serve) -> None:
    server = provider(UNSEALED)

    with pytest.raises(RequestRefusedError, match="Encrypted content"):
        ask(server.url, sampling={"include": ["reasoning.encrypted_content"]})

    assert len(server.requests) == 1
    assert body(include=["file_search_call.results"])["include"] == ["file_search_call.results"]


def test_the_effort_to_think_goes_to_its_place_beside_other_wishes() -> None:
    assert body(reasoning_effort="low")["reasoning"] == {"effort": "low"}
    assert body(reasoning_effort="low", reasoning={"summary": "auto"})["reasoning"] == {
        "effort": "low",
        "summary": "auto",
    }
    assert "reasoning_effort" not in body(reasoning_effort="low")


SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        (
            {"type": "json_schema", "json_schema": {"name": "point", "schema": SCHEMA, "strict": True}},
            {"type": "json_schema", "name": "point", "schema": SCHEMA, "strict": True},
        ),
        (
            {"type": "json_schema", "name": "point", "schema": SCHEMA},
            {"type": "json_schema", "name": "point", "schema": SCHEMA},
        ),
        ({"type": "json_object"}, {"type": "json_object"}),
        ({"type": "json_schema", "json_schema": "oops"}, {"type": "json_schema", "json_schema": "oops"}),
    ],
    ids=["of the chat API", "of this API", "without a schema", "nonsense, which the provider refuses"],
)
def test_a_wanted_format_goes_to_its_place_beside_other_wishes(wanted: Any, sent: Any) -> None:
    asked = body(response_format=wanted, text={"verbosity": "low"})

    assert asked["text"] == {"format": sent, "verbosity": "low"}
    assert "response_format" not in asked


def test_no_wanted_format_is_none() -> None:
    assert not body(response_format=None).keys() & {"text", "response_format"}


def test_calls_one_at_a_time_may_be_asked_for() -> None:
    assert body(parallel_tool_calls=False)["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("required", "required"),
        ({"type": "function", "function": {"name": "weather"}}, {"type": "function", "name": "weather"}),
        ({"type": "function", "name": "weather"}, {"type": "function", "name": "weather"}),
    ],
)
def test_a_choice_of_tools_is_understood_in_both_dialects(choice: Any, sent: Any) -> None:
    assert body(tool_choice=choice)["tool_choice"] == sent


def test_a_schema_is_not_made_stricter_than_its_author_wrote_it() -> None:
    schema = {"type": "object", "properties": {"city": {}}}

    assert body(tools=(ToolSpec("weather", "Tells.", schema),))["tools"] == [
        {
            "type": "function",
            "name": "weather",
            "description": "Tells.",
            "parameters": schema,
            "strict": False,
        }
    ]


def test_how_closely_to_look_at_an_image_is_passed_on() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}}
    own = {"type": "input_file", "file_id": "file_1"}

    assert body({"role": "user", "content": [part, own]})["input"][0]["content"] == [
        {"type": "input_image", "image_url": "https://example.com/cat.png", "detail": "low"},
        own,
    ]


def test_a_system_message_stays_where_it_was_said() -> None:
    late: Message = {"role": "system", "content": "Be kind."}

    assert [item["role"] for item in body(HELLO, late, HELLO)["input"]] == ["user", "system", "user"]


def test_a_refusal_is_the_answer(provider: Serve) -> None:
    reply = ask(provider(answer(said({"type": "refusal", "refusal": "I would rather not."}))).url)

    assert reply.text == "I would rather not."
    assert reply.finish_reason == "content_filter"


def test_what_only_the_provider_can_read_is_kept_only_where_something_would_be_lost(provider: Serve) -> None:
    plain = answer(said(text("Let me see.", logprobs=[]), phase=None), CALLED)
    phased = answer(said(text("Let me see."), phase="commentary"), CALLED)
    reordered = answer(CALLED, said(text("Let me see.")))

    assert "native" not in ask(provider(plain).url).message
    for lossy in (phased, reordered):
        message = ask(provider(lossy).url).message
        assert message["native"] == {"by": "openai_responses", "content": lossy["body"]["output"]}
        assert body(HELLO, message)["input"][1:] == lossy["body"]["output"]


def test_a_thought_that_came_unsealed_is_read_and_not_sent_back(provider: Serve) -> None:
    thought = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}

    message = ask(provider(answer(thought, said(text("42")))).url).message

    assert message["reasoning_content"] == "Hm."
    assert body(HELLO, message)["input"][1:] == [{"type": "message", "role": "assistant", "content": "42"}]


def test_a_thought_that_came_in_the_open_is_sent_back(provider: Serve) -> None:
    shown = [{"type": "reasoning_text", "text": "Six by seven."}]
    output = [{"id": "rs_1", "type": "reasoning", "summary": [], "content": shown}, said(text("42"))]

    message = ask(provider(answer(*output)).url).message

    assert message["reasoning_content"] == "Six by seven."
    assert body(HELLO, message)["input"][1:] == output


def test_log_probabilities_come_in_the_shape_of_the_chat_api(provider: Serve) -> None:
    token = {"token": "hi", "logprob": -0.1, "top_logprobs": []}

    reply = ask(provider(answer(said(text("hi", logprobs=[token])))).url)

    assert reply.logprobs is not None
    assert json.loads(bytes(reply.logprobs)) == {"content": [token]}


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("server_error", OverloadedError),
        ("rate_limit_exceeded", RateLimitError),
        ("invalid_prompt", RequestRefusedError),
        ("context_length_exceeded", ContextTooLongError),
        (503, OverloadedError),
        (None, OverloadedError),
    ],
)
def test_an_answer_that_failed_half_way_is_named_by_its_code(
    provider: Serve, code: Any, named: type[ModelError]
) -> None:
    broken = answer(status="failed", error={"code": code, "message": "It cannot be."})

    error = failure(provider(broken).url)

    assert type(error) is named
    assert "It cannot be." in str(error)


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress", "queued"])
def test_an_answer_that_never_ended_is_none(provider: Serve, status: str) -> None:
    error = failure(provider(answer(said(text("so")), status=status)).url)

    assert type(error) is MalformedReplyError
    assert status in str(error)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"incomplete_details": None}, "length"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"incomplete_details": {"reason": "from_the_future"}}, "from_the_future"),
    ],
)
def test_what_made_an_answer_incomplete_is_told(
    provider: Serve, more: Mapping[str, Any], reason: str
) -> None:
    incomplete = answer(said(text("so")), status="incomplete", **more)

    assert ask(provider(incomplete).url).finish_reason == reason


def test_a_server_that_says_nothing_of_its_limit_is_judged_by_its_count(provider: Serve) -> None:
    silent = {"status": "completed", "output": [said(text("so"))], "usage": {"output_tokens": 5}}
    telling = {**silent, "incomplete_details": None}

    assert ask(provider({"body": silent}).url, sampling={"max_tokens": 5}).truncated
    assert not ask(provider({"body": silent}).url, sampling={"max_tokens": 6}).truncated
    assert not ask(provider({"body": silent}).url).truncated
    assert not ask(provider({"body": telling}).url, sampling={"max_tokens": 5}).truncated


@pytest.mark.parametrize(
    "output",
    [
        "words",
        [1],
        [{"no": "type"}],
        [{"type": "message", "content": "words"}],
        [{**CALLED, "arguments": {}}],
    ],
    ids=json.dumps,
)
def test_items_nobody_can_read_are_said_to_be_so(provider: Serve, output: Any) -> None:
    error = failure(provider({"body": {"status": "completed", "output": output}}).url)

    assert type(error) is MalformedReplyError
    assert "did not answer with a response object" in str(error)
