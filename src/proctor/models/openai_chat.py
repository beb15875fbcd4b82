"""The OpenAI chat completions API, which most servers speak.

Reasoning and tool calls are kept as they came, unknown sampling parameters pass untouched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, ModelError
from proctor.models.http_client import UNREADABLE, error_for_status
from proctor.models.http_model import HttpModel
from proctor.trace import Message, Reply, ToolSpec, Usage

C = TypeVar("C")

NOTHING = msgspec.Raw(b"")
"""A part that was not sent. (`Raw | None` would accept nothing but null.)"""


class TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class FunctionCallBody(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = ""


class ToolCallBody(msgspec.Struct):
    function: FunctionCallBody
    id: str | None = None


class ChatReplyMessage(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallBody] | None = None


class ChatChoice(msgspec.Struct):
    message: ChatReplyMessage
    finish_reason: str | None = None
    logprobs: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


class ChatCompletion(msgspec.Struct):
    choices: list[ChatChoice] | None = None
    usage: ChatUsage | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ChatCompletion).decode


class OpenAIChat(HttpModel):
    """A model behind `POST {url}/chat/completions`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._max_tokens_name = (
            "max_completion_tokens" if "//api.openai.com" in endpoint.url else "max_tokens"
        )

    async def complete(self, request: Request) -> Reply:
        body = self.body(request)
        content = await self.http.post("/chat/completions", _encode(body), request.headers)
        return read_reply(content, self.endpoint)

    def body(self, request: Request) -> dict[str, Any]:
        sampling = dict(request.sampling)
        if "max_tokens" in sampling:
            sampling[self._max_tokens_name] = sampling.pop("max_tokens")
        body = {"model": self.endpoint.model, "messages": encode_messages(request.messages), **sampling}
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        return body


def encode_messages(messages: Sequence[Message]) -> Sequence[Message]:
    for message in messages:
        if "tool_calls" in message or "native" in message:
            return [encode_message(each) for each in messages]
    return messages


def encode_message(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls and "native" not in message:
        return message
    wired = {name: value for name, value in message.items() if name != "native"}
    if calls:
        wired["tool_calls"] = [encode_tool_call(call) for call in calls]
    return wired


def encode_tool_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    if "function" in call:  # a dataset's prompt, written for this API
        return call
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "function": msgspec.to_builtins(tool)}


def read_reply(content: bytes, endpoint: Endpoint) -> Reply:
    try:
        completion = _decode(content)
    except UNREADABLE as error:
        sample = content[:120].decode(errors="replace")
        raise MalformedReplyError(
            f"{endpoint.url} answered with what is no chat completion ({error}): {sample!r}"
        ) from error
    choice = first_choice(completion.choices, completion.error, endpoint)
    if choice.error is not NOTHING and (failed := copy_if_present(choice.error)):
        raise read_error(failed, endpoint)
    return Reply(
        message_of(choice.message),
        choice.finish_reason or "stop",
        usage_of(completion.usage),
        completion.model,
        completion.id,
        None if choice.logprobs is NOTHING else copy_if_present(choice.logprobs),
    )


def copy_if_present(part: msgspec.Raw) -> msgspec.Raw | None:
    """A part of an answer, without the rest of the answer in memory; None if it was not there."""
    return part.copy() if part and bytes(part) != b"null" else None


def first_choice(choices: Sequence[C] | None, error: msgspec.Raw, endpoint: Endpoint) -> C:
    if choices:
        return choices[0]
    if told := copy_if_present(error):
        raise read_error(told, endpoint)
    raise MalformedReplyError(f"{endpoint.url} answered without any choices.")


def message_of(body: ChatReplyMessage) -> Message:
    content = body.content if body.content is not None or body.refusal is None else body.refusal
    message: Message = {"role": "assistant", "content": content}
    if body.reasoning_content:
        message["reasoning_content"] = body.reasoning_content
    elif body.reasoning:
        message["reasoning"] = body.reasoning
    if body.reasoning_details:
        message["reasoning_details"] = body.reasoning_details
    if body.tool_calls:
        message["tool_calls"] = [tool_call_of(call, number) for number, call in enumerate(body.tool_calls)]
    return message


def tool_call_of(call: ToolCallBody, number: int) -> dict[str, Any]:
    arguments = call.function.arguments
    if not isinstance(arguments, str):
        arguments = _encode(arguments or {}).decode()
    return {"id": call.id or f"call_{number}", "name": call.function.name, "arguments": arguments}


def usage_of(body: ChatUsage | None) -> Usage:
    if body is None:
        return Usage()
    prompt, completion = body.prompt_tokens_details, body.completion_tokens_details
    return Usage(
        body.prompt_tokens or 0,
        body.completion_tokens or 0,
        (prompt.cached_tokens or 0) if prompt else 0,
        (completion.reasoning_tokens or 0) if completion else 0,
    )


def read_error(error: msgspec.Raw, endpoint: Endpoint) -> ModelError:
    """Some gateways answer 200 and put the real status into the body."""
    body: Any = msgspec.json.decode(error)
    code = body.get("code") if isinstance(body, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return error_for_status(status, bytes(error), {}, endpoint)
