"""Conversations by token ids, against a server on this machine that has a tokenizer and a chat template.

Its tokenizer knows all bytes and some longer pieces, and takes the longest; its model samples whatever it is
told to, also pieces that the tokenizer would have joined. So a text that is tokenized again has other ids,
as with the real ones.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import MultiTurnEnv, Rubric, evaluate
from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import ContextTooLongError, MalformedReplyError, ModelError, RequestRefusedError
from proctor.models.openai_chat_tokens import OpenAIChatTokens
from proctor.trace import Message, Reply, ToolSpec

HELLO: Message = {"role": "user", "content": "hello"}
MORE: Message = {"role": "user", "content": "more"}
WEATHER = ToolSpec("weather", "Tells the weather.", {"type": "object", "properties": {"city": {}}})

PIECES = ("hello", "hell", "user", "assistant", "banana", "ban", "ana", "\n\n", "42")
START, END = "<|im_start|>", "<|im_end|>"
VOCABULARY = {bytes([byte]): byte for byte in range(256)}
VOCABULARY |= {piece.encode(): 256 + number for number, piece in enumerate((*PIECES, START, END))}
SPELLED = {number: piece for piece, number in VOCABULARY.items()}
MARKS = {VOCABULARY[START.encode()], VOCABULARY[END.encode()]}
LONGEST = max(map(len, VOCABULARY))
END_ID = VOCABULARY[END.encode()]


def encode(text: str) -> list[int]:
    """The longest piece first, from left to right."""
    rest, ids = text.encode(), []
    while rest:
        piece = next(rest[:size] for size in range(LONGEST, 0, -1) if rest[:size] in VOCABULARY)
        ids.append(VOCABULARY[piece])
        rest = rest[len(piece) :]
    return ids


def decode(ids: Sequence[int]) -> str:
    return b"".join(SPELLED[number] for number in ids if number not in MARKS).decode(errors="replace")


def bytewise(text: str, *, ended: bool = True) -> list[int]:
    """A text as a model may sample it and the tokenizer would never write it."""
    return [*text.encode(), *([END_ID] if ended else [])]


def rendered(messages: Sequence[Message], tools: Sequence[Any], shows_text_of_calls: bool) -> str:
    """The chat template. Thoughts of earlier turns are not shown, as many templates have it."""
    text = f"{START}system\n{json.dumps(tools)}{END}\n" if tools else ""
    for message in messages:
        calls = message.get("tool_calls") or []
        said = "" if calls and not shows_text_of_calls else message["content"] or ""
        for call in calls:
            said += f"<tool_call>{json.dumps(call['function'])}</tool_call>"
        text += f"{START}{message['role']}\n{said}{END}\n"
    return f"{text}{START}assistant\n"


@dataclass
class TokenServer:
    """Answers with the ids it is told to sample, one list a request, the last one again and again."""

    samples: Sequence[list[int]]
    takes_ids: bool = True
    """It has the chat route that is given ids."""
    tokenizes: bool = True
    tells_ids: bool = True
    shows_text_of_calls: bool = True
    stops_on: str | None = None
    context: int = 4096
    url: str = ""
    prompts: list[list[int]] = field(default_factory=list)
    """What the model was really given."""
    received: list[tuple[str, Any]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.by_messages)
        app.router.add_post("/v1/completions", self.as_text)
        if self.takes_ids:
            app.router.add_post("/v1/chat/completions/tokens", self.by_ids)
        if self.tokenizes:
            app.router.add_post("/tokenize", self.tokenize)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()

    @property
    def paths(self) -> list[str]:
        """Where answers were asked for."""
        return [path for path, _ in self.received if path != "/tokenize"]

    async def heard(self, request: web.Request) -> Any:
        body = await request.json()
        self.received.append((request.path, body))
        return body

    def ids_of(self, body: Any) -> list[int]:
        return encode(rendered(body["messages"], body.get("tools") or (), self.shows_text_of_calls))

    async def tokenize(self, request: web.Request) -> web.Response:
        ids = self.ids_of(await self.heard(request))
        return web.json_response({"count": len(ids), "max_model_len": self.context, "tokens": ids})

    async def by_messages(self, request: web.Request) -> web.Response:
        body = await self.heard(request)
        return self.chat(self.ids_of(body), body)

    async def by_ids(self, request: web.Request) -> web.Response:
        body = await self.heard(request)
        return self.chat(body["tokens"], body)

    async def as_text(self, request: web.Request) -> web.Response:
        body = await self.heard(request)
        sampled, choice = self.sample(body["prompt"], body, default_limit=16)
        choice |= {"text": decode(sampled), "token_ids": sampled, "prompt_token_ids": body["prompt"]}
        return web.json_response({"id": "reply-1", "model": "served", "choices": [choice]})

    def chat(self, prompt: list[int], body: Any) -> web.Response:
        if len(prompt) > self.context:
            message = f"This model's maximum context length is {self.context} tokens."
            return web.json_response({"error": {"message": message, "code": 400}}, status=400)
        sampled, choice = self.sample(prompt, body, default_limit=self.context)
        choice["message"] = as_message(decode(sampled))
        used = {"prompt_tokens": len(prompt), "completion_tokens": len(sampled)}
        answer: dict[str, Any] = {"id": "reply-1", "model": "served", "choices": [choice], "usage": used}
        if self.tells_ids and body.get("return_token_ids"):
            choice["token_ids"] = sampled
            answer["prompt_token_ids"] = prompt
        return web.json_response(answer)

    def sample(self, prompt: list[int], body: Any, default_limit: int) -> tuple[list[int], dict[str, Any]]:
        sampled = self.samples[min(len(self.prompts), len(self.samples) - 1)]
        self.prompts.append(prompt)
        limit = body.get("max_tokens") or default_limit
        is_cut = len(sampled) > limit
        choice = {"index": 0, "finish_reason": "length" if is_cut else "stop", "stop_reason": self.stops_on}
        return sampled[:limit], choice


def as_message(text: str) -> Message:
    """Thoughts and calls told from text, as a server's parsers do."""
    thought, said = "", text
    if text.startswith("<think>"):
        thought, _, said = text.removeprefix("<think>").partition("</think>")
    calls = [json.loads(call) for call in re.findall(r"<tool_call>(.*?)</tool_call>", said)]
    return {
        "role": "assistant",
        "content": re.sub(r"<tool_call>.*?</tool_call>", "", said) or None,
        "reasoning_content": thought or None,
        "tool_calls": [
            {"id": f"call_{number}", "type": "function", "function": call}
            for number, call in enumerate(calls)
        ],
    }


Ask = Callable[..., Awaitable[Reply]]


def talk(server: TokenServer, conversation: Callable[[Ask], Awaitable[None]]) -> TokenServer:
    """Have a conversation with the model at a server."""

    async def run() -> None:
        async with server:
            model = OpenAIChatTokens.at(Endpoint(model="tiny", url=server.url, request_seconds=10))

            async def ask(*messages: Message, **request: Any) -> Reply:
                return await model.complete(Request(messages, **request))

            try:
                await conversation(ask)
            finally:
                await model.close()

    asyncio.run(run())
    return server


def failure(server: TokenServer, conversation: Callable[[Ask], Awaitable[None]]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        talk(server, conversation)
    return caught.value


async def two_turns(ask: Ask) -> None:
    first = (await ask(HELLO)).message
    await ask(HELLO, first, MORE)


def continued(server: TokenServer) -> bool:
    """Whether the second prompt begins with every token of the first and of its answer."""
    before = server.prompts[0] + server.samples[0]
    return server.prompts[1][: len(before)] == before


# Exactly the tokens that were sampled


def test_an_answer_carries_the_ids_it_was_sampled_from_and_as() -> None:
    async def conversation(ask: Ask) -> None:
        reply = await ask(HELLO)

        assert reply.text == "hello"
        assert reply.message["native"]["by"] == "openai_chat_completions_token"
        assert reply.message["native"]["prompt_token_ids"] == server.prompts[0]
        assert reply.message["native"]["token_ids"] == bytewise("hello")

    server = TokenServer([bytewise("hello")])
    talk(server, conversation)
    assert server.received[0][1]["return_token_ids"] is True


def test_a_conversation_goes_on_with_the_sampled_ids_where_tokenizing_again_would_drift() -> None:
    server = talk(TokenServer([bytewise("hello banana"), bytewise("ok")]), two_turns)

    expected = rendered([HELLO, {"role": "assistant", "content": "hello banana"}, MORE], (), True)
    assert continued(server)
    assert decode(server.prompts[1]) == decode(encode(expected))
    assert server.prompts[1] != encode(expected)
    assert server.prompts[1][len(server.prompts[0] + bytewise("hello banana")) :] == encode(
        f"\n{START}user\nmore{END}\n{START}assistant\n"
    )
    assert server.paths == ["/v1/chat/completions", "/v1/chat/completions/tokens"]


@given(st.lists(st.text("helo banus42\n", min_size=1, max_size=12), min_size=2, max_size=4))
@settings(max_examples=15, deadline=None)
def test_every_prompt_begins_with_all_tokens_before_it(answers: list[str]) -> None:
    async def conversation(ask: Ask) -> None:
        messages = [HELLO]
        for _ in answers:
            reply = await ask(*messages)
            messages += [json.loads(json.dumps(reply.message)), MORE]

    server = talk(TokenServer([bytewise(answer) for answer in answers]), conversation)

    for number, answer in enumerate(answers[:-1]):
        before = server.prompts[number] + bytewise(answer)
        assert server.prompts[number + 1][: len(before)] == before


@pytest.mark.parametrize("shows_text_of_calls", [True, False])
def test_calls_of_tools_are_continued_too(shows_text_of_calls: bool) -> None:
    call = '<tool_call>{"name": "weather", "arguments": "{\\"city\\":\\"hello\\"}"}</tool_call>'

    async def conversation(ask: Ask) -> None:
        first = await ask(HELLO, tools=(WEATHER,))
        assert first.tool_calls == [{"id": "call_0", "name": "weather", "arguments": '{"city":"hello"}'}]
        result = {"role": "tool", "tool_call_id": "call_0", "content": "hello"}
        await ask(HELLO, first.message, result, tools=(WEATHER,))

    sampled = bytewise(f"Let me see.{call}")
    server = talk(
        TokenServer([sampled, bytewise("ok")], shows_text_of_calls=shows_text_of_calls), conversation
    )

    assert continued(server)
    assert server.prompts[1][len(server.prompts[0] + sampled) :] == encode(
        f"\n{START}tool\nhello{END}\n{START}assistant\n"
    )


def test_thoughts_that_the_template_would_drop_stay_in_the_prompt() -> None:
    server = talk(TokenServer([bytewise("<think>banana</think>42"), bytewise("ok")]), two_turns)

    assert continued(server)
    assert "banana" in decode(server.prompts[1])


def test_an_answer_that_was_cut_off_is_closed_as_the_template_closes_a_turn() -> None:
    async def conversation(ask: Ask) -> None:
        first = await ask(HELLO, sampling={"max_tokens": 4})
        assert first.truncated
        await ask(HELLO, first.message, MORE)

    server = talk(TokenServer([bytewise("hello banana"), bytewise("ok")]), conversation)

    sampled = server.prompts[0] + list(b"hell")
    assert server.prompts[1] == sampled + encode(f"{END}\n{START}user\nmore{END}\n{START}assistant\n")


def test_an_answer_stopped_by_a_word_of_the_users_is_closed_too() -> None:
    sampled = bytewise("hello STOP", ended=False)
    server = talk(TokenServer([sampled, bytewise("ok")], stops_on="STOP"), two_turns)

    assert continued(server)
    assert server.prompts[1][len(server.prompts[0] + sampled)] == END_ID


def test_an_answer_cut_off_in_the_middle_of_a_thought_is_told_as_messages() -> None:
    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO, sampling={"max_tokens": 10})).message
        assert (first["content"], first["reasoning_content"]) == (None, "ban")
        await ask(HELLO, first, MORE)

    server = talk(TokenServer([bytewise("<think>banana</think>"), bytewise("ok")]), conversation)

    assert server.paths == ["/v1/chat/completions"] * 2


def test_the_ids_are_in_the_saved_rollout() -> None:
    class Twice(MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any) -> list[Message]:
            return [MORE]

    async def run() -> list[Message]:
        async with server:
            model = OpenAIChatTokens.at(Endpoint(model="tiny", url=server.url))
            environment = Twice([{"question": "hello", "answer": ""}], rubric=Rubric(), max_turns=2)
            [rollout] = await evaluate(environment, model)
            assert rollout.failure is None
            return [each for each in rollout.trace.completion if each["role"] == "assistant"]

    server = TokenServer([bytewise("hello"), bytewise("banana")])
    first, second = asyncio.run(run())

    assert first["native"]["token_ids"] == bytewise("hello")
    assert second["native"]["prompt_token_ids"] == server.prompts[1]
    assert continued(server)


# When the ids no longer stand for the conversation


@pytest.mark.parametrize(
    "edit",
    [
        lambda first: [HELLO, {**first, "content": "goodbye"}, MORE],
        lambda first: [{**HELLO, "content": "hi"}, first, MORE],
        lambda first: [{"role": "system", "content": "Be brief."}, HELLO, first, MORE],
        lambda first: [HELLO, {"role": "assistant", "content": first["content"]}, MORE],
        lambda first: [HELLO, {**first, "native": {**first["native"], "by": "gemini"}}, MORE],
        lambda first: [HELLO, first],
    ],
    ids=["the answer", "the question", "the opening", "no ids", "another's ids", "nothing was added"],
)
def test_a_conversation_that_was_changed_is_told_as_it_reads_now(
    edit: Callable[[Message], list[Message]],
) -> None:
    now: list[Message] = []

    async def conversation(ask: Ask) -> None:
        now.extend(edit((await ask(HELLO)).message))
        await ask(*now)

    server = talk(TokenServer([bytewise("hello"), bytewise("ok")]), conversation)

    assert server.paths == ["/v1/chat/completions"] * 2
    assert server.prompts[1] == encode(rendered(now, (), True))
    assert "native" not in json.dumps(server.received[1][1])


def test_other_tools_are_another_conversation() -> None:
    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO)).message
        await ask(HELLO, first, MORE, tools=(WEATHER,))

    assert talk(TokenServer([bytewise("hello")]), conversation).paths == ["/v1/chat/completions"] * 2


def test_pictures_are_told_as_messages_because_no_ids_stand_for_them() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO)).message
        await ask(HELLO, first, {"role": "user", "content": [picture]})

    class Seeing(TokenServer):
        def ids_of(self, body: Any) -> list[int]:
            return encode(str(body["messages"]))

    assert talk(Seeing([bytewise("hello")]), conversation).paths == ["/v1/chat/completions"] * 2


def test_a_template_that_ends_turns_in_another_way_is_left_alone() -> None:
    server = talk(TokenServer([bytewise("hello", ended=False), bytewise("ok")]), two_turns)

    assert server.paths == ["/v1/chat/completions"] * 2


def test_the_settings_of_the_template_are_used_for_what_is_added() -> None:
    kwargs = {"enable_thinking": False}

    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO)).message
        await ask(HELLO, first, MORE, sampling={"chat_template_kwargs": kwargs})

    server = talk(TokenServer([bytewise("hello")]), conversation)

    bodies = [body for path, body in server.received if path == "/tokenize"]
    assert [body["chat_template_kwargs"] for body in bodies] == [kwargs, kwargs]


# Servers that can do less


def test_a_server_without_the_route_for_ids_is_asked_for_a_text_on_the_same_ids() -> None:
    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO)).message
        second = await ask(HELLO, first, MORE, sampling={"logprobs": True, "top_logprobs": 3, "seed": 1})
        assert second.text == "a banana is longer than sixteen tokens"
        assert second.message["native"]["prompt_token_ids"] == server.prompts[1]
        third = await ask(HELLO, first, MORE, second.message, MORE)
        assert third.text == "ok"

    samples = [bytewise("hello"), bytewise("a banana is longer than sixteen tokens"), bytewise("ok")]
    server = TokenServer(samples, takes_ids=False)
    talk(server, conversation)

    assert continued(server)
    assert server.paths == ["/v1/chat/completions", "/v1/completions", "/v1/completions"]
    body = next(body for path, body in server.received if path == "/v1/completions")
    assert (body["logprobs"], body["seed"]) == (3, 1)
    assert "top_logprobs" not in body
    assert body["max_tokens"] == server.context - len(server.prompts[1])


@pytest.mark.parametrize("what", ["tools", "thoughts"])
def test_where_a_text_would_hide_calls_or_thoughts_one_is_told_what_to_use(what: str) -> None:
    tools = (WEATHER,) if what == "tools" else ()

    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO, tools=tools)).message
        await ask(HELLO, first, MORE, tools=tools)

    said = "hello" if what == "tools" else "<think>banana</think>hello"
    error = failure(TokenServer([bytewise(said)], takes_ids=False), conversation)

    assert isinstance(error, RequestRefusedError)
    assert "has no /chat/completions/tokens" in str(error)
    assert "use the client type openai_chat_completions" in str(error)


def test_a_server_that_tells_no_ids_is_named_with_what_to_use_instead() -> None:
    server = TokenServer([bytewise("hello")], tells_ids=False)

    error = failure(server, two_turns)

    assert isinstance(error, RequestRefusedError)
    assert f"{server.url} answered without token ids; use the client type openai_chat_completions" in str(
        error
    )


def test_a_server_without_a_tokenizer_is_named_with_what_to_use_instead() -> None:
    error = failure(TokenServer([bytewise("hello")], tokenizes=False), two_turns)

    assert isinstance(error, RequestRefusedError)
    assert "has no /tokenize; use the client type openai_chat_completions" in str(error)


def test_a_tokenizer_that_answers_nonsense_is_said_to_do_so() -> None:
    class Babbling(TokenServer):
        async def tokenize(self, request: web.Request) -> web.Response:
            return web.json_response({"tokens": "many"})

    error = failure(Babbling([bytewise("hello")]), two_turns)

    assert isinstance(error, MalformedReplyError)
    assert "/tokenize sent a reply without tokens" in str(error)


def test_a_conversation_that_outgrows_the_context_is_told_from_other_refusals() -> None:
    async def conversation(ask: Ask) -> None:
        first = (await ask(HELLO)).message
        await ask(HELLO, first, {"role": "user", "content": "x" * 50})

    error = failure(TokenServer([bytewise("hello")], context=60), conversation)

    assert isinstance(error, ContextTooLongError)
