"""The OpenAI Responses API, without memory on the server's side: each request carries all that was said.

Thoughts come sealed (`reasoning.encrypted_content`) and go back as they came. `max_tokens`,
`reasoning_effort`, `response_format` and `tool_choice` are translated from the words of the chat API,
unknown sampling parameters pass untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import MalformedReplyError, ModelError, RequestRefusedError
from proctor.models.http_client import UNREADABLE, error_for_status
from proctor.models.http_model import HttpModel
from proctor.models.openai_chat import NOTHING, TokenDetails, copy_if_present, read_error
from proctor.models.parts import Part, ToolCall, image_of, native_content, parts_of, tool_calls_of
from proctor.trace import Message, Reply, ToolSpec, Usage, text_of

CLIENT_TYPE = "openai_responses"
SEALED_THOUGHTS = "reasoning.encrypted_content"

FINISH_REASONS = {"max_output_tokens": "length"}
STATUSES = {"rate_limit_exceeded": 429, "context_length_exceeded": 400, "invalid_prompt": 400}
OF_A_CALL = frozenset({"type", "call_id", "name", "arguments", "id", "status"})
OF_A_MESSAGE = frozenset({"type", "role", "content", "id", "status"})
OF_A_TEXT = frozenset({"type", "text", "annotations", "logprobs"})


class ItemPart(msgspec.Struct):
    type: str
    text: str = ""
    refusal: str = ""
    logprobs: list[Any] | None = None


class ResponseItem(msgspec.Struct):
    """What the neutral message takes from an item of an answer."""

    type: str
    content: list[ItemPart] | None = None
    summary: list[ItemPart] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class ResponsesUsage(msgspec.Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class IncompleteDetails(msgspec.Struct):
    reason: str | None = None


class ResponsesReplyBody(msgspec.Struct):
    output: list[dict[str, Any]] | None = None
    status: str | None = None
    incomplete_details: IncompleteDetails | msgspec.UnsetType | None = msgspec.UNSET
    usage: ResponsesUsage | None = None
    model: str | None = None
    id: str | None = None
    error: msgspec.Raw = NOTHING


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ResponsesReplyBody).decode


class OpenAIResponses(HttpModel):
    """A model behind `POST {url}/responses`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._seals_thoughts = True

    async def complete(self, request: Request) -> Reply:
        body = self.body(request)
        try:
            content = await self.http.post("/responses", _encode(body), request.headers)
        except RequestRefusedError as error:
            if "include" in request.sampling or not refuses_sealing(error, body):
                raise
            self._seals_thoughts = False
            content = await self.http.post("/responses", _encode(self.body(request)), request.headers)
        return read_reply(content, self.endpoint, body.get("max_output_tokens"))

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.endpoint.model, "input": items_of(request.messages)}
        if request.tools:
            body["tools"] = [encode_tool(tool) for tool in request.tools]
        body["store"] = False
        if self._seals_thoughts:
            body["include"] = [SEALED_THOUGHTS]
        return {**body, **encode_sampling(request.sampling)}


def refuses_sealing(error: RequestRefusedError, body: Mapping[str, Any]) -> bool:
    """A model that does not think refuses to be asked for sealed thoughts, and no list says which do."""
    return error.status == 400 and "include" in body and "encrypted content" in str(error).lower()


# What is asked


def encode_sampling(sampling: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(sampling)
    if "max_tokens" in own:
        own["max_output_tokens"] = own.pop("max_tokens")
    if "reasoning_effort" in own:
        own["reasoning"] = {"effort": own.pop("reasoning_effort"), **(own.get("reasoning") or {})}
    wanted = own.pop("response_format", None)
    if wanted is not None:
        own["text"] = {"format": encode_format(wanted), **(own.get("text") or {})}
    choice = own.get("tool_choice")
    if isinstance(choice, Mapping) and "function" in choice:
        own["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    return own


def encode_format(wanted: Any) -> Any:
    """What the chat API nests under `json_schema` stands beside the type here."""
    match wanted:
        case {"json_schema": {**described}, **rest}:
            return {**rest, **described}
    return wanted


def encode_tool(tool: ToolSpec) -> dict[str, Any]:
    # Strict is this API's default, and refuses schemas that the chat API takes.
    return {"type": "function", **msgspec.to_builtins(tool), "strict": False}


def items_of(messages: Iterable[Message]) -> list[Part]:
    return [item for message in messages for item in items_of_one(message)]


def items_of_one(message: Message) -> Sequence[Part]:
    role = message["role"]
    if role == "assistant":
        native = native_content(message, CLIENT_TYPE, message_of)
        return assistant_items(message) if native is None else list(drop_unsendable(native))
    content = content_of(message)
    if role == "tool":
        call_id = message.get("tool_call_id")
        return [{"type": "function_call_output", "call_id": call_id, "output": content}]
    return [{"type": "message", "role": role, "content": content}]


def content_of(message: Message) -> str | list[Part]:
    content = message.get("content") or ""
    return content if isinstance(content, str) else [encode_part(part) for part in parts_of(content)]


def encode_part(part: Part) -> Part:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part["text"]}
    image = image_of(part)
    if image is None:
        return part
    shown = part["image_url"]
    detail = shown.get("detail") if isinstance(shown, Mapping) else None
    return {"type": "input_image", "image_url": image.url, "detail": detail or "auto"}


def assistant_items(message: Message) -> list[Part]:
    text = text_of(message)
    said: list[Part] = [{"type": "message", "role": "assistant", "content": text}] if text else []
    return said + [encode_call(call) for call in tool_calls_of(message)]


def encode_call(call: ToolCall) -> Part:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def drop_unsendable(items: Iterable[Part]) -> Iterator[Part]:
    """A thought of which only the summary came is not known to a server that stored nothing."""
    for item in items:
        if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content"):
            yield item


# What is answered


def read_reply(content: bytes, endpoint: Endpoint, max_tokens: int | None = None) -> Reply:
    try:
        answered = _decode(content)
        items = msgspec.convert(answered.output or [], list[ResponseItem])
    except UNREADABLE as error:
        sample = content[:120].decode(errors="replace")
        raise MalformedReplyError(
            f"{endpoint.url} answered with what is no response ({error}): {sample!r}"
        ) from error
    if told := copy_if_present(answered.error):
        raise read_response_error(told, endpoint)
    if answered.output is None:
        raise MalformedReplyError(f"{endpoint.url} answered without any output.")
    if answered.status not in (None, "completed", "incomplete"):
        raise MalformedReplyError(f"{endpoint.url} left its answer {answered.status}.")
    usage = usage_of(answered.usage)
    return Reply(
        message_with_native(answered.output),
        "length" if is_cut_in_silence(answered, usage, max_tokens) else finish_reason(answered, items),
        usage,
        answered.model,
        answered.id,
        logprobs_of(items),
    )


def message_with_native(output: list[dict[str, Any]]) -> Message:
    """The neutral message, and what it would lose."""
    message = message_of(output)
    if [simplify_item(item) for item in drop_unsendable(output)] != assistant_items(message):
        message["native"] = {"by": CLIENT_TYPE, "content": output}
    return message


def simplify_item(item: Part) -> Part:
    """An item as we would have written it, or as it is when it says more than that."""
    said = {name for name, value in item.items() if value is not None}
    if item.get("type") == "function_call" and said <= OF_A_CALL:
        return {name: item.get(name) for name in ("type", "call_id", "name", "arguments")}
    parts = item.get("content") or ()
    if item.get("type") == "message" and said <= OF_A_MESSAGE and all(map(is_plain_text, parts)):
        return {"type": "message", "role": "assistant", "content": "".join(part["text"] for part in parts)}
    return item


def is_plain_text(part: Part) -> bool:
    return part.get("type") == "output_text" and part.keys() <= OF_A_TEXT and not part.get("annotations")


def message_of(output: Sequence[Part]) -> Message:
    items = msgspec.convert(output, list[ResponseItem])
    texts = [part.text or part.refusal for part in message_parts(items)]
    thoughts = [thought for item in items if (thought := thought_of(item))]
    calls = [
        {"id": item.call_id, "name": item.name, "arguments": item.arguments}
        for item in items
        if item.type == "function_call"
    ]
    message: Message = {"role": "assistant", "content": "".join(texts) if texts else None}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def message_parts(items: Iterable[ResponseItem]) -> Iterator[ItemPart]:
    for item in items:
        if item.type == "message":
            yield from item.content or ()


def thought_of(item: ResponseItem) -> str:
    """A thought in its own words where they are shown, else their summary."""
    if item.type != "reasoning":
        return ""
    return "\n\n".join(part.text for part in item.content or item.summary or () if part.text)


def finish_reason(answered: ResponsesReplyBody, items: Sequence[ResponseItem]) -> str:
    if any(part.type == "refusal" for part in message_parts(items)):
        return "content_filter"
    if answered.status == "incomplete":
        reason = (answered.incomplete_details and answered.incomplete_details.reason) or "max_output_tokens"
        return FINISH_REASONS.get(reason, reason)
    return "tool_calls" if any(item.type == "function_call" for item in items) else "stop"


def is_cut_in_silence(answered: ResponsesReplyBody, usage: Usage, max_tokens: int | None) -> bool:
    """Whether a server that never says what is incomplete stopped at the limit (llama.cpp does)."""
    is_silent = answered.incomplete_details is msgspec.UNSET and answered.status != "incomplete"
    return is_silent and max_tokens is not None and usage.output_tokens >= max_tokens


def usage_of(body: ResponsesUsage | None) -> Usage:
    if body is None:
        return Usage()
    read, written = body.input_tokens_details, body.output_tokens_details
    return Usage(
        body.input_tokens or 0,
        body.output_tokens or 0,
        (read.cached_tokens or 0) if read else 0,
        (written.reasoning_tokens or 0) if written else 0,
    )


def logprobs_of(items: Iterable[ResponseItem]) -> msgspec.Raw | None:
    """In the shape of the chat API."""
    tokens = [token for part in message_parts(items) for token in part.logprobs or ()]
    return msgspec.Raw(_encode({"content": tokens})) if tokens else None


def read_response_error(error: msgspec.Raw, endpoint: Endpoint) -> ModelError:
    """The error of an answer that began well."""
    body: Any = msgspec.json.decode(error)
    status = STATUSES.get(str(body.get("code"))) if isinstance(body, Mapping) else None
    if status is None:
        return read_error(error, endpoint)
    return error_for_status(status, bytes(error), {}, endpoint)
