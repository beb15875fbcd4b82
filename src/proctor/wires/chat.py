"""The OpenAI chat completions API: a client's requests, a provider's replies, and what they used.

Most servers speak it. Reasoning and tool calls are kept as they came. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from proctor.trace import Message, Reply, ToolSpec, Usage
from proctor.wires.codec import NOTHING, copy_if_present, encode_json
from proctor.wires.errors import ErrorInReplyError, UnusableReplyError

C = TypeVar("C")

LONGEST_EMPTY_LIST = 100
"""Bytes of an empty list, with whatever space is in it."""


# The shape of replies, read leniently: servers differ


class TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class ReplyFunctionCall(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = ""


class ReplyToolCall(msgspec.Struct):
    function: ReplyFunctionCall
    id: str | None = None


class ReplyMessage(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[ReplyToolCall] | None = None


class ChatChoice(msgspec.Struct):
    message: ReplyMessage
    finish_reason: str | None = None
    logprobs: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


class ChatCompletion(msgspec.Struct):
    choices: list[ChatChoice] | None = None
    usage: ChatUsage | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


class MeteredChat(msgspec.Struct):
    """The part of a reply, or of one event of a stream, that is needed to meter it."""

    usage: ChatUsage | None = None
    choices: msgspec.Raw = NOTHING
    """Never decoded: a hostile endpoint may send millions."""


_decode_completion = msgspec.json.Decoder(ChatCompletion).decode
_decode_metered = msgspec.json.Decoder(MeteredChat).decode


# A client's request


def encode_messages(messages: Sequence[Message]) -> Sequence[Message]:
    for message in messages:
        if "tool_calls" in message or "native" in message:
            return [encode_message(each) for each in messages]
    return messages


def encode_message(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls and "native" not in message:
        return message
    encoded = {name: value for name, value in message.items() if name != "native"}
    if calls:
        encoded["tool_calls"] = [encode_tool_call(call) for call in calls]
    return encoded


def encode_tool_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    if "function" in call:  # a dataset's prompt, written for this API
        return call
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "function": describe_function(tool)}


def describe_function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


# A provider's reply


def decode_reply(content: bytes) -> Reply:
    completion = _decode_completion(content)
    choice = first_choice(completion.choices, completion.error)
    if choice.error is not NOTHING and (error := copy_if_present(choice.error)):
        raise error_in_reply(error)
    return Reply(
        message_of(choice.message),
        choice.finish_reason or "stop",
        usage_of(completion.usage),
        completion.model,
        completion.id,
        None if choice.logprobs is NOTHING else copy_if_present(choice.logprobs),
    )


def first_choice(choices: Sequence[C] | None, error: msgspec.Raw) -> C:
    if choices:
        return choices[0]
    if reported := copy_if_present(error):
        raise error_in_reply(reported)
    raise UnusableReplyError("answered without any choices.")


def message_of(body: ReplyMessage) -> Message:
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


def tool_call_of(call: ReplyToolCall, number: int) -> dict[str, Any]:
    arguments = call.function.arguments
    if not isinstance(arguments, str):
        arguments = encode_json(arguments or {}).decode()
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


def error_in_reply(error: msgspec.Raw) -> ErrorInReplyError:
    """Some gateways answer 200 and put the real status into the body."""
    body: Any = msgspec.json.decode(error)
    code = body.get("code") if isinstance(body, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return ErrorInReplyError(status, bytes(error))


def reply_usage(content: bytes) -> Usage:
    return usage_of(_decode_metered(content).usage)


def event_usage(data: bytes, before: Usage) -> Usage:
    usage = _decode_metered(data).usage
    return before if usage is None else usage_of(usage)


def has_choices(data: bytes) -> bool:
    """Whether an event carries more than its usage."""
    choices = bytes(_decode_metered(data).choices)
    return b"".join(choices[:LONGEST_EMPTY_LIST].split()) not in (b"", b"[]", b"null")
