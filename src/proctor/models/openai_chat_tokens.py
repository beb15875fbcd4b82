"""The OpenAI chat completions API with token ids in and out, for servers such as vLLM.

Text that is tokenised again may become other tokens than the model sampled. So a conversation is continued on
the very ids of its last answer: they stand in the message, as `native`, and only what came after it is
tokenised. A conversation that was changed since begins anew, as messages.

The server has the tokenizer and the chat template; this client knows neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, RequestRefusedError
from proctor.models.http_client import UNREADABLE, HttpClient
from proctor.models.openai_chat import (
    OpenAIChat,
    encode_messages,
    encode_tool,
    encode_tool_call,
    read_reply,
)
from proctor.models.openai_completions import read_text_reply
from proctor.trace import Message, Reply, ToolSpec

CLIENT_TYPE = "openai_chat_completions_token"
INSTEAD = "use the client type openai_chat_completions"

STAND_INS = ("0", "1")
"""Two answers that differ in every token: what follows them alike is what the chat template puts there."""

MOST_AFTER_CALLS = 32
"""Tokens that a template may need to close a tool call before it ends the turn."""

ONLY_FOR_CHATS = frozenset(
    {
        "chat_template",
        "chat_template_kwargs",
        "logprobs",
        "max_completion_tokens",
        "parallel_tool_calls",
        "reasoning_effort",
        "tool_choice",
        "top_logprobs",
    }
)
"""Parameters that a text completion does not know, or means differently."""

TEMPLATE_SETTINGS = ("chat_template", "chat_template_kwargs")


class ChoiceIds(msgspec.Struct):
    token_ids: list[int] | None = None
    response_token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    stop_reason: int | str | None = None
    finish_reason: str | None = None


class TokenIdReply(msgspec.Struct):
    choices: list[ChoiceIds]
    prompt_token_ids: list[int] | None = None


class TokenizedPrompt(msgspec.Struct):
    tokens: list[int]
    max_model_len: int | None = None


class RecordedAnswer(msgspec.Struct, frozen=True):
    """The newest answer of this client in a conversation, as it was recorded."""

    position: int
    ids: list[int]
    """Everything the model had before it when it ended, its own answer included."""
    is_open: bool
    """It was cut off, so nothing in the ids ends the turn."""


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_ids = msgspec.json.Decoder(TokenIdReply).decode
_decode_tokenized = msgspec.json.Decoder(TokenizedPrompt).decode


class OpenAIChatTokens(OpenAIChat):
    """A model behind `POST {url}/chat/completions` that tells its token ids and can be given some."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._root = HttpClient(replace(endpoint, url=endpoint.url.removesuffix("/v1")))
        self._takes_ids = True

    async def complete(self, request: Request) -> Reply:
        answered = find_newest_answer(request)
        prompt = await self._prompt(request, answered) if answered else None
        if prompt is None:
            body = {**self.body(request), "return_token_ids": True}
            content = await self.http.post("/chat/completions", _encode(body), request.headers)
            return self._record_token_ids(request, read_reply(content, self.endpoint), content)
        content, reply = await self._continue_prompt(request, prompt)
        return self._record_token_ids(request, reply, content, prompt.tokens)

    async def close(self) -> None:
        await super().close()
        await self._root.close()

    async def _prompt(self, request: Request, answered: RecordedAnswer) -> TokenizedPrompt | None:
        """The ids to continue on, or None where the template does not let itself be continued."""
        said = request.messages[answered.position]
        if answered.is_open and (said.get("tool_calls") or not said.get("content")):
            return None  # cut off within a call or a thought: no template can close that
        tail = request.messages[answered.position + 1 :]
        one, other = [
            await self._tokenize(request, [opening_message(), stand_in_answer(said, text), *tail])
            for text in STAND_INS
        ]
        joint = tokens_after_answer(answered, common_ending(one.tokens, other.tokens), said)
        return None if joint is None else TokenizedPrompt(answered.ids + joint, one.max_model_len)

    async def _tokenize(self, request: Request, messages: Sequence[Message]) -> TokenizedPrompt:
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": encode_messages(messages),
            "add_generation_prompt": True,
        }
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        body.update({name: request.sampling[name] for name in TEMPLATE_SETTINGS if name in request.sampling})
        try:
            content = await self._root.post("/tokenize", _encode(body), request.headers)
            return _decode_tokenized(content)
        except RequestRefusedError as error:
            if not is_no_route(error):
                raise
            raise RequestRefusedError(f"{self._root.endpoint.url} has no /tokenize; {INSTEAD}.") from error
        except UNREADABLE as error:
            raise MalformedReplyError(
                f"{self._root.endpoint.url}/tokenize answered without tokens ({error})."
            ) from error

    async def _continue_prompt(self, request: Request, prompt: TokenizedPrompt) -> tuple[bytes, Reply]:
        """Ask on the chat route for ids, or, where there is none, for a text completion."""
        if self._takes_ids:
            body = {**self.body(request), "tokens": prompt.tokens, "return_token_ids": True}
            try:
                content = await self.http.post("/chat/completions/tokens", _encode(body), request.headers)
                return content, read_reply(content, self.endpoint)
            except RequestRefusedError as error:
                if not is_no_route(error):
                    raise
                self._takes_ids = False
        if request.tools or has_reasoning(request.messages):
            raise RequestRefusedError(
                f"{self.endpoint.url} has no /chat/completions/tokens, and a text completion tells neither "
                f"tool calls nor reasoning from text; {INSTEAD}."
            )
        content = await self.http.post(
            "/completions", _encode(self._text_body(request, prompt)), request.headers
        )
        return content, read_text_reply(content, self.endpoint)

    def _text_body(self, request: Request, prompt: TokenizedPrompt) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "prompt": prompt.tokens,
            **{name: value for name, value in sampling.items() if name not in ONLY_FOR_CHATS},
            "return_token_ids": True,
        }
        if sampling.get("logprobs"):
            body["logprobs"] = sampling.get("top_logprobs") or 1
        if body.get("max_tokens") is None:  # a text completion's own default is 16
            room = max(1, prompt.max_model_len - len(prompt.tokens)) if prompt.max_model_len else None
            body["max_tokens"] = sampling.get("max_completion_tokens") or room
        return body

    def _record_token_ids(
        self, request: Request, reply: Reply, content: bytes, prompt_ids: list[int] | None = None
    ) -> Reply:
        """The reply with the ids it was sampled from and as."""
        try:
            ids = _decode_ids(content)
        except UNREADABLE as error:
            raise MalformedReplyError(
                f"{self.endpoint.url} answered with odd token ids ({error})."
            ) from error
        choice = ids.choices[0]
        before = ids.prompt_token_ids or choice.prompt_token_ids or prompt_ids
        sampled = choice.token_ids if choice.token_ids is not None else choice.response_token_ids
        if before is None or sampled is None:
            raise RequestRefusedError(f"{self.endpoint.url} answered without token ids; {INSTEAD}.")
        message = reply.message
        native: dict[str, Any] = {"by": CLIENT_TYPE, "prompt_token_ids": before, "token_ids": sampled}
        if choice.finish_reason == "length" or isinstance(choice.stop_reason, str):
            native["open"] = True
        native["of"] = fingerprint([*request.messages, message], request.tools)
        return replace(reply, message={**message, "native": native})


def find_newest_answer(request: Request) -> RecordedAnswer | None:
    """The newest answer with ids, if they still stand for everything up to it."""
    messages = request.messages
    for position in range(len(messages) - 1, -1, -1):
        native = messages[position].get("native")
        if isinstance(native, Mapping) and native.get("by") == CLIENT_TYPE:
            break
    else:
        return None
    is_last = position == len(messages) - 1
    if is_last or has_pictures(messages) or is_changed(messages[: position + 1], request.tools, native):
        return None
    ids = [*native["prompt_token_ids"], *native["token_ids"]]
    return RecordedAnswer(position, ids, bool(native.get("open")) or not native["token_ids"])


def is_changed(messages: Sequence[Message], tools: Sequence[ToolSpec], native: Mapping[str, Any]) -> bool:
    return native.get("of") != fingerprint(messages, tools)


def fingerprint(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    """Of what ids stand for: an environment may edit a conversation, and the ids would not notice."""
    said = _encode_sorted([encode_messages(messages), [encode_tool(tool) for tool in tools]])
    return hashlib.sha256(said).hexdigest()[:16]


def opening_message() -> Message:
    """Many templates want a user to speak first."""
    return {"role": "user", "content": STAND_INS[0]}


def stand_in_answer(said: Message, text: str) -> Message:
    """An answer of the same shape. A template may show its text, or only its calls: so both are replaced."""
    message: Message = {"role": "assistant", "content": text}
    if calls := said.get("tool_calls"):
        arguments = _encode({"x": text}).decode()
        message["tool_calls"] = [with_arguments(call, arguments) for call in calls]
    return message


def with_arguments(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    wired = encode_tool_call(call)
    return {**wired, "function": {**wired["function"], "arguments": arguments}}


def common_ending(one: Sequence[int], other: Sequence[int]) -> list[int]:
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return list(one[len(one) - length :]) if length < len(one) else []


def tokens_after_answer(answered: RecordedAnswer, ending: list[int], said: Message) -> list[int] | None:
    """What the template puts after an answer, from where the sampled ids break off."""
    if answered.is_open:
        return ending or None
    reach = MOST_AFTER_CALLS if said.get("tool_calls") else 1  # later it belongs to what was said next
    end_of_turn = answered.ids[-1]
    if end_of_turn not in ending[:reach]:
        return None
    return ending[ending.index(end_of_turn) + 1 :]


def is_no_route(error: RequestRefusedError) -> bool:
    return error.status in (404, 405)


def has_reasoning(messages: Sequence[Message]) -> bool:
    return any(message.get("reasoning_content") or message.get("reasoning") for message in messages)


def has_pictures(messages: Sequence[Message]) -> bool:
    """Whether there is more than text, which no list of ids can stand for."""
    parts = [part for each in messages if isinstance(each.get("content"), list) for part in each["content"]]
    return any(part.get("type") != "text" for part in parts)
