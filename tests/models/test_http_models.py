"""The OpenAI clients against a real server on this machine that does as it is told."""

from __future__ import annotations

import asyncio
import email.utils
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import evaluate
from proctor.config.endpoints import Endpoint
from proctor.contracts import Model, Request
from proctor.env.echo import EchoEnvironment
from proctor.errors import (
    AuthError,
    ConfigError,
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.models.openai_chat import OpenAIChat
from proctor.models.openai_completions import OpenAICompletions
from proctor.trace import Message, Reply, ToolSpec, Usage
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.conftest import Answer, Provider, Ran

    Serve = Callable[..., Provider]

BOTH = pytest.mark.parametrize("kind", [OpenAIChat, OpenAICompletions])

HELLO: Message = {"role": "user", "content": "hello"}
WEATHER = ToolSpec("weather", "Tells the weather.", {"type": "object", "properties": {"city": {}}})


def ask(
    kind: type[OpenAIChat] | type[OpenAICompletions],
    url: str,
    *messages: Message,
    times: int = 1,
    pause_seconds: float = 0.0,
    key_var: str | None = None,
    headers: dict[str, str] | None = None,
    request_seconds: float = 10.0,
    **request: Any,
) -> list[Reply]:
    """Ask a model the same thing a few times over, and close it."""

    async def conversation() -> list[Reply]:
        model = kind.at(
            Endpoint(
                model="tiny",
                url=url,
                key_var=key_var,
                headers=headers or {},
                request_seconds=request_seconds,
            )
        )
        replies = []
        try:
            for number in range(times):
                if number:
                    await asyncio.sleep(pause_seconds)
                replies.append(await model.complete(Request(messages or (HELLO,), **request)))
        finally:
            await model.close()
        return replies

    return asyncio.run(conversation())


def failure(kind: type[OpenAIChat] | type[OpenAICompletions], url: str, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(kind, url, **settings)
    return caught.value


# What is said


@BOTH
def test_a_text_comes_back_with_its_usage_and_the_model_that_served_it(
    kind: type[OpenAIChat] | type[OpenAICompletions], provider: Serve
) -> None:
    server = provider("good day")

    [reply] = ask(kind, server.url)

    assert reply.text == "good day"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(input_tokens=7, output_tokens=3)
    assert (reply.model, reply.id) == ("served", "reply-1")
    assert server.requests[0].body["model"] == "tiny"


def test_a_chat_goes_to_the_server_message_by_message(provider: Serve) -> None:
    server = provider()
    system: Message = {"role": "system", "content": "Be brief."}

    ask(OpenAIChat, server.url, system, HELLO)

    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body == {"model": "tiny", "messages": [system, HELLO]}


def test_a_base_model_is_sent_the_conversation_as_one_text(provider: Serve) -> None:
    server = provider()

    ask(OpenAICompletions, server.url, {"role": "system", "content": "Be brief."}, HELLO)

    assert server.requests[0].path == "/v1/completions"
    assert server.requests[0].body == {"model": "tiny", "prompt": "Be brief.\n\nhello"}


def test_images_and_unknown_parts_pass_untouched(provider: Serve) -> None:
    server = provider("a cat")
    picture: Message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "what is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "from_the_future", "anything": [1, None]},
        ],
    }

    ask(OpenAIChat, server.url, picture)

    assert server.requests[0].body["messages"] == [picture]


def test_unknown_sampling_parameters_pass_untouched(provider: Serve) -> None:
    server = provider("x")
    sampling = {"temperature": 0, "min_p": 0.05, "chat_template_kwargs": {"thinking": False}, "stop": None}

    ask(OpenAIChat, server.url, sampling=sampling)
    ask(OpenAICompletions, server.url, sampling=sampling)

    for request in server.requests:
        assert {name: request.body[name] for name in sampling} == sampling


def test_openai_itself_is_told_max_completion_tokens_and_everybody_else_max_tokens() -> None:
    request = Request((HELLO,), sampling={"max_tokens": 5})

    here = OpenAIChat(Endpoint(model="tiny", url="http://127.0.0.1:1/v1")).body(request)
    there = OpenAIChat(Endpoint(model="o4-mini", url="https://api.openai.com/v1")).body(request)

    assert here["max_tokens"] == 5
    assert there["max_completion_tokens"] == 5
    assert "max_tokens" not in there


def test_parallel_tool_calls_are_objects_with_the_arguments_as_the_model_wrote_them(provider: Serve) -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}},
        {"id": "b", "type": "function", "function": {"name": "weather", "arguments": "{city: nowhere"}},
    ]
    server = provider({"tool_calls": calls})

    [reply] = ask(OpenAIChat, server.url, tools=(WEATHER,))

    assert reply.tool_calls == [
        {"id": "a", "name": "weather", "arguments": '{"city": "Ulm"}'},
        {"id": "b", "name": "weather", "arguments": "{city: nowhere"},
    ]
    assert reply.finish_reason == "tool_calls"
    assert server.requests[0].body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Tells the weather.",
                "parameters": {"type": "object", "properties": {"city": {}}},
            },
        }
    ]


def test_tool_calls_without_ids_or_with_arguments_as_an_object_are_read_all_the_same(provider: Serve) -> None:
    calls = [
        {"function": {"name": "weather", "arguments": {"city": "Ulm"}}},
        {"function": {"name": "weather", "arguments": None}},
    ]

    [reply] = ask(OpenAIChat, provider({"tool_calls": calls}).url)

    assert reply.tool_calls == [
        {"id": "call_0", "name": "weather", "arguments": '{"city":"Ulm"}'},
        {"id": "call_1", "name": "weather", "arguments": "{}"},
    ]


def test_a_turn_with_tool_calls_and_reasoning_is_sent_back_as_openai_expects_it(provider: Serve) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    first: Answer = {"tool_calls": [call], "reasoning_content": "Let me look."}
    server = provider(first, "sunny")
    [reply] = ask(OpenAIChat, server.url)
    result: Message = {"role": "tool", "tool_call_id": "a", "content": "sunny"}

    ask(OpenAIChat, server.url, HELLO, reply.message, result)

    assert server.requests[1].body["messages"] == [
        HELLO,
        {"role": "assistant", "content": None, "reasoning_content": "Let me look.", "tool_calls": [call]},
        result,
    ]


def test_a_prompt_that_is_already_in_openais_shape_passes_untouched(provider: Serve) -> None:
    server = provider("sunny")
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    turns: list[Message] = [
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        {"role": "assistant", "content": "It is sunny.", "tool_calls": None},
        HELLO,
    ]

    ask(OpenAIChat, server.url, *turns)

    assert server.requests[0].body["messages"] == turns


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_beside_the_answer_under_its_own_name(provider: Serve, field: str) -> None:
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "x"}]
    message = {"role": "assistant", "content": "42", field: "Hm.", "reasoning_details": details}

    [reply] = ask(OpenAIChat, provider({"message": message}).url)

    assert reply.text == "42"
    assert reply.message[field] == "Hm."
    assert reply.message["reasoning_details"] == details


def test_a_refusal_is_the_answer(provider: Serve) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I would rather not."}

    [reply] = ask(OpenAIChat, provider({"message": message}).url)

    assert reply.text == "I would rather not."


@BOTH
@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_the_reason_to_stop_is_kept_and_length_means_truncated(
    kind: type[OpenAIChat] | type[OpenAICompletions], provider: Serve, reason: str
) -> None:
    [reply] = ask(kind, provider({"text": "so far", "finish_reason": reason}).url)

    assert reply.finish_reason == reason
    assert reply.truncated == (reason == "length")


def test_cached_and_reasoning_tokens_are_counted(provider: Serve) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 40},
        "cost": 0.1,
    }

    [reply] = ask(OpenAIChat, provider({"text": "x", "usage": usage}).url)

    assert reply.usage == Usage(100, 50, 80, 40)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens_details": None, "completion_tokens_details": {"reasoning_tokens": None}},
    ],
)
def test_a_server_that_counts_nothing_is_still_understood(provider: Serve, usage: Any) -> None:
    [reply] = ask(OpenAIChat, provider({"text": "x", "usage": usage}).url)

    assert reply.usage == Usage()


@BOTH
def test_log_probabilities_are_kept_as_they_came(
    kind: type[OpenAIChat] | type[OpenAICompletions], provider: Serve
) -> None:
    logprobs = {"content": [{"token": "hi", "logprob": -0.1, "top_logprobs": []}]}
    choice = {"text": "hi", "message": {"content": "hi"}, "logprobs": logprobs}
    server = provider({"body": {"choices": [choice]}}, {"body": {"choices": [{**choice, "logprobs": None}]}})

    with_them, without = ask(kind, server.url, times=2)

    assert with_them.logprobs is not None
    assert json.loads(bytes(with_them.logprobs)) == logprobs
    assert without.logprobs is None


def test_tools_for_a_base_model_are_refused_before_anything_is_sent(provider: Serve) -> None:
    server = provider()

    error = failure(OpenAICompletions, server.url, tools=(WEATHER,))

    assert isinstance(error, RequestRefusedError)
    assert not server.requests


# Who asks


def test_the_command_line_sends_its_headers_key_and_sampling(
    provider: Serve, proctor: Callable[..., Ran]
) -> None:
    server = provider()

    ran = proctor(
        *("eval", "run", "echo", "-n", "2", "-r", "2", "-m", "tiny", "-b", server.url, "-k", "MY_KEY"),
        *("--header", "X-Team: blue", "-t", "17", "-T", "0.5", "-S", '{"top_k": 3, "temperature": 0.9}'),
        environ={"MY_KEY": "sesame"},
    )

    assert ran.code == 0, ran.stderr
    assert len(server.requests) == 4
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer sesame"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["x-team"] == "blue"
        assert {name: request.body.get(name) for name in ("max_tokens", "temperature", "top_k")} == {
            "max_tokens": 17,
            "temperature": 0.9,
            "top_k": 3,
        }
    assert sorted(request.headers["x-session-id"] for request in server.requests) == ["0", "0", "1", "1"]


def test_a_header_may_be_read_from_the_rollouts_state(provider: Serve, proctor: Callable[..., Ran]) -> None:
    server = provider()

    ran = proctor(
        *("eval", "run", "echo", "-n", "1", "-r", "1", "-m", "tiny", "-b", server.url),
        *("--header-from-state", "X-Answer: answer", "--header-from-state", "X-Missing: nobody"),
    )

    assert server.requests[0].headers["x-answer"] == "say 0"
    assert "x-missing" not in server.requests[0].headers
    assert "has no 'nobody', which the header X-Missing is to be read from" in ran.stderr
    assert "X-Session-ID" not in ran.stderr
    assert "authorization" not in server.requests[0].headers


def test_state_with_line_breaks_cannot_forge_headers(provider: Serve) -> None:
    server = provider()
    environment = EchoEnvironment("two\r\nX-Admin: lines")

    model = OpenAIChat(Endpoint(model="tiny", url=server.url))
    result = asyncio.run(evaluate(environment, model, headers_from_state={"X-Answer": "answer"}))

    assert [rollout.outcome for rollout in result] == ["scored"]
    assert server.requests[0].headers["x-answer"] == "two  X-Admin: lines"
    assert "x-admin" not in server.requests[0].headers


def test_an_authorization_header_of_ones_own_replaces_the_key(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = provider()

    ask(OpenAIChat, server.url, key_var="MY_KEY", headers={"Authorization": "Token mine"})

    assert server.requests[0].headers["authorization"] == "Token mine"


# What goes wrong

REFUSALS = [
    (400, {"error": {"message": "bad temperature"}}, RequestRefusedError, "bad temperature"),
    (401, {"error": {"message": "who are you?"}}, AuthError, "who are you?"),
    (403, {"error": {"message": "not you"}}, AuthError, "not you"),
    (404, {"error": {"message": "no such model"}}, RequestRefusedError, "check the model name 'tiny'"),
    (408, "", ModelTimeoutError, "408"),
    (413, "too large", ContextTooLongError, "too large"),
    (422, {"detail": "top_k is unknown"}, RequestRefusedError, "top_k is unknown"),
    (429, {"error": {"message": "slower"}}, RateLimitError, "slower"),
    (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, RequestRefusedError, "pay"),
    (500, "<html>oops</html>", OverloadedError, "<html>oops</html>"),
    (502, "", OverloadedError, "no explanation"),
    (503, {"error": "overloaded"}, OverloadedError, "overloaded"),
    (504, "", ModelTimeoutError, "504"),
    (529, {"error": {"message": "busy"}}, OverloadedError, "busy"),
    (500, b"\xff\xfe", OverloadedError, "500"),
    (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, ContextTooLongError, "x"),
    (
        400,
        {"message": "This model's maximum context length is 8 tokens."},
        ContextTooLongError,
        "maximum context length",
    ),
    (
        400,
        {"error": {"type": "exceed_context_size_error", "message": "too big"}},
        ContextTooLongError,
        "too big",
    ),
]
"""Status, body, the error it becomes, and words of its message."""


@BOTH
@pytest.mark.parametrize(("status", "body", "named", "words"), REFUSALS)
def test_every_status_becomes_the_error_that_names_its_cause(
    kind: type[OpenAIChat] | type[OpenAICompletions],
    provider: Serve,
    status: int,
    body: Any,
    named: type[ModelError],
    words: str,
) -> None:
    server = provider({"status": status, "body": body})

    error = failure(kind, server.url)

    assert type(error) is named
    assert error.status == status
    assert words in str(error)
    assert server.url in str(error)
    assert len(server.requests) == 1


def test_a_refused_key_names_the_variable_it_came_from(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server = provider({"status": 401})

    assert "check the API key in MY_KEY" in str(failure(OpenAIChat, server.url, key_var="MY_KEY"))
    assert "with -k" in str(failure(OpenAIChat, server.url))
    explained = provider({"status": 403, "body": {"error": {"message": "Not for you."}}})
    assert "Not for you; check" in str(failure(OpenAIChat, explained.url, key_var="MY_KEY"))


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "0.25"}, 0.25, 0.25),
        ({"retry-after-ms": "1500", "Retry-After": "60"}, 1.5, 1.5),
        ({"Retry-After": email.utils.formatdate(time.time() + 36000, usegmt=True)}, 30000, 36000),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"Retry-After": "-5"}, 0, 0),
        ({"Retry-After": "soon"}, None, None),
        ({}, None, None),
    ],
)
def test_a_rate_limit_says_when_to_come_back(
    provider: Serve, headers: dict[str, str], least: float | None, most: float | None
) -> None:
    error = failure(OpenAIChat, provider({"status": 429, "headers": headers}).url)

    assert isinstance(error, RateLimitError)
    if least is None or most is None:
        assert error.retry_after_seconds is None
    else:
        assert error.retry_after_seconds is not None
        assert least <= error.retry_after_seconds <= most


@BOTH
@pytest.mark.parametrize(
    ("body", "named", "words"),
    [
        ({"error": {"code": 429, "message": "slower"}}, RateLimitError, "slower"),
        ({"error": {"code": 503, "message": "gone"}, "choices": None}, OverloadedError, "gone"),
        ({"error": {"code": "weird", "message": "gone"}, "choices": []}, OverloadedError, "gone"),
        ({"error": "just words"}, OverloadedError, "just words"),
        ({"choices": []}, MalformedReplyError, "without any choices"),
        ({}, MalformedReplyError, "without any choices"),
        ("hello?", MalformedReplyError, "did not answer with"),
        ("", MalformedReplyError, "did not answer with"),
        ("[]", MalformedReplyError, "did not answer with"),
        ({"choices": [{"index": 0}]}, MalformedReplyError, "did not answer with"),
        (
            b'{"choices": [{"text": "\xff", "message": {"content": "\xff"}}]}',
            MalformedReplyError,
            "did not answer with",
        ),
        ('{"choices":' + "[" * 5000, MalformedReplyError, "did not answer with"),
    ],
)
def test_an_answer_of_200_that_is_no_answer_is_no_answer(
    kind: type[OpenAIChat] | type[OpenAICompletions],
    provider: Serve,
    body: Any,
    named: type[ModelError],
    words: str,
) -> None:
    error = failure(kind, provider({"body": body}).url)

    assert type(error) is named
    assert words in str(error)


def test_a_choice_that_carries_an_error_is_no_empty_answer(provider: Serve) -> None:
    choice = {
        "finish_reason": "error",
        "message": {"role": "assistant", "content": ""},
        "error": {"code": 502, "message": "the upstream hung up"},
    }

    error = failure(OpenAIChat, provider({"body": {"choices": [choice]}}).url)

    assert isinstance(error, OverloadedError)
    assert "the upstream hung up" in str(error)


@BOTH
def test_a_server_that_never_answers_is_left_after_the_time_given(
    kind: type[OpenAIChat] | type[OpenAICompletions], provider: Serve
) -> None:
    error = failure(kind, provider({"hangs": True}).url, request_seconds=0.2)

    assert isinstance(error, ModelTimeoutError)
    assert "did not answer in 0.2 s" in str(error)


def test_an_answer_that_breaks_off_is_no_answer_and_is_not_paid_for_twice(provider: Serve) -> None:
    server = provider({"text": "a long story", "closes": "mid_body"})

    error = failure(OpenAIChat, server.url)

    assert isinstance(error, UnreachableError)
    assert "before the end of its answer" in str(error)
    assert len(server.requests) == 1


@BOTH
@pytest.mark.parametrize("manner", ["unanswered", "reset"])
def test_a_pooled_connection_that_the_server_closed_is_replaced_without_a_word(
    kind: type[OpenAIChat] | type[OpenAICompletions], provider: Serve, manner: str
) -> None:
    server = provider("one", {"closes": manner}, "two")

    first, second = ask(kind, server.url, times=2)

    assert (first.text, second.text) == ("one", "two")
    assert [request.connection for request in server.requests] == [1, 1, 2]


def test_a_connection_closed_between_two_requests_is_not_noticed(provider: Serve) -> None:
    server = provider({"text": "one", "closes": "afterwards"}, "two")

    replies = ask(OpenAIChat, server.url, times=2, pause_seconds=0.05)

    assert [reply.text for reply in replies] == ["one", "two"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("manner", ["unanswered", "reset"])
def test_a_server_that_keeps_closing_is_given_up_after_one_more_try(provider: Serve, manner: str) -> None:
    server = provider({"closes": manner})

    error = failure(OpenAIChat, server.url)

    assert isinstance(error, UnreachableError)
    assert len(server.requests) == 2


def test_a_proxy_that_the_environment_names_is_used_with_its_password(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = provider("by proxy")
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1").replace("//", "//ada:word@"))
    monkeypatch.setenv("MODEL_KEY", "sk-1")

    [reply] = ask(OpenAIChat, "http://models.invalid/v1", key_var="MODEL_KEY")

    assert reply.text == "by proxy"
    [request] = server.requests
    assert request.path == "http://models.invalid/v1/chat/completions"
    assert request.headers["proxy-authorization"] == "Basic YWRhOndvcmQ="
    assert request.headers["authorization"] == "Bearer sk-1"


def test_a_host_that_the_environment_exempts_is_reached_without_the_proxy(
    provider: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = provider("by proxy")
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "models.invalid")

    assert isinstance(failure(OpenAIChat, "http://models.invalid/v1"), UnreachableError)
    assert not server.requests


def test_connections_are_pooled(provider: Serve) -> None:
    server = provider()

    ask(OpenAIChat, server.url, times=5)

    assert server.connections == 1


# Before anything is paid for


@pytest.mark.parametrize("words", ["check", "complete"])
def test_a_server_that_is_not_there_is_said_to_be_so(words: str) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"

    async def call() -> None:
        model: Model = OpenAIChat.at(Endpoint(model="tiny", url=url))
        try:
            await (model.check() if words == "check" else model.complete(Request((HELLO,))))
        finally:
            await model.close()

    with pytest.raises(UnreachableError, match="check that it is running") as caught:
        asyncio.run(call())
    assert url in str(caught.value)


def test_a_server_that_does_not_take_the_call_is_not_called_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.models.http_client.CONNECT_SECONDS", 0.2)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        waiting = [socket.socket() for _ in range(4)]  # fill its waiting room
        for caller in waiting:
            caller.setblocking(False)
            caller.connect_ex(deaf.getsockname())
        try:
            error = failure(OpenAIChat, f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        finally:
            for caller in waiting:
                caller.close()

    assert isinstance(error, UnreachableError)
    assert "Cannot connect" in str(error)


def on_the_command_line(
    proctor: Callable[..., Ran], tmp_path: Path, *words: str, environ: dict[str, str] | None = None
) -> Ran:
    """A run that cannot start: exit code 2, one sentence, and no rollout."""
    ran = proctor("eval", "run", "echo", "-n", "1", "-m", "tiny", "-s", "-o", "out", *words, environ=environ)
    assert ran.code == 2, ran.stderr
    assert ran.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.glob("out/**/results.jsonl"))
    return ran


def test_an_unknown_host_is_named(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    ran = on_the_command_line(
        proctor, tmp_path, "-b", "http://no-such-host.invalid/v1", "-k", "K", environ={"K": "1"}
    )

    assert "'no-such-host.invalid'" in ran.stderr
    assert "-b" in ran.stderr


def test_a_refused_connection_names_the_url(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"

    assert url in on_the_command_line(proctor, tmp_path, "-b", url).stderr


@pytest.mark.parametrize("url", ["http://localhost:99999/v1", "http:///v1", "http://[::1", "localhost:8000"])
def test_an_address_that_is_none_is_refused(proctor: Callable[..., Ran], tmp_path: Path, url: str) -> None:
    ran = on_the_command_line(proctor, tmp_path, "-b", url, "-k", "")

    assert f"{url!r} is not an API address" in ran.stderr


def test_a_missing_key_names_its_variable(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    ran = on_the_command_line(proctor, tmp_path, "-b", "https://llm.example.com/v1", "-k", "MY_KEY")

    assert "MY_KEY is not set" in ran.stderr


def test_a_model_without_any_key_is_told_which_variables_would_do() -> None:
    with pytest.raises(ConfigError, match="set PRIME_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY"):
        asyncio.run(evaluate(EchoEnvironment("hi"), "something"))


def test_a_refused_key_stops_the_run_before_a_rollout_is_paid_for(
    provider: Serve, proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    server = provider(models={"status": 401, "body": {"error": {"message": "who are you?"}}})

    ran = on_the_command_line(proctor, tmp_path, "-b", server.url, "-k", "MY_KEY", environ={"MY_KEY": "1"})

    assert "check the API key in MY_KEY" in ran.stderr
    assert not server.requests


@pytest.mark.parametrize("status", [401, 404])
def test_a_key_or_model_refused_at_the_first_request_stops_the_run(
    provider: Serve, proctor: Callable[..., Ran], status: int
) -> None:
    server = provider({"status": status})

    ran = proctor("eval", "run", "echo", "-n", "50", "-r", "1", "-c", "2", "-m", "tiny", "-b", server.url)

    assert ran.code == 2, ran.stderr
    assert str(status) in ran.stderr
    assert len(server.requests) <= 3


@pytest.mark.parametrize(
    "models",
    [{"status": 404}, {"status": 500}, {"body": "what?"}, {"closes": "unanswered"}, {"status": 403}],
    ids=json.dumps,
)
def test_a_server_that_cannot_list_its_models_is_asked_all_the_same(provider: Serve, models: Answer) -> None:
    server = provider(models=models)

    result = asyncio.run(evaluate(EchoEnvironment("hi"), OpenAIChat(Endpoint(model="tiny", url=server.url))))

    assert [rollout.outcome for rollout in result] == ["scored"]
    assert server.checks


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "anthropic_messages"])
def test_a_server_that_sends_us_on_to_another_is_not_followed_with_the_key(
    provider: Serve, proctor: Callable[..., Ran], client_type: str
) -> None:
    stranger = provider("hello")
    server = provider({"status": 307, "headers": {"Location": stranger.url}})

    words = ("-m", "tiny", "-b", server.url, "-k", "MY_KEY", "--api-client-type", client_type)
    ran = proctor("eval", "run", "echo", "-n", "1", "-r", "1", *words, environ={"MY_KEY": "hunter2"})

    assert ran.code == 1
    assert "answered 307 and redirects to" in " ".join(ran.stdout.split())
    assert not stranger.requests
    assert not stranger.checks


def test_a_server_that_repeats_the_key_does_not_get_it_into_the_results(
    provider: Serve, proctor: Callable[..., Ran]
) -> None:
    server = provider({"status": 400, "text": "no quota for key hunter2-hunter2"})

    words = ("-m", "tiny", "-b", server.url, "-k", "MY_KEY", "-s", "-v")
    ran = proctor("eval", "run", "echo", "-n", "1", "-r", "1", *words, environ={"MY_KEY": "hunter2-hunter2"})

    assert "no quota for key (hidden)" in " ".join(ran.stdout.split())
    files = [file.read_text() for file in ran.cwd.glob("outputs/**/*") if file.is_file()]
    assert not [text for text in [*files, ran.stdout, ran.stderr] if "hunter2" in text]
