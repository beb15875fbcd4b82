"""The Gemini API, `generateContent`: a client's requests and a provider's replies.

What only Google can read, such as the signatures of its thoughts, travels with the message as `native` and
goes back as it came. Knows nothing of HTTP, streaming, uploaded files or cached contents.
"""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from proctor.errors import MalformedReplyError, RequestRefusedError
from proctor.trace import Message, Reply, ToolSpec, Usage, text_of
from proctor.wires.chat import error_in_reply
from proctor.wires.codec import NOTHING, UNREADABLE, copy_if_present, encode_json
from proctor.wires.content import (
    Image,
    Part,
    ToolCall,
    arguments_of,
    assistant_message,
    image_of,
    image_part,
    native_content,
    parts_of,
    text_part,
    tool_calls_of,
)
from proctor.wires.errors import UnusableReplyError

CLIENT_TYPE = "gemini"

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
"""Reasons for which the provider, not the model, cut the answer off."""

ORDINARY = frozenset({None, "", "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"})


class FunctionCall(msgspec.Struct):
    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class InlineData(msgspec.Struct, rename="camel"):
    mime_type: str = ""
    data: str = ""


class PartBody(msgspec.Struct, rename="camel"):
    """The fields of a part that the neutral message needs."""

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
    """Without the thoughts, which are counted separately and billed as output."""
    thoughts_token_count: int | None = 0


class GenerateReply(msgspec.Struct, rename="camel"):
    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: msgspec.Raw = NOTHING


class FailureDetail(msgspec.Struct, rename="camel"):
    reason: str | None = None
    retry_delay: str | None = None


class FailureStatus(msgspec.Struct):
    details: list[FailureDetail] | None = None


class FailureBody(msgspec.Struct):
    error: FailureStatus


_decode_reply = msgspec.json.Decoder(GenerateReply).decode
_decode_failure = msgspec.json.Decoder(FailureBody | list[FailureBody]).decode


# A client's request


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):  # an object without properties is refused
        declared["parametersJsonSchema"] = tool.parameters
    return declared


def split_instruction(messages: Sequence[Message]) -> tuple[list[Part], Sequence[Message]]:
    """The opening system messages as one instruction, and the turns: this API has no such role later on."""
    count = 0
    while count < len(messages) and messages[count]["role"] in ("system", "developer"):
        count += 1
    instruction = [part for message in messages[:count] for part in encode_parts(message)]
    return instruction, messages[count:]


def encode_contents(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The turns, in which two roles alternate: `user` and `model`."""
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
    """Results of parallel calls in the order of the calls: calls without ids are matched by order alone."""
    order: dict[str, int] = {}
    for are_results, run in groupby(messages, key=lambda message: message["role"] == "tool"):
        listed = list(run)
        if are_results:
            yield from sorted(listed, key=lambda each: order.get(each.get("tool_call_id", ""), len(order)))
        else:
            yield from listed
            order = {call.id: number for number, call in enumerate(tool_calls_of(listed[-1]))}


def model_parts(message: Message) -> list[Part]:
    """An answer as Google wrote it, if the message still says the same; else rebuilt from the message."""
    if written := native_content(message, CLIENT_TYPE, message_of):
        return [dict(part) for part in written]
    if written := native_content(message, CLIENT_TYPE, lambda parts: message_of(without_thoughts(parts))):
        return without_thoughts(written)  # the signatures of the other parts stay valid
    return rebuild_parts(message)


def without_thoughts(parts: Iterable[Mapping[str, Any]]) -> list[Part]:
    return [dict(part) for part in parts if not part.get("thought")]


def rebuild_parts(message: Message) -> list[Part]:
    calls = [encode_call(call, number) for number, call in enumerate(tool_calls_of(message))]
    return [*encode_parts(message), *calls]


def encode_call(call: ToolCall, number: int) -> Part:
    arguments = arguments_of(call)
    named = {"name": call.name, "args": {"arguments": call.arguments} if arguments is None else arguments}
    return {"functionCall": named if call.id == make_call_id(number) else {"id": call.id, **named}}


def make_call_id(number: int) -> str:
    """For a call that came without an id; it is never sent to Google."""
    return f"call_{number}"


def calls_by_id(message: Message, parts: Iterable[Part]) -> dict[str, Part]:
    """The function calls of an answer as they are sent, by the ids in the neutral message."""
    written = [part["functionCall"] for part in parts if "functionCall" in part]
    return {call.id: sent for call, sent in zip(tool_calls_of(message), written, strict=False)}


def response_parts(message: Message, calls: Mapping[str, Part]) -> list[Part]:
    """The result of a tool. Images cannot be part of it, so they follow it."""
    identity = message.get("tool_call_id", "")
    call = calls.get(identity, {"name": message.get("name") or identity})
    response: dict[str, Any] = {"name": call["name"], "response": {"output": text_of(message)}}
    if "id" in call:
        response["id"] = call["id"]
    return [{"functionResponse": response}, *(part for part in encode_parts(message) if "text" not in part)]


def encode_parts(message: Message) -> list[Part]:
    return [encode_part(part) for part in parts_of(message.get("content"))]


def encode_part(part: Mapping[str, Any]) -> Part:
    """A part in Google's shape; a part of an unknown type passes unchanged."""
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


# A provider's reply


def decode_reply(content: bytes) -> Reply:
    body = _decode_reply(content)
    candidate = first_candidate(body)
    parts = (candidate.content and candidate.content.parts) or []
    message = message_of(parts)
    if native := native_of(message, parts, candidate):
        message["native"] = native
    return Reply(
        message,
        finish_reason_of(candidate, message),
        usage_of(body.usage_metadata),
        body.model_version,
        body.response_id,
        copy_if_present(candidate.logprobs_result),
    )


def first_candidate(body: GenerateReply) -> Candidate:
    """The answer; if the prompt was blocked, a candidate that says so."""
    if body.candidates:
        return body.candidates[0]
    if error := copy_if_present(body.error):
        raise error_in_reply(error)
    if body.prompt_feedback and body.prompt_feedback.block_reason:
        reason = body.prompt_feedback.block_reason
        return Candidate(finish_reason="SAFETY", finish_message=f"the prompt was blocked: {reason}")
    raise UnusableReplyError("answered without any candidates.")


def message_of(parts: Iterable[Mapping[str, Any]]) -> Message:
    thoughts: list[str] = []
    content: list[Part] = []
    calls: list[dict[str, Any]] = []
    for part in msgspec.convert(list(parts), list[PartBody]):
        if part.function_call:
            calls.append(tool_call_of(part.function_call, len(calls)))
        elif part.thought:
            thoughts.append(part.text or "")
        elif part.text is not None:
            content.append(text_part(part.text))
        elif part.inline_data:
            data = part.inline_data
            content.append(image_part(f"data:{data.mime_type};base64,{data.data}"))
    return assistant_message(
        neutral_content(content, has_calls=bool(calls)), "".join(thoughts) if thoughts else None, calls
    )


def neutral_content(parts: Sequence[Part], *, has_calls: bool) -> str | list[Part] | None:
    if any(part["type"] != "text" for part in parts):
        return list(parts)
    text = "".join(part["text"] for part in parts)
    return text or (None if has_calls else "")


def tool_call_of(call: FunctionCall, number: int) -> dict[str, Any]:
    arguments = encode_json(call.args or {}).decode()
    return {"id": call.id or make_call_id(number), "name": call.name, "arguments": arguments}


def native_of(message: Message, parts: Sequence[Part], candidate: Candidate) -> dict[str, Any] | None:
    """What the neutral message cannot express, if anything."""
    unusual = candidate.finish_reason not in ORDINARY
    needed = [part for part in parts if not part.get("thought") or "thoughtSignature" in part]
    if needed == rebuild_parts(message) and not unusual:
        return None
    native: dict[str, Any] = {"by": CLIENT_TYPE, "content": parts}
    if unusual:
        native["finish_reason"] = candidate.finish_reason
    if candidate.finish_message:
        native["finish_message"] = candidate.finish_message
    return native


def finish_reason_of(candidate: Candidate, message: Message) -> str:
    """A malformed call is the model's own answer: neither an error nor a reason to retry."""
    reason = candidate.finish_reason
    if reason == "MAX_TOKENS":
        return "length"
    if reason in FILTERED:
        return "content_filter"
    if reason in ("MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"):
        kind = MalformedReplyError if reason == "MALFORMED_RESPONSE" else RequestRefusedError
        explanation = candidate.finish_message or "no explanation"
        raise UnusableReplyError(f"gave up with {reason}: {explanation}", kind)
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


# A provider's error


def failure_details(content: bytes) -> list[FailureDetail]:
    """The details of an error, in which Google says more than its status does."""
    try:
        failed = _decode_failure(content)
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
