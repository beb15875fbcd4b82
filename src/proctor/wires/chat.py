"""The OpenAI chat completions API, which most servers speak: both sides of it.

Reasoning and tool calls are kept as they came. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from proctor.trace import Message, Reply, ToolSpec, Usage
from proctor.wires.codec import NOTHING, copy_if_present, encode_event, encode_json
from proctor.wires.content import Part, text_part, thoughts_of
from proctor.wires.errors import ErrorInReplyError, Refusal, UnusableReplyError, malformed_error
from proctor.wires.wire import (
    STILL_WORKING,
    Answer,
    Body,
    ModelRequest,
    Wire,
    decode_as,
    drop_defaults,
    require_text,
)

C = TypeVar("C")

DONE = b"data: [DONE]\n\n"
NO_PARAMETERS = {"type": "object", "properties": {}}
LONGEST_EMPTY_LIST = 100
"""Bytes of an empty list, with whatever space is in it."""

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter")
ERROR_TYPES = {
    "key": "authentication_error",
    "rate_limit_exceeded": "rate_limit_error",
    "not_found": "invalid_request_error",
}


# The shape of requests


class RequestFunctionCall(msgspec.Struct):
    name: str
    arguments: str = ""


class RequestToolCall(msgspec.Struct):
    id: str
    function: RequestFunctionCall


class ChatMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[RequestToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class FunctionSpec(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(msgspec.Struct):
    function: FunctionSpec
    type: Literal["function"] = "function"


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class ChatRequest(msgspec.Struct):
    messages: list[ChatMessage]
    tools: list[ChatTool] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None


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


# A program's request


def decode_request(content: bytes) -> ModelRequest:
    body = decode_as(content, ChatRequest)
    if not body.messages:
        raise malformed_error("messages is empty.")
    if body.n not in (None, 1):
        raise malformed_error(f"n is {body.n}; this gateway gives one answer per request.")
    options = body.stream_options
    return ModelRequest(
        messages=[read_message(each, f"messages[{index}]") for index, each in enumerate(body.messages)],
        tools=[read_tool(tool.function) for tool in body.tools or ()],
        sampling=sampling_of(body),
        stream=bool(body.stream),
        wants_usage=options is not None and bool(options.include_usage),
    )


def sampling_of(body: ChatRequest) -> dict[str, Any]:
    return drop_defaults(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        stop=body.stop,
        seed=body.seed,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        logit_bias=body.logit_bias or None,
        logprobs=body.logprobs or None,
        top_logprobs=body.top_logprobs,
        tool_choice=body.tool_choice,
        response_format=body.response_format,
        reasoning_effort=body.reasoning_effort,
    )


def read_tool(function: FunctionSpec) -> ToolSpec:
    return ToolSpec(function.name, function.description or "", function.parameters or NO_PARAMETERS)


def read_message(body: ChatMessage, where: str) -> Message:
    role = "system" if body.role == "developer" else body.role
    message: Message = {"role": role, "content": read_content(body.content, where)}
    if body.role == "assistant":
        if body.reasoning_content:
            message["reasoning_content"] = body.reasoning_content
        if body.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
                for call in body.tool_calls
            ]
    elif body.role == "tool":
        if body.tool_call_id is None:
            raise malformed_error(f"{where}.tool_call_id is missing.")
        message["tool_call_id"] = body.tool_call_id
    elif body.content is None:
        raise malformed_error(f"{where}.content is missing.")
    return message


def read_content(content: str | list[Part] | None, where: str) -> str | list[Part] | None:
    if not isinstance(content, list):
        return content
    for index, part in enumerate(content):
        check_part(part, f"{where}.content[{index}]")
    return [strip_cache_marks(part) for part in content]


def check_part(part: Part, where: str) -> None:
    kind = require_text(part, "type", where)
    if kind == "text":
        require_text(part, "text", where)
    elif kind == "image_url":
        image = part.get("image_url")
        if not isinstance(image, dict):
            raise malformed_error(f"{where}.image_url must be an object with a url.")
        require_text(image, "url", f"{where}.image_url")


def strip_cache_marks(part: Part) -> Part:
    """A text without the marks for one provider's cache."""
    return text_part(part["text"]) if part["type"] == "text" else part


# The gateway's reply


def encode_reply(request: ModelRequest, answer: Answer) -> Body:  # noqa: ARG001
    reply = answer.reply
    message: Message = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if thoughts := thoughts_of(reply.message):
        message["reasoning_content"] = thoughts
    if reply.tool_calls:
        message["tool_calls"] = [encode_tool_call(call) for call in reply.tool_calls]
    reason = reply.finish_reason if reply.finish_reason in FINISH_REASONS else "stop"
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": answer.at,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": reply.logprobs, "finish_reason": reason}],
        "usage": encode_usage(reply.usage),
    }


def encode_usage(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def encode_stream(request: ModelRequest, body: Body) -> Iterator[bytes]:
    return delta_events(request, body, deltas(body["choices"][0]["message"]))


def stream_head(body: Body) -> Body:
    """What every event of a stream repeats."""
    return {**{name: body[name] for name in ("id", "created", "model")}, "object": "chat.completion.chunk"}


def delta_events(request: ModelRequest, body: Body, left: Iterable[Body]) -> Iterator[bytes]:
    """The deltas that are left, and the end of the stream."""
    choice, head = body["choices"][0], stream_head(body)
    for delta in left:
        yield encode_event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {}, "logprobs": choice["logprobs"], "finish_reason": choice["finish_reason"]}
    yield encode_event({**head, "choices": [last]})
    if request.wants_usage:
        yield encode_event({**head, "choices": [], "usage": body["usage"]})
    yield DONE


def deltas(message: Message) -> Iterator[Body]:
    yield {"role": "assistant", "content": ""}
    for field in ("reasoning_content", "content"):
        if message.get(field):
            yield {field: message[field]}
    calls: Sequence[Body] = message.get("tool_calls") or ()
    for index, call in enumerate(calls):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
        if function["arguments"]:
            yield {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]}


def encode_refusal(refusal: Refusal) -> Body:
    kind = ERROR_TYPES.get(refusal.code, "invalid_request_error" if refusal.status < 500 else "server_error")
    code = "invalid_api_key" if refusal.code == "key" else refusal.code
    return {"error": {"message": refusal.message, "type": kind, "param": None, "code": code}}


def encode_broken_stream(refusal: Refusal) -> bytes:
    return encode_event(encode_refusal(refusal)) + DONE


WIRE = Wire(
    client_type="openai_chat_completions",
    path="/chat/completions",
    decode_request=decode_request,
    encode_reply=encode_reply,
    encode_stream=encode_stream,
    encode_refusal=encode_refusal,
    encode_broken_stream=encode_broken_stream,
    keep_alive=STILL_WORKING,
    reply_usage=reply_usage,
    event_usage=event_usage,
    stream_ends=(b"data: [DONE]", b"data:[DONE]"),
)
