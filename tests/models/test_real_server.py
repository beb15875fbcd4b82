"""The HTTP clients against a server that nobody here wrote: llama.cpp, which speaks four of their formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from proctor import plugins
from proctor.config.endpoints import Endpoint
from proctor.contracts import Model, Request
from proctor.errors import ContextTooLongError
from proctor.models.embedded import EmbeddedServer
from proctor.trace import Message, Reply, ToolSpec

CONTEXT = 512
CHAT_TYPES = ["openai_chat_completions", "openai_responses", "anthropic_messages"]
EVERY_TYPE = pytest.mark.parametrize("client_type", [*CHAT_TYPES, "openai_completions"])
EVERY_CHAT_TYPE = pytest.mark.parametrize("client_type", CHAT_TYPES)

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}})


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer.start(parallel=2, context=CONTEXT) as server:
        yield server


def ask(server: EmbeddedServer, client_type: str, *messages: Message, **request: Any) -> Reply:
    sampling = {"temperature": 0, **request.pop("sampling", {})}

    async def once() -> Reply:
        endpoint = Endpoint(model=server.model, client_type=client_type, url=server.base_url)
        model: Model = plugins.load(plugins.MODELS, client_type).at(endpoint)
        try:
            await model.check()
            return await model.complete(Request(messages, sampling=sampling, **request))
        finally:
            await model.close()

    return asyncio.run(once())


def user(text: str) -> Message:
    return {"role": "user", "content": text}


@EVERY_CHAT_TYPE
def test_it_answers_counts_its_tokens_and_comes_to_an_end(server: EmbeddedServer, client_type: str) -> None:
    system: Message = {"role": "system", "content": "Answer with one word."}

    reply = ask(server, client_type, system, user("Repeat after me: Hello"), sampling={"max_tokens": 60})

    assert "hello" in reply.text.lower()
    assert reply.finish_reason == "stop"
    assert 10 < reply.usage.input_tokens < 60
    assert 0 < reply.usage.output_tokens < 60
    assert reply.model == server.model
    assert reply.id


@EVERY_TYPE
def test_an_answer_cut_at_the_limit_is_truncated(server: EmbeddedServer, client_type: str) -> None:
    reply = ask(server, client_type, user("Once upon a time there was"), sampling={"max_tokens": 5})

    assert reply.text
    assert reply.truncated
    assert reply.usage.output_tokens == 5


@EVERY_TYPE
def test_a_conversation_that_does_not_fit_is_named(server: EmbeddedServer, client_type: str) -> None:
    with pytest.raises(ContextTooLongError):
        ask(server, client_type, user("word " * 2 * CONTEXT), sampling={"max_tokens": 5})


@EVERY_CHAT_TYPE
def test_tool_calls_and_their_results_are_accepted(server: EmbeddedServer, client_type: str) -> None:
    call = {"id": "call_a", "name": "add", "arguments": '{"a":2}'}

    reply = ask(
        server,
        client_type,
        user("Add 2 and 3."),
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_a", "content": "5"},
        tools=(ADD,),
        sampling={"max_tokens": 5},
    )

    assert reply.text


@EVERY_CHAT_TYPE
def test_an_answer_can_be_followed_by_another_question(server: EmbeddedServer, client_type: str) -> None:
    first = ask(server, client_type, user("Name an animal."), sampling={"max_tokens": 5})

    second = ask(
        server,
        client_type,
        user("Name an animal."),
        first.message,
        user("Again."),
        sampling={"max_tokens": 5},
    )

    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
