"""The OpenAI chat completions API as a server speaks it: programs' requests and the gateway's replies.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from proctor.trace import Message, ToolSpec, Usage
from proctor.wires.chat import encode_tool_call, event_usage, reply_usage
from proctor.wires.codec import encode_event
from proctor.wires.content import Part, text_part, thoughts_of
from proctor.wires.errors import Refusal, malformed_error
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

DONE = b"data: [DONE]\n\n"
NO_PARAMETERS = {"type": "object", "properties": {}}
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
