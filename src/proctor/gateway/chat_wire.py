"""The OpenAI chat completions API, as a server. Knows nothing of HTTP or of who answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from proctor.gateway.wire import (
    Answer,
    Body,
    ModelRequest,
    Part,
    Refusal,
    decode_request,
    drop_defaults,
    encode_event,
    malformed_error,
    require_text,
    thoughts_of,
)
from proctor.trace import Message, ToolSpec, Usage

KEEP_ALIVE = b": still at it\n\n"
DONE = b"data: [DONE]\n\n"

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter")
ERROR_TYPES = {
    "key": "authentication_error",
    "rate_limit_exceeded": "rate_limit_error",
    "not_found": "invalid_request_error",
}


class ChatFunctionCall(msgspec.Struct):
    name: str
    arguments: str = ""


class ChatToolCall(msgspec.Struct):
    id: str
    function: ChatFunctionCall


class ChatMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class FunctionSpec(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(msgspec.Struct):
    function: FunctionSpec
    type: Literal["function"] = "function"


class ChatStreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class ChatRequest(msgspec.Struct):
    messages: list[ChatMessage]
    tools: list[ChatTool] | None = None
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None
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


# What is asked


def read(content: bytes) -> ModelRequest:
    body = decode_request(content, ChatRequest)
    if not body.messages:
        raise malformed_error("messages is empty.")
    if body.n not in (None, 1):
        raise malformed_error(f"n is {body.n}; one answer is given to a request.")
    options = body.stream_options
    return ModelRequest(
        messages=[message_of(each, f"messages[{place}]") for place, each in enumerate(body.messages)],
        tools=[tool_of(tool.function) for tool in body.tools or ()],
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


def tool_of(function: FunctionSpec) -> ToolSpec:
    parameters = function.parameters or {"type": "object", "properties": {}}
    return ToolSpec(function.name, function.description or "", parameters)


def message_of(body: ChatMessage, where: str) -> Message:
    role = "system" if body.role == "developer" else body.role
    message: Message = {"role": role, "content": content_of(body.content, where)}
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


def content_of(content: str | list[Part] | None, where: str) -> str | list[Part] | None:
    if not isinstance(content, list):
        return content
    for place, part in enumerate(content):
        check_part(part, f"{where}.content[{place}]")
    return [strip_cache_marks(part) for part in content]


def check_part(part: Part, where: str) -> None:
    kind = require_text(part, "type", where)
    if kind == "text":
        require_text(part, "text", where)
    elif kind == "image_url":
        shown = part.get("image_url")
        if not isinstance(shown, dict):
            raise malformed_error(f"{where}.image_url must be an object with a url.")
        require_text(shown, "url", f"{where}.image_url")


def strip_cache_marks(part: Part) -> Part:
    """A text without the marks that are made for one provider's cache."""
    return {"type": "text", "text": part["text"]} if part["type"] == "text" else part


# What is answered


def answer(asked: ModelRequest, told: Answer) -> Body:  # noqa: ARG001
    reply = told.reply
    message: Message = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if thoughts := thoughts_of(reply.message):
        message["reasoning_content"] = thoughts
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in reply.tool_calls
        ]
    reason = reply.finish_reason if reply.finish_reason in FINISH_REASONS else "stop"
    return {
        "id": f"chatcmpl-{told.id}",
        "object": "chat.completion",
        "created": told.at,
        "model": told.model,
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


def events(asked: ModelRequest, body: Body) -> Iterator[bytes]:
    choice = body["choices"][0]
    head = {name: body[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    for delta in deltas(choice["message"]):
        yield encode_event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {}, "logprobs": choice["logprobs"], "finish_reason": choice["finish_reason"]}
    yield encode_event({**head, "choices": [last]})
    if asked.wants_usage:
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


def refusal(why: Refusal) -> Body:
    kind = ERROR_TYPES.get(why.code, "invalid_request_error" if why.status < 500 else "server_error")
    code = "invalid_api_key" if why.code == "key" else why.code
    return {"error": {"message": why.message, "type": kind, "param": None, "code": code}}


def broken_off(why: Refusal) -> bytes:
    return encode_event(refusal(why)) + DONE
