"""A client for the OpenAI chat completions API with token ids in and out, for servers such as vLLM.

Tokenizing a text again may give other tokens than the model sampled. So this client continues a conversation
on the ids of its last answer, which it keeps in the message as `native`, and has the server tokenize only
what follows. A conversation that was edited since is sent as messages again.

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
from proctor.models.http_client import HttpClient
from proctor.models.openai_chat import OpenAIChat
from proctor.trace import Message, Reply, ToolSpec
from proctor.wires import completions
from proctor.wires.chat import decode_reply, encode_messages, encode_tool, encode_tool_call
from proctor.wires.codec import UNREADABLE, encode_json

CLIENT_TYPE = "openai_chat_completions_token"
INSTEAD = "use the client type openai_chat_completions"

STAND_INS = ("0", "1")
"""Two answers that differ in every token: whatever follows both alike comes from the chat template."""

MOST_AFTER_CALLS = 32
"""Tokens that a template may add to close a tool call before it ends the turn."""

CHAT_ONLY_PARAMETERS = frozenset(
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
"""Parameters that text completions do not have, or give another meaning."""

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
    """The newest answer in a conversation that carries token ids."""

    position: int
    ids: list[int]
    """The prompt and the answer itself."""
    is_open: bool
    """It was cut off, so the ids do not end the turn."""


_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_ids = msgspec.json.Decoder(TokenIdReply).decode
_decode_tokenized = msgspec.json.Decoder(TokenizedPrompt).decode


class OpenAIChatTokens(OpenAIChat):
    """A model behind `POST {url}/chat/completions` that returns token ids and accepts them."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._root = HttpClient(replace(endpoint, url=endpoint.url.removesuffix("/v1")))
        self._takes_ids = True

    async def complete(self, request: Request) -> Reply:
        answered = find_newest_answer(request)
        prompt = await self._prompt(request, answered) if answered else None
        if prompt is None:
            body = {**self.body(request), "return_token_ids": True}
            content = await self.http.post("/chat/completions", encode_json(body), request.headers)
            return self._record_token_ids(request, self.read(content, decode_reply), content)
        content, reply = await self._continue_prompt(request, prompt)
        return self._record_token_ids(request, reply, content, prompt.tokens)

    async def close(self) -> None:
        await super().close()
        await self._root.close()

    async def _prompt(self, request: Request, answered: RecordedAnswer) -> TokenizedPrompt | None:
        """The ids to continue on, or None if this conversation cannot be continued by ids."""
        answer = request.messages[answered.position]
        if answered.is_open and (answer.get("tool_calls") or not answer.get("content")):
            return None  # cut off within a call or a thought, which no template can close
        tail = request.messages[answered.position + 1 :]
        one, other = [
            await self._tokenize(request, [opening_message(), stand_in_answer(answer, text), *tail])
            for text in STAND_INS
        ]
        joint = tokens_after_answer(answered, common_ending(one.tokens, other.tokens), answer)
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
            content = await self._root.post("/tokenize", encode_json(body), request.headers)
            return _decode_tokenized(content)
        except RequestRefusedError as error:
            if not is_no_route(error):
                raise
            raise RequestRefusedError(f"{self._root.endpoint.url} has no /tokenize; {INSTEAD}.") from error
        except UNREADABLE as error:
            raise MalformedReplyError(
                f"{self._root.endpoint.url}/tokenize sent a reply without tokens ({error})."
            ) from error

    async def _continue_prompt(self, request: Request, prompt: TokenizedPrompt) -> tuple[bytes, Reply]:
        """Send the ids to the chat route for ids, or, where the server has none, as a text completion."""
        if self._takes_ids:
            body = {**self.body(request), "tokens": prompt.tokens, "return_token_ids": True}
            try:
                content = await self.http.post("/chat/completions/tokens", encode_json(body), request.headers)
                return content, self.read(content, decode_reply)
            except RequestRefusedError as error:
                if not is_no_route(error):
                    raise
                self._takes_ids = False
        if request.tools or has_reasoning(request.messages):
            raise RequestRefusedError(
                f"{self.endpoint.url} has no /chat/completions/tokens, and a text completion does not "
                f"separate tool calls or reasoning from text; {INSTEAD}."
            )
        content = await self.http.post(
            "/completions", encode_json(self._text_body(request, prompt)), request.headers
        )
        return content, self.read(content, completions.decode_reply)

    def _text_body(self, request: Request, prompt: TokenizedPrompt) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "prompt": prompt.tokens,
            **{name: value for name, value in sampling.items() if name not in CHAT_ONLY_PARAMETERS},
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
        """The reply with the ids of its prompt and of its answer."""
        try:
            ids = _decode_ids(content)
        except UNREADABLE as error:
            raise MalformedReplyError(
                f"{self.endpoint.url} sent token ids that cannot be read ({error})."
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
    """The newest answer with ids, if its ids still match the conversation up to it."""
    messages = request.messages
    for position in range(len(messages) - 1, -1, -1):
        native = messages[position].get("native")
        if isinstance(native, Mapping) and native.get("by") == CLIENT_TYPE:
            break
    else:
        return None
    is_last = position == len(messages) - 1
    if is_last or has_images(messages) or is_changed(messages[: position + 1], request.tools, native):
        return None
    ids = [*native["prompt_token_ids"], *native["token_ids"]]
    return RecordedAnswer(position, ids, bool(native.get("open")) or not native["token_ids"])


def is_changed(messages: Sequence[Message], tools: Sequence[ToolSpec], native: Mapping[str, Any]) -> bool:
    return native.get("of") != fingerprint(messages, tools)


def fingerprint(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    """A hash of what the ids stand for: it changes when an environment edits the conversation."""
    encoded = _encode_sorted([encode_messages(messages), [encode_tool(tool) for tool in tools]])
    return hashlib.sha256(encoded).hexdigest()[:16]


def opening_message() -> Message:
    """Many templates require that a user speaks first."""
    return {"role": "user", "content": STAND_INS[0]}


def stand_in_answer(answer: Message, text: str) -> Message:
    """An answer of the same shape. A template may show the text or only the calls, so both are replaced."""
    message: Message = {"role": "assistant", "content": text}
    if calls := answer.get("tool_calls"):
        arguments = encode_json({"x": text}).decode()
        message["tool_calls"] = [with_arguments(call, arguments) for call in calls]
    return message


def with_arguments(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    encoded = encode_tool_call(call)
    return {**encoded, "function": {**encoded["function"], "arguments": arguments}}


def common_ending(one: Sequence[int], other: Sequence[int]) -> list[int]:
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return list(one[len(one) - length :]) if length < len(one) else []


def tokens_after_answer(answered: RecordedAnswer, ending: list[int], answer: Message) -> list[int] | None:
    """The tokens that the template puts after an answer, from where the sampled ids end."""
    if answered.is_open:
        return ending or None
    reach = MOST_AFTER_CALLS if answer.get("tool_calls") else 1  # later it belongs to the next message
    end_of_turn = answered.ids[-1]
    if end_of_turn not in ending[:reach]:
        return None
    return ending[ending.index(end_of_turn) + 1 :]


def is_no_route(error: RequestRefusedError) -> bool:
    return error.status in (404, 405)


def has_reasoning(messages: Sequence[Message]) -> bool:
    return any(message.get("reasoning_content") or message.get("reasoning") for message in messages)


def has_images(messages: Sequence[Message]) -> bool:
    """Whether there is anything but text: token ids cannot represent it."""
    parts = [part for each in messages if isinstance(each.get("content"), list) for part in each["content"]]
    return any(part.get("type") != "text" for part in parts)
