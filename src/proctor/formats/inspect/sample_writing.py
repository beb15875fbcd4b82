"""One stored rollout as a sample of an Inspect log.

Knows nothing of archives or headers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from proctor.formats.chat_messages import encode_text
from proctor.formats.sources import get_text
from proctor.store.replay import AGENT, StoredCall, StoredRow, parse_tool_calls
from proctor.trace import Usage, text_of

STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
SUMMARY = (
    "id",
    "epoch",
    "input",
    "target",
    "metadata",
    "scores",
    "model_usage",
    "started_at",
    "total_time",
    "uuid",
)


def build_sample(row: StoredRow, model: str) -> dict[str, Any]:
    messages = [*row.prompt, *row.completion]
    converted = [convert_message(each, f"{index}") for index, each in enumerate(messages)]
    usage = read_usage(row.token_usage)
    sample: dict[str, Any] = {
        "id": row.example_id,
        "epoch": row.rollout + 1,
        "input": build_input(converted[: len(row.prompt)]),
        "target": build_target(row.answer),
        "messages": converted,
        "output": build_output(row, converted, model, usage),
        "scores": build_scores(row),
        "metadata": row.info if isinstance(row.info, dict) else {},
        "store": {},
        "events": [build_event(call, converted) for call in row.model_calls],
        "model_usage": {model: usage} if usage else {},
        "total_time": row.timing.total or None,
        "uuid": hashlib.sha256(f"{row.task_hash}/{row.example_id}/{row.rollout}".encode()).hexdigest()[:22],
        "attachments": {},
    }
    if row.timing.start_time:
        sample["started_at"] = format_time(row.timing.start_time)
        sample["completed_at"] = format_time(row.timing.start_time + row.timing.total)
    if row.error is not None:
        text = f"{row.error.error}({row.error.message!r})"
        sample["error"] = {"message": text, "traceback": "\n".join(row.error.traceback), "traceback_ansi": ""}
    elif row.outcome == "timeout":
        sample["limit"] = {"type": "time", "limit": row.timing.total}
    elif row.outcome == "truncated":
        sample["limit"] = {"type": "token", "limit": row.token_usage.output_tokens}
    return sample


def build_summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What a list of samples shows, without opening each."""
    summary = {name: sample[name] for name in SUMMARY if name in sample}
    error = get_text(sample, "error", "message")
    return summary | {"completed": not error, **({"error": error} if error else {})}


def build_input(prompt: Sequence[Mapping[str, Any]]) -> Any:
    if len(prompt) == 1 and prompt[0]["role"] == "user" and isinstance(prompt[0]["content"], str):
        return prompt[0]["content"]
    return list(prompt)


def build_target(answer: Any) -> Any:
    if isinstance(answer, list) and all(isinstance(each, str) for each in answer):
        return answer
    return "" if answer is None else encode_text(answer)


def build_scores(row: StoredRow) -> dict[str, Any]:
    if row.reward is None:
        return {}
    scores: dict[str, Any] = {"reward": {"value": row.reward}}
    if row.subscores:
        scores["reward"]["metadata"] = {"subscores": msgspec.to_builtins(row.subscores)}
    return scores | {name: {"value": value} for name, value in row.metrics.items() if name != "reward"}


def build_output(
    row: StoredRow, messages: Sequence[dict[str, Any]], model: str, usage: Mapping[str, int]
) -> dict[str, Any]:
    last = next((each for each in reversed(messages[len(row.prompt) :]) if each["role"] == "assistant"), None)
    if last is None:
        return {"model": model, "choices": [], "completion": ""}
    reason = next((call.finish_reason for call in reversed(row.model_calls) if call.role == AGENT), None)
    return build_model_output(model, last, reason, usage)


def build_model_output(
    model: str, message: dict[str, Any], reason: str | None, usage: Mapping[str, int]
) -> dict[str, Any]:
    output: dict[str, Any] = {
        "model": model,
        "choices": [{"message": message, "stop_reason": STOP_REASONS.get(reason or "", "unknown")}],
        "completion": text_of(message),
    }
    return output | {"usage": dict(usage)} if usage else output


def build_event(call: StoredCall, conversation: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A model call; what it sent and got is part of the conversation, or stored with the call."""
    sent = list(conversation[: call.messages]) if isinstance(call.messages, int) else call.messages
    asked = [each if isinstance(call.messages, int) else convert_message(each) for each in sent]
    reply = call.reply
    if isinstance(reply, int):
        reply = conversation[reply] if 0 <= reply < len(conversation) else None
    elif reply is not None:
        reply = convert_message(reply)
    model = call.model or "unknown"
    usage = read_usage(call.usage)
    empty = {"model": model, "choices": [], "completion": ""}
    event: dict[str, Any] = {
        "event": "model",
        "timestamp": format_time(call.start),
        "model": model,
        "input": asked,
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": empty if reply is None else build_model_output(model, reply, call.finish_reason, usage),
        "working_time": call.seconds,
    }
    if call.role != AGENT:
        event["role"] = call.role
    return event | {"error": call.error.message} if call.error is not None else event


def convert_message(message: Any, number: str = "") -> dict[str, Any]:
    if not isinstance(message, dict):
        return {"role": "user", "content": str(message)}
    role = message.get("role")
    role = role if role in ("system", "user", "assistant", "tool") else "user"
    content = convert_content(message.get("content"))
    if reasoning := get_text(message, "reasoning_content"):
        text = [{"type": "text", "text": content}] if isinstance(content, str) else content
        content = [{"type": "reasoning", "reasoning": reasoning}, *text]
    converted: dict[str, Any] = {"role": role, "content": content}
    if number:
        converted["id"] = number
    if role == "assistant":
        converted["source"] = "generate"
        if calls := parse_tool_calls(message):
            converted["tool_calls"] = [build_tool_call(*call) for call in calls]
    if role == "tool" and get_text(message, "tool_call_id"):
        converted["tool_call_id"] = message["tool_call_id"]
    return converted


def build_tool_call(call_id: str | None, name: str, arguments: str) -> dict[str, Any]:
    """Inspect keeps arguments as an object; text that is none becomes a parse error."""
    call: dict[str, Any] = {"id": call_id or "", "function": name, "type": "function"}
    try:
        return call | {"arguments": msgspec.json.decode(arguments or "{}", type=dict[str, Any])}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return call | {"arguments": {}, "parse_error": f"The arguments are not a JSON object: {arguments}"}


def convert_content(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return encode_text(content)
    return [convert_part(part) for part in content]


def convert_part(part: Any) -> dict[str, Any]:
    if isinstance(part, dict) and part.get("type") == "image_url":
        image = part.get("image_url")
        url = get_text(image, "url") if isinstance(image, dict) else str(image)
        return {"type": "image", "image": url}
    if isinstance(part, dict) and part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    return {"type": "text", "text": encode_text(part)}


def read_usage(usage: Usage) -> dict[str, int]:
    """Inspect counts cached input apart from the rest of it."""
    if not any(msgspec.structs.astuple(usage)):
        return {}
    counts = {
        "input_tokens": max(0, usage.input_tokens - usage.cached_tokens),
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    optional = {"input_tokens_cache_read": usage.cached_tokens, "reasoning_tokens": usage.reasoning_tokens}
    return counts | {name: tokens for name, tokens in optional.items() if tokens}


def format_time(at: float) -> str:
    return datetime.fromtimestamp(max(0.0, at), UTC).isoformat()
