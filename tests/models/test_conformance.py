"""What every client type owes its users, asked of each of them through the same sentences.

The provider is a server on this machine that speaks the client's wire format: see `conformance/wires.py`.
A client type that declares fewer features is excused from their tests, from nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import evaluate, plugins
from proctor.config.endpoints import Endpoint
from proctor.contracts import Model, Request
from proctor.env.rubric import Rubric
from proctor.env.tool_env import ToolEnv
from proctor.errors import (
    AuthError,
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
)
from proctor.models.http_model import HttpModel
from proctor.trace import Message, Reply, ToolSpec, Usage

from .conformance import wires
from .conformance.wires import Answer, Call, Wire

if TYPE_CHECKING:
    from tests.conftest import Provider

    Serve = Callable[..., Provider]

WIRES = wires.every_wire()

HELLO: Message = {"role": "user", "content": "hello"}
WEATHER = ToolSpec(
    "weather",
    "Tells the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {}})
CALLS = (
    Call("call_a", "weather", '{"city":"Ulm"}'),
    Call("call_b", "clock", "{}"),
    Call("call_c", "weather", '{"city":"Köln"}'),
)
ADDING = Call("call_a", "add", '{"a":2,"b":3}')
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
ADDRESS = {"type": "image_url", "image_url": {"url": "https://pictures.example.com/cat.jpg"}}


def those_with(*features: str) -> pytest.MarkDecorator:
    able = [wire for wire in WIRES if set(features) <= wire.features]
    return pytest.mark.parametrize("wire", able, ids=lambda wire: wire.client_type)


EVERY = those_with()


def model_at(wire: Wire, url: str, **settings: Any) -> Model:
    """The client that users get when they name this type."""
    settings = {"request_seconds": 10.0, **settings}
    address = url.removesuffix("/v1") + wire.base
    endpoint = Endpoint(model="tiny", client_type=wire.client_type, url=address, **settings)
    model: Model = plugins.load(plugins.MODELS, wire.client_type).at(endpoint)
    return model


def ask(
    wire: Wire,
    server: Provider,
    *messages: Message,
    tools: Sequence[ToolSpec] = (),
    sampling: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    registered: Mapping[str, str] | None = None,
    **settings: Any,
) -> Reply:
    """Ask once; `headers` are the request's, `registered` the endpoint's."""

    async def once() -> Reply:
        model = model_at(wire, server.url, headers=registered or {}, **settings)
        try:
            return await model.complete(Request(messages or (HELLO,), tools, sampling or {}, headers or {}))
        finally:
            await model.close()

    return asyncio.run(once())


def failure(wire: Wire, server: Provider, *messages: Message, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(wire, server, *messages, **settings)
    return caught.value


def answering(wire: Wire, provider: Serve, *answers: Answer) -> Provider:
    return provider(*({"body": wire.reply(answer)} for answer in answers))


def result_of(call: Call, content: Any) -> Message:
    return {"role": "tool", "tool_call_id": call.id, "content": content}


# What is said


@EVERY
def test_a_text_comes_back_with_its_usage_and_who_served_it(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("good day", usage=Usage(11, 5)))

    reply = ask(wire, server)

    assert reply.text == "good day"
    assert reply.message["role"] == "assistant"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(11, 5)
    assert (reply.model, reply.id) == ("served", "reply-1")
    [request] = server.requests
    assert request.path == wire.path
    assert wire.turns(request.body) == [("user", "hello")]


@EVERY
def test_an_answer_is_an_ordinary_message_that_json_can_hold(wire: Wire, provider: Serve) -> None:
    reply = ask(wire, answering(wire, provider, Answer("so"))).message

    assert json.loads(json.dumps(reply)) == reply
    assert ("native" in reply) == (wires.TOKEN_IDS in wire.features)


@those_with(wires.SYSTEM)
def test_a_system_prompt_arrives_as_one(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))

    ask(wire, server, {"role": "system", "content": "Be brief."}, HELLO)

    assert wire.system(server.requests[0].body) == "Be brief."
    assert wire.turns(server.requests[0].body) == [("user", "hello")]


@those_with(wires.SYSTEM)
def test_a_conversation_arrives_in_its_order(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("five"))
    said = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"), ("user", "more")]

    ask(wire, server, *({"role": role, "content": text} for role, text in said))

    assert wire.turns(server.requests[0].body) == said


@those_with(wires.SYSTEM)
def test_two_user_messages_in_a_row_are_both_heard(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))

    ask(wire, server, HELLO, {"role": "user", "content": "are you there?"})

    heard = wire.turns(server.requests[0].body)
    assert {role for role, _ in heard} == {"user"}
    assert "".join(text for _, text in heard) == "helloare you there?"


@EVERY
def test_text_parts_are_read_as_their_text(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))

    ask(wire, server, {"role": "user", "content": [{"type": "text", "text": "hello"}]})

    assert wire.turns(server.requests[0].body) == [("user", "hello")]


@EVERY
def test_asking_changes_nothing_in_what_was_asked(wire: Wire, provider: Serve) -> None:
    messages: list[Message] = [HELLO, {"role": "assistant", "content": "hi"}, HELLO]
    before = json.dumps(messages)
    sampling = {"max_tokens": 5, "stop": "END"}

    ask(wire, answering(wire, provider, Answer("ok")), *messages, sampling=sampling)

    assert json.dumps(messages) == before
    assert sampling == {"max_tokens": 5, "stop": "END"}


# Tools


@those_with(wires.TOOLS)
def test_tools_are_offered_by_name_with_description_and_schema(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))

    ask(wire, server, tools=(WEATHER, CLOCK))

    assert wire.tools(server.requests[0].body) == ["weather", "clock"]
    offered = server.requests[0].content.decode()
    assert "Tells the weather." in offered
    assert '"city":{"type":"string"}' in offered


@those_with(wires.TOOLS)
def test_parallel_tool_calls_come_back_in_order(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("Let me see.", calls=CALLS, finish_reason="tool_calls"))

    reply = ask(wire, server, tools=(WEATHER, CLOCK))

    assert [(call["name"], json.loads(call["arguments"])) for call in reply.tool_calls] == [
        ("weather", {"city": "Ulm"}),
        ("clock", {}),
        ("weather", {"city": "Köln"}),
    ]
    assert len({call["id"] for call in reply.tool_calls}) == 3
    assert reply.text == "Let me see."
    assert reply.finish_reason == "tool_calls"


@those_with(wires.TOOLS)
def test_calls_and_their_results_go_back_together(wire: Wire, provider: Serve) -> None:
    asking = Answer("Let me see.", calls=CALLS, finish_reason="tool_calls")
    server = answering(wire, provider, asking, Answer("Sunny."))
    first = ask(wire, server, tools=(WEATHER, CLOCK))
    results = ["sunny", "noon", "rain"]

    ask(
        wire,
        server,
        HELLO,
        first.message,
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(first.tool_calls, results, strict=True)
        ),
        tools=(WEATHER, CLOCK),
    )

    body = server.requests[1].body
    assert [(call.name, json.loads(call.arguments)) for call in wire.tool_calls(body)] == [
        (call.name, json.loads(call.arguments)) for call in CALLS
    ]
    assert list(wire.tool_results(body).values()) == results
    assert list(wire.tool_results(body)) == [call.id for call in wire.tool_calls(body)]
    assert ("assistant", "Let me see.") in wire.turns(body)


@those_with(wires.TOOLS)
def test_calls_in_openais_shape_that_a_dataset_brings_are_understood(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))
    call = {
        "id": "call_a",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Ulm"}'},
    }

    ask(
        wire,
        server,
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result_of(CALLS[0], "sunny"),
        tools=(WEATHER,),
    )

    body = server.requests[0].body
    assert [(sent.name, sent.arguments) for sent in wire.tool_calls(body)] == [("weather", '{"city":"Ulm"}')]
    assert list(wire.tool_results(body).values()) == ["sunny"]


@those_with(wires.TOOLS)
def test_arguments_that_are_no_json_stop_nobody(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))
    call = {"id": "call_a", "name": "weather", "arguments": '{"city": '}

    ask(
        wire,
        server,
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result_of(CALLS[0], "The arguments are no JSON."),
        tools=(WEATHER,),
    )

    assert wire.tool_results(server.requests[0].body) == {"call_a": "The arguments are no JSON."}
    assert '{\\"city\\": ' in server.requests[0].content.decode()


# Images


@those_with(wires.IMAGES)
@pytest.mark.parametrize(
    ("part", "seen"),
    [(PICTURE, ("image/png", PNG)), (ADDRESS, ("url", "https://pictures.example.com/cat.jpg"))],
    ids=["data", "address"],
)
def test_an_image_arrives_beside_the_text(
    wire: Wire, provider: Serve, part: Mapping[str, Any], seen: tuple[str, str]
) -> None:
    server = answering(wire, provider, Answer("a cat"))

    ask(wire, server, {"role": "user", "content": [{"type": "text", "text": "what is it?"}, part]})

    assert wire.images(server.requests[0].body) == [seen]
    assert wire.turns(server.requests[0].body) == [("user", "what is it?")]


@those_with(wires.TOOLS, wires.TOOL_IMAGES)
def test_a_tool_may_answer_with_an_image(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("a cat"))
    call = {"id": "call_a", "name": "weather", "arguments": '{"city":"Ulm"}'}

    ask(
        wire,
        server,
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result_of(CALLS[0], [{"type": "text", "text": "from the roof"}, PICTURE]),
        tools=(WEATHER,),
    )

    assert wire.images(server.requests[0].body) == [("image/png", PNG)]
    assert list(wire.tool_results(server.requests[0].body).values()) == ["from the roof"]


# Thoughts


@those_with(wires.REASONING)
def test_thoughts_are_kept_beside_the_answer(wire: Wire, provider: Serve) -> None:
    reply = ask(wire, answering(wire, provider, Answer("42", reasoning="Six by seven.")))

    assert reply.text == "42"
    assert reply.message["reasoning_content"] == "Six by seven."


@those_with(wires.REASONING, wires.KEPT_THOUGHTS)
def test_sealed_thoughts_go_back_to_who_thought_them(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("42", reasoning="Six by seven."), Answer("43"))

    first = ask(wire, server).message
    ask(wire, server, HELLO, json.loads(json.dumps(first)), {"role": "user", "content": "and one more?"})

    body = server.requests[1].body
    assert first["native"]["by"] == wire.client_type
    assert wire.seals(body) == [wires.SEAL]
    assert wire.turns(body) == [("user", "hello"), ("assistant", "42"), ("user", "and one more?")]


@those_with(wires.REASONING, wires.KEPT_THOUGHTS, wires.TOOLS)
def test_sealed_thoughts_and_the_calls_they_led_to_go_back_together(wire: Wire, provider: Serve) -> None:
    asking = Answer("", reasoning="I must look.", calls=CALLS[:1], finish_reason="tool_calls")
    server = answering(wire, provider, asking, Answer("Sunny."))
    first = ask(wire, server, tools=(WEATHER,))
    result = {"role": "tool", "tool_call_id": first.tool_calls[0]["id"], "content": "sunny"}

    ask(wire, server, HELLO, first.message, result, tools=(WEATHER,))

    body = server.requests[1].body
    assert wire.seals(body) == [wires.SEAL]
    assert [(call.name, call.arguments) for call in wire.tool_calls(body)] == [("weather", '{"city":"Ulm"}')]
    assert list(wire.tool_results(body).values()) == ["sunny"]


@those_with(wires.REASONING, wires.KEPT_THOUGHTS)
@pytest.mark.parametrize("edit", [{"content": "41"}, {"reasoning_content": "Six by eight."}], ids=json.dumps)
def test_a_message_that_an_environment_edited_is_sent_as_it_reads_now(
    wire: Wire, provider: Serve, edit: Mapping[str, Any]
) -> None:
    server = answering(wire, provider, Answer("42", reasoning="Six by seven."), Answer("ok"))
    edited = {**ask(wire, server).message, **edit}

    ask(wire, server, HELLO, edited, HELLO)

    body = server.requests[1].body
    assert wire.seals(body) == []
    assert ("assistant", edited["content"]) in wire.turns(body)


@EVERY
def test_what_another_provider_sealed_is_not_sent(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("ok"))
    native = {"by": "somebody_else", "content": [{"type": "thinking", "signature": "theirs"}]}

    ask(wire, server, HELLO, {"role": "assistant", "content": "42", "native": native}, HELLO)

    sent = server.requests[0].content.decode()
    assert "42" in sent
    assert "theirs" not in sent
    assert "somebody_else" not in sent


# Why it stopped, what it took


@EVERY
@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_the_reason_to_stop_is_told_in_our_words(wire: Wire, provider: Serve, reason: str) -> None:
    reply = ask(wire, answering(wire, provider, Answer("so far", finish_reason=reason)))

    assert reply.finish_reason == reason
    assert reply.truncated == (reason == "length")
    assert reply.text == "so far"


@EVERY
def test_an_answer_blocked_before_its_first_word_is_an_answer(wire: Wire, provider: Serve) -> None:
    reply = ask(wire, answering(wire, provider, Answer("", finish_reason="content_filter")))

    assert reply.finish_reason == "content_filter"
    assert reply.text == ""


@those_with(wires.CACHED_TOKENS)
def test_the_input_counts_all_tokens_and_says_which_were_cached(wire: Wire, provider: Serve) -> None:
    reply = ask(wire, answering(wire, provider, Answer("x", usage=Usage(100, 50, 80))))

    assert reply.usage == Usage(100, 50, 80)


@those_with(wires.REASONING_TOKENS)
def test_tokens_spent_on_thoughts_are_part_of_the_output(wire: Wire, provider: Serve) -> None:
    reply = ask(wire, answering(wire, provider, Answer("x", usage=Usage(100, 50, 0, 40))))

    assert reply.usage == Usage(100, 50, 0, 40)


@EVERY
def test_a_server_that_counts_nothing_is_still_understood(wire: Wire, provider: Serve) -> None:
    body = wire.reply(Answer("x"))
    without = {name: value for name, value in body.items() if "usage" not in name.lower()}

    assert ask(wire, provider({"body": without})).usage == Usage()


# What is asked for


@EVERY
def test_the_limit_of_tokens_goes_under_the_providers_own_name(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("x"))

    ask(wire, server, sampling={"max_tokens": 17})

    assert wire.max_tokens(server.requests[0].body) == 17


@those_with(wires.EFFORT)
@pytest.mark.parametrize("word", ["low", "medium", "high"])
def test_how_hard_to_think_is_said_in_one_word_for_all(wire: Wire, provider: Serve, word: str) -> None:
    server = answering(wire, provider, Answer("x"))

    ask(wire, server, sampling={"reasoning_effort": word})

    body = server.requests[0].body
    assert wire.effort(body) == word
    is_own_word = wire.client_type.startswith("openai_chat")
    assert ("reasoning_effort" in body) == is_own_word


@those_with(wires.FORMATS)
def test_an_answer_is_held_to_a_schema_that_is_written_once_for_all(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("{}"))
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
    described = {"name": "point", "schema": schema, "strict": True}

    ask(wire, server, sampling={"response_format": {"type": "json_schema", "json_schema": described}})

    body = server.requests[0].body
    assert wire.schema(body) == schema
    is_own_word = wire.client_type.startswith("openai_chat")
    assert ("response_format" in body) == is_own_word


@those_with(wires.FORMATS)
def test_who_wants_plain_text_gets_it(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("x"))

    ask(wire, server, sampling={"response_format": {"type": "text"}})

    assert wire.schema(server.requests[0].body) is None


@EVERY
def test_parameters_we_do_not_know_pass_untouched(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("x"))
    wish = {"from_the_future": {"deeply": [1, None, "x"]}}

    ask(wire, server, sampling={"another_wish": 0.25, **wish})

    assert '"another_wish":0.25' in server.requests[0].content.decode()
    assert '"from_the_future":{"deeply":[1,null,"x"]}' in server.requests[0].content.decode()


# Who asks


@EVERY
def test_the_key_travels_in_the_providers_own_header(
    wire: Wire, provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = answering(wire, provider, Answer("x"))

    ask(wire, server, key_var="MY_KEY")

    headers = server.requests[0].headers
    assert {name: value for name, value in headers.items() if "sesame" in value} == wire.key_headers("sesame")
    assert "sesame" not in server.requests[0].path


@EVERY
def test_no_key_is_made_up(wire: Wire, provider: Serve) -> None:
    server = answering(wire, provider, Answer("x"))

    ask(wire, server)

    assert not wire.key_headers("").keys() & server.requests[0].headers.keys()


@EVERY
def test_the_registrys_headers_win_over_ours_and_the_requests_over_both(
    wire: Wire, provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = answering(wire, provider, Answer("x"))
    [key_name] = wire.key_headers("")
    registered = {key_name.title(): "mine", "X-Team": "blue", "X-Task": "none"}

    ask(wire, server, key_var="MY_KEY", headers={"x-task": "7"}, registered=registered)

    headers = server.requests[0].headers
    assert headers[key_name] == "mine"
    assert (headers["x-team"], headers["x-task"]) == ("blue", "7")
    assert "sesame" not in str(headers)


# What goes wrong

FAILURES: list[tuple[int, str, type[ModelError]]] = [
    (401, "auth", AuthError),
    (403, "auth", AuthError),
    (400, "refused", RequestRefusedError),
    (404, "not_found", RequestRefusedError),
    (429, "rate_limit", RateLimitError),
    (500, "overloaded", OverloadedError),
    (503, "overloaded", OverloadedError),
    (504, "overloaded", ModelTimeoutError),
    (529, "overloaded", OverloadedError),
]


@EVERY
@pytest.mark.parametrize(("status", "kind", "named"), FAILURES)
def test_every_status_becomes_the_error_that_names_its_cause(
    wire: Wire, provider: Serve, status: int, kind: str, named: type[ModelError]
) -> None:
    server = provider({"status": status, "body": wire.error(status, "It cannot be.", kind)})

    error = failure(wire, server)

    assert type(error) is named
    assert error.status == status
    assert "It cannot be" in str(error)
    assert len(server.requests) == 1


@EVERY
def test_a_conversation_that_does_not_fit_is_told_from_other_refusals(wire: Wire, provider: Serve) -> None:
    server = provider({"status": 400, "body": wire.error(400, wire.too_long, "too_long")})

    error = failure(wire, server)

    assert type(error) is ContextTooLongError
    assert wire.too_long in str(error)


@EVERY
def test_a_rate_limit_says_when_to_come_back(wire: Wire, provider: Serve) -> None:
    body = wire.error(429, "slower", "rate_limit")

    error = failure(wire, provider({"status": 429, "headers": {"Retry-After": "7"}, "body": body}))

    assert isinstance(error, RateLimitError)
    assert error.retry_after_seconds == 7


@EVERY
def test_an_error_that_comes_as_a_success_is_an_error(wire: Wire, provider: Serve) -> None:
    error = failure(wire, provider({"body": wire.error(529, "Come back later.", "overloaded")}))

    assert type(error) is OverloadedError
    assert "Come back later." in str(error)


@EVERY
@pytest.mark.parametrize(
    "body",
    ["hello?", "", "[]", "{}", "null", b'{"\xff": 1}', '{"a":' + "[" * 5000],
    ids=["words", "nothing", "a list", "an empty object", "null", "no UTF-8", "a pit"],
)
def test_an_answer_nobody_can_read_is_said_to_be_so(wire: Wire, provider: Serve, body: Any) -> None:
    error = failure(wire, provider({"body": body}))

    assert type(error) is MalformedReplyError
    assert len(str(error)) < 500


@EVERY
def test_a_server_that_never_answers_is_left_after_the_time_given(wire: Wire, provider: Serve) -> None:
    error = failure(wire, provider({"hangs": True}), request_seconds=0.2)

    assert isinstance(error, ModelTimeoutError)


# In a run


@those_with(wires.TOOLS)
def test_an_environment_with_tools_is_played_to_its_end(wire: Wire, provider: Serve) -> None:
    asking = Answer("", reasoning="I must add.", calls=(ADDING,), finish_reason="tool_calls")
    server = answering(wire, provider, asking, Answer("It is 5."))

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def correct(completion: list[Message], answer: str) -> float:
        return float(answer in completion[-1]["content"])

    tasks = [{"question": "What is 2 + 3?", "answer": "5"}]
    environment = ToolEnv(tasks, tools=[add], rubric=Rubric(correct), system_prompt="Use the tool.")

    [rollout] = asyncio.run(evaluate(environment, model_at(wire, server.url), rollouts_per_example=1))

    assert rollout.score is not None, rollout.failure
    assert rollout.score.reward == 1
    body = server.requests[1].body
    assert wire.system(body) == "Use the tool."
    assert list(wire.tool_results(body).values()) == ["5"]
    assert wire.seals(body) == ([wires.SEAL] if wires.KEPT_THOUGHTS in wire.features else [])


# Before anything is paid for


def check(wire: Wire, server: Provider, **settings: Any) -> None:
    async def once() -> None:
        model = model_at(wire, server.url, **settings)
        try:
            await model.check()
        finally:
            await model.close()

    asyncio.run(once())


@EVERY
def test_a_bad_key_is_found_before_anything_is_paid_for(
    wire: Wire, provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "wrong")
    server = provider(models={"status": 401, "body": wire.error(401, "Who are you?", "auth")})

    with pytest.raises(AuthError, match="check the API key in MY_KEY"):
        check(wire, server, key_var="MY_KEY")

    assert not server.requests
    [asked] = server.checks
    assert asked.path.partition("?")[0] == wire.check_path
    assert wire.key_headers("wrong").items() <= asked.headers.items()


@EVERY
@pytest.mark.parametrize("status", [200, 403, 404, 500])
def test_a_server_that_cannot_list_its_models_may_still_answer(
    wire: Wire, provider: Serve, status: int
) -> None:
    check(wire, provider(models={"status": status, "body": {}}))


# What was once exchanged

RECORDINGS = sorted(Path(__file__).with_name("recordings").glob("*.json"))


def test_every_client_type_that_speaks_to_a_provider_has_a_wire_and_a_recording() -> None:
    ours = [point for point in entry_points(group=plugins.MODELS) if point.value.startswith("proctor.")]
    speaking = {point.name for point in ours if issubclass(point.load(), HttpModel)}

    assert {wire.client_type for wire in WIRES} == speaking
    assert {path.stem for path in RECORDINGS} == speaking


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_exchange_is_repeated_byte_for_byte(path: Path, provider: Serve) -> None:
    recording = json.loads(path.read_text(encoding="utf-8"))
    wire = wires.WIRES[path.stem]
    exchange = recording["exchange"]
    server = provider(*({"body": each["response"]} for each in exchange))
    tools = [ToolSpec(**tool) for tool in recording["tools"]]

    async def conversation() -> list[Reply]:
        model = model_at(wire, server.url)
        messages, replies = list(recording["messages"]), []
        try:
            for turn in (each for each in exchange if "then" in each):  # others only prepare one
                replies.append(await model.complete(Request(messages, tools, recording["sampling"])))
                messages = [*messages, replies[-1].message, *turn["then"]]
        finally:
            await model.close()
        return replies

    replies = asyncio.run(conversation())

    sent = [(request.path, request.content.decode()) for request in server.requests]
    assert sent == [(each.get("path", wire.path), each["request"]) for each in exchange]
    assert replies[-1].text == recording["answer"]
    assert [reply.usage for reply in replies] == [Usage(**used) for used in recording["usage"]]
