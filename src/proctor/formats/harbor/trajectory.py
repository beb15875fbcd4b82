"""An agent trajectory in Harbor's interchange format (ATIF) as messages and model calls.

Knows nothing of trials or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.formats.chat_messages import encode_text
from proctor.formats.foreign_run import is_number, parse_time
from proctor.formats.sources import get_list, get_object, get_text
from proctor.trace import Message

ROLES = {"system": "system", "user": "user", "agent": "assistant"}
UNKNOWN = "unknown"
"""The format does not say why a model stopped."""


class Trajectory:
    """What an agent and its tools said, in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.calls: list[dict[str, Any]] = []
        self.first_reply: int | None = None

    @property
    def prompt(self) -> list[Message]:
        return self.messages[: self.first_reply]

    @property
    def completion(self) -> list[Message]:
        return [] if self.first_reply is None else self.messages[self.first_reply :]


def read_trajectory(document: Mapping[str, Any]) -> Trajectory:
    trajectory = Trajectory()
    default_model = get_text(document, "agent", "model_name")
    for step in get_list(document, "steps"):
        if isinstance(step, dict):
            add_step(trajectory, step, default_model)
    return trajectory


def add_step(trajectory: Trajectory, step: Mapping[str, Any], default_model: str) -> None:
    role = ROLES.get(get_text(step, "source"), "user")
    message: Message = {"role": role, "content": convert_content(step.get("message"))}
    if reasoning := get_text(step, "reasoning_content"):
        message["reasoning_content"] = reasoning
    if calls := [each for each in get_list(step, "tool_calls") if isinstance(each, dict)]:
        message["tool_calls"] = [convert_tool_call(each) for each in calls]
    index = len(trajectory.messages)
    trajectory.messages.append(message)
    if role == "assistant":
        if trajectory.first_reply is None:
            trajectory.first_reply = index
        if step.get("llm_call_count") != 0:
            trajectory.calls.append(build_call(step, index, default_model))
    for result in get_list(step, "observation", "results"):
        if isinstance(result, dict):
            trajectory.messages.append(convert_result(result, bool(calls)))


def build_call(step: Mapping[str, Any], index: int, default_model: str) -> dict[str, Any]:
    call: dict[str, Any] = {
        "role": "agent",
        "model": get_text(step, "model_name") or default_model,
        "messages": index,
        "reply": index,
        "finish_reason": UNKNOWN,
    }
    if (start := parse_time(step.get("timestamp"))) is not None:
        call["start"] = start
    metrics = get_object(step, "metrics")
    names = {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "cached_tokens": "cached_tokens",
    }
    usage = {ours: int(metrics[theirs]) for ours, theirs in names.items() if is_number(metrics.get(theirs))}
    return call | {"usage": usage} if usage else call


def convert_tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": call.get("tool_call_id"),
        "name": get_text(call, "function_name"),
        "arguments": encode_text(call.get("arguments") or {}),
    }


def convert_result(result: Mapping[str, Any], has_calls: bool) -> Message:
    """What the environment showed: the result of a call, or of nothing the agent called by name."""
    message: Message = {
        "role": "tool" if has_calls else "user",
        "content": convert_content(result.get("content")),
    }
    if isinstance(result.get("source_call_id"), str):
        message["tool_call_id"] = result["source_call_id"]
    return message


def convert_content(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    return [convert_part(part) for part in content] if isinstance(content, list) else encode_text(content)


def convert_part(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {"type": "text", "text": str(part)}
    path = get_text(part, "source", "path")
    return {"type": "image_url", "image_url": {"url": path}} if path else part
