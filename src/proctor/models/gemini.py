"""The Gemini API: `generateContent`, as Google serves it.

What Google alone can read, such as the signatures of its thoughts, travels with the message as `native` and
goes back as it came. Knows nothing of streaming, uploaded files or cached contents.
"""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import AuthError, MalformedReplyError, ModelError, RateLimitError, RequestRefusedError
from proctor.models.gemini_sampling import encode_sampling
from proctor.models.http_client import UNREADABLE, HttpClient, error_for_status
from proctor.models.http_model import HttpModel
from proctor.models.openai_chat import NOTHING, copy_if_present, read_error
from proctor.models.parts import (
    Image,
    ToolCall,
    arguments_of,
    image_of,
    native_content,
    parts_of,
    tool_calls_of,
)
from proctor.trace import Message, Reply, ToolSpec, Usage, text_of

CLIENT_TYPE = "gemini"
DEFAULT_URL = "https://generativelanguage.googleapis.com/v1beta"

Part = dict[str, Any]

FILTERED = frozenset(
    {
        "BLOCKLIST",
        "IMAGE_OTHER",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "OTHER",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""The provider cut the answer off, not the model."""

ORDINARY = frozenset({None, "", "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"})


class FunctionCall(msgspec.Struct):
    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class InlineData(msgspec.Struct, rename="camel"):
    mime_type: str = ""
    data: str = ""


class PartBody(msgspec.Struct, rename="camel"):
    """What the neutral message takes from a part of an answer."""

    text: str | None = None
    thought: bool | None = None
    function_call: FunctionCall | None = None
    inline_data: InlineData | None = None


class GeminiContent(msgspec.Struct):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    content: GeminiContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    logprobs_result: msgspec.Raw = NOTHING


class PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class UsageMetadata(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = 0
    tool_use_prompt_token_count: int | None = 0
    cached_content_token_count: int | None = 0
    candidates_token_count: int | None = 0
    """Without the thoughts, which are counted apart and paid for as output."""
    thoughts_token_count: int | None = 0


class GeminiReplyBody(msgspec.Struct, rename="camel"):
    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: msgspec.Raw = NOTHING


class ErrorDetail(msgspec.Struct, rename="camel"):
    reason: str | None = None
    retry_delay: str | None = None


class ErrorBody(msgspec.Struct):
    details: list[ErrorDetail] | None = None


class GeminiErrorBody(msgspec.Struct):
    error: ErrorBody


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(GeminiReplyBody).decode
_decode_failed = msgspec.json.Decoder(GeminiErrorBody | list[GeminiErrorBody]).decode


class Gemini(HttpModel):
    """A model behind `POST {url}/models/{model}:generateContent`."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint = endpoint if endpoint.url else msgspec.structs.replace(endpoint, url=DEFAULT_URL)
        super().__init__(endpoint, HttpClient(endpoint, key_header="x-goog-api-key", failure=gemini_failure))
        self._path = f"/{quote(resource_name(endpoint.model))}:generateContent"

    async def complete(self, request: Request) -> Reply:
        body = _encode(self.body(request))
        return read_reply(await self.http.post(self._path, body, request.headers), self.endpoint)

    def body(self, request: Request) -> dict[str, Any]:
        instruction, turns = split_instruction(request.messages)
        body: dict[str, Any] = {"contents": contents_of(turns)}
        if instruction:
            body["systemInstruction"] = {"parts": instruction}
        config, beside = encode_sampling(request.sampling, self.endpoint.model)
        body.update(beside)
        if config:
            body["generationConfig"] = config
        if request.tools:
            declared = {"functionDeclarations": [declaration_of(tool) for tool in request.tools]}
            body["tools"] = [*body.get("tools", ()), declared]
        return body


def resource_name(model: str) -> str:
    """The model as the address spells it: bare, as `models/…`, or as gateways write it, `google/…`."""
    name = model.removeprefix("google/")
    return name if "/" in name else f"models/{name}"


# What is asked


def declaration_of(tool: ToolSpec) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):  # an object without any is refused
        declared["parametersJsonSchema"] = tool.parameters
    return declared


def split_instruction(messages: Sequence[Message]) -> tuple[list[Part], Sequence[Message]]:
    """What the conversation opens with as an instruction, and the turns; there is no such role later on."""
    count = 0
    while count < len(messages) and messages[count]["role"] in ("system", "developer"):
        count += 1
    instruction = [part for message in messages[:count] for part in encode_parts(message)]
    return instruction, messages[count:]


def contents_of(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The turns of two roles, `user` and `model`, that take turns."""
    contents: list[dict[str, Any]] = []
    calls: dict[str, Part] = {}
    for message in in_call_order(messages):
        role = "model" if message["role"] == "assistant" else "user"
        if role == "model":
            parts = model_parts(message)
            calls = calls_by_id(message, parts)
        elif message["role"] == "tool":
            parts = response_parts(message, calls)
        else:
            parts = encode_parts(message) or [{"text": ""}]
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(parts)
        elif parts:
            contents.append({"role": role, "parts": list(parts)})
    for content in contents:
        content["parts"].sort(key=lambda part: "functionResponse" not in part)  # stable: they come first
    return contents


def in_call_order(messages: Iterable[Message]) -> Iterator[Message]:
    """Results of parallel calls in the order of the calls: without ids nothing else tells them apart."""
    order: dict[str, int] = {}
    for are_results, run in groupby(messages, key=lambda message: message["role"] == "tool"):
        said = list(run)
        if are_results:
            yield from sorted(said, key=lambda each: order.get(each.get("tool_call_id", ""), len(order)))
        else:
            yield from said
            order = {call.id: number for number, call in enumerate(tool_calls_of(said[-1]))}


def model_parts(message: Message) -> list[Part]:
    """An answer as Google wrote it, if the message still says so; else as the message says it."""
    if written := native_content(message, CLIENT_TYPE, message_of):
        return [dict(part) for part in written]
    if written := native_content(message, CLIENT_TYPE, lambda parts: message_of(without_thoughts(parts))):
        return without_thoughts(
            written
        )  # thoughts that were taken out leave the signatures of the rest valid
    return rebuild_parts(message)


def without_thoughts(parts: Iterable[Mapping[str, Any]]) -> list[Part]:
    return [dict(part) for part in parts if not part.get("thought")]


def rebuild_parts(message: Message) -> list[Part]:
    calls = [encode_call(call, number) for number, call in enumerate(tool_calls_of(message))]
    return [*encode_parts(message), *calls]


def encode_call(call: ToolCall, number: int) -> Part:
    arguments = arguments_of(call)
    said = {"name": call.name, "args": {"arguments": call.arguments} if arguments is None else arguments}
    return {"functionCall": said if call.id == make_call_id(number) else {"id": call.id, **said}}


def make_call_id(number: int) -> str:
    """For a call that came without one; Google is not told of it."""
    return f"call_{number}"


def calls_by_id(message: Message, parts: Iterable[Part]) -> dict[str, Part]:
    """The function calls of an answer as they are sent, by the ids that everybody else knows."""
    written = [part["functionCall"] for part in parts if "functionCall" in part]
    return {call.id: said for call, said in zip(tool_calls_of(message), written, strict=False)}


def response_parts(message: Message, calls: Mapping[str, Part]) -> list[Part]:
    """What a tool returned. Pictures cannot be part of it and stand beside it."""
    identity = message.get("tool_call_id", "")
    call = calls.get(identity, {"name": message.get("name") or identity})
    response: dict[str, Any] = {"name": call["name"], "response": {"output": text_of(message)}}
    if "id" in call:
        response["id"] = call["id"]
    return [{"functionResponse": response}, *(part for part in encode_parts(message) if "text" not in part)]


def encode_parts(message: Message) -> list[Part]:
    return [encode_part(part) for part in parts_of(message.get("content"))]


def encode_part(part: Mapping[str, Any]) -> Part:
    """A part of a message in Google's words; one of an unknown type passes untouched."""
    if part.get("type") == "text":
        return {"text": part["text"]}
    if part.get("type") == "input_audio":
        audio = part["input_audio"]
        return {"inlineData": {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}}
    image = image_of(part)
    return dict(part) if image is None else encode_image(image)


def encode_image(image: Image) -> Part:
    if image.data is not None:
        return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
    if image.url.startswith("data:"):
        kind, _, data = image.url.removeprefix("data:").partition(",")
        return {"inlineData": {"mimeType": kind, "data": b64encode(unquote_to_bytes(data)).decode()}}
    kind = mimetypes.guess_type(urlsplit(image.url).path)[0] or ""
    return {"fileData": {"fileUri": image.url, "mimeType": kind} if kind else {"fileUri": image.url}}


# What is answered


def read_reply(content: bytes, endpoint: Endpoint) -> Reply:
    try:
        generated = _decode(content)
        candidate = first_candidate(generated, endpoint)
        parts = (candidate.content and candidate.content.parts) or []
        message = message_of(parts)
    except UNREADABLE as error:
        sample = content[:120].decode(errors="replace")
        raise MalformedReplyError(
            f"{endpoint.url} answered with what is no generated content ({error}): {sample!r}"
        ) from error
    if native := native_of(message, parts, candidate):
        message["native"] = native
    return Reply(
        message,
        finish_reason_of(candidate, message, endpoint),
        usage_of(generated.usage_metadata),
        generated.model_version,
        generated.response_id,
        copy_if_present(candidate.logprobs_result),
    )


def first_candidate(generated: GeminiReplyBody, endpoint: Endpoint) -> Candidate:
    """The answer; a question that was blocked has the block for an answer."""
    if generated.candidates:
        return generated.candidates[0]
    if told := copy_if_present(generated.error):
        raise read_error(told, endpoint)
    if generated.prompt_feedback and generated.prompt_feedback.block_reason:
        reason = generated.prompt_feedback.block_reason
        return Candidate(finish_reason="SAFETY", finish_message=f"the prompt was blocked: {reason}")
    raise MalformedReplyError(f"{endpoint.url} answered without any candidates.")


def message_of(parts: Iterable[Mapping[str, Any]]) -> Message:
    thoughts: list[str] = []
    said: list[Part] = []
    calls: list[dict[str, Any]] = []
    for part in msgspec.convert(list(parts), list[PartBody]):
        if part.function_call:
            calls.append(tool_call_of(part.function_call, len(calls)))
        elif part.thought:
            thoughts.append(part.text or "")
        elif part.text is not None:
            said.append({"type": "text", "text": part.text})
        elif part.inline_data:
            said.append(decode_image(part.inline_data))
    message: Message = {"role": "assistant", "content": neutral_content(said, has_calls=bool(calls))}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def neutral_content(said: Sequence[Part], *, has_calls: bool) -> str | list[Part] | None:
    if any(part["type"] != "text" for part in said):
        return list(said)
    text = "".join(part["text"] for part in said)
    return text or (None if has_calls else "")


def tool_call_of(call: FunctionCall, number: int) -> dict[str, Any]:
    arguments = _encode(call.args or {}).decode()
    return {"id": call.id or make_call_id(number), "name": call.name, "arguments": arguments}


def decode_image(data: InlineData) -> Part:
    return {"type": "image_url", "image_url": {"url": f"data:{data.mime_type};base64,{data.data}"}}


def native_of(message: Message, parts: Sequence[Part], candidate: Candidate) -> dict[str, Any] | None:
    """What the neutral message would lose, if anything."""
    unusual = candidate.finish_reason not in ORDINARY
    told = [part for part in parts if not part.get("thought") or "thoughtSignature" in part]
    if told == rebuild_parts(message) and not unusual:
        return None
    native: dict[str, Any] = {"by": CLIENT_TYPE, "content": parts}
    if unusual:
        native["finish_reason"] = candidate.finish_reason
    if candidate.finish_message:
        native["finish_message"] = candidate.finish_message
    return native


def finish_reason_of(candidate: Candidate, message: Message, endpoint: Endpoint) -> str:
    """A call that the model garbled is how it answered: no error, and no reason to ask again."""
    reason = candidate.finish_reason
    if reason == "MAX_TOKENS":
        return "length"
    if reason in FILTERED:
        return "content_filter"
    if reason in ("MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"):
        said = f"{endpoint.url} gave up with {reason}: {candidate.finish_message or 'no explanation'}"
        raise MalformedReplyError(said) if reason == "MALFORMED_RESPONSE" else RequestRefusedError(said)
    return "tool_calls" if message.get("tool_calls") else "stop"


def usage_of(body: UsageMetadata | None) -> Usage:
    if body is None:
        return Usage()
    thoughts = body.thoughts_token_count or 0
    return Usage(
        (body.prompt_token_count or 0) + (body.tool_use_prompt_token_count or 0),
        (body.candidates_token_count or 0) + thoughts,
        body.cached_content_token_count or 0,
        thoughts,
    )


# What goes wrong


def gemini_failure(status: int, content: bytes, headers: Mapping[str, str], endpoint: Endpoint) -> ModelError:
    """The error that an answer with this status means; Google tells the rest in the details of the body."""
    details = error_details(content)
    error = error_for_status(status, content, headers, endpoint)
    if any(detail.reason == "API_KEY_INVALID" for detail in details):
        variable = endpoint.key_var
        hint = f"check the API key in {variable}" if variable else "name the variable of its API key with -k"
        return AuthError(f"{error}; {hint}.", status=status)
    if isinstance(error, RateLimitError) and error.retry_after_seconds is None:
        delays = [seconds_of(detail.retry_delay) for detail in details if detail.retry_delay]
        error.retry_after_seconds = next((delay for delay in delays if delay is not None), None)
    return error


def error_details(content: bytes) -> list[ErrorDetail]:
    try:
        failed = _decode_failed(content)
    except UNREADABLE:
        return []
    bodies = failed if isinstance(failed, list) else [failed]
    return [detail for body in bodies for detail in body.error.details or ()]


def seconds_of(duration: str) -> float | None:
    """`31.5s` → 31.5"""
    try:
        return max(0.0, float(duration.removesuffix("s")))
    except ValueError:
        return None
