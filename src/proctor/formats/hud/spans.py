"""The spans of one HUD trace as a rollout: setup, user, agent and tool steps, and the grade.

Knows nothing of files or jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.formats.chat_messages import encode_text
from proctor.formats.foreign_run import RowParts, build_error, build_timing, is_number, parse_time
from proctor.formats.sources import get_list, get_object, get_text
from proctor.rollout import Outcome, is_score
from proctor.trace import Message

STEP_SCHEMA = "hud.step.v1"
NAMES = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
}


def is_span(fields: Mapping[str, Any]) -> bool:
    return "trace_id" in fields and "hud.schema" in get_object(fields, "attributes")


class HudTrace:
    """One trace, collected step by step."""

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.template = ""
        self.args: dict[str, Any] = {}
        self.model = ""
        self.messages: list[Message] = []
        self.calls: list[dict[str, Any]] = []
        self.first_reply: int | None = None
        self.score: Any = None
        self.grade: dict[str, Any] = {}
        self.errors: list[str] = []
        self.start: float | None = None
        self.end: float | None = None

    @property
    def slug(self) -> str:
        """The task's id as HUD derives it from the template and its arguments."""
        if not self.args:
            return self.template or self.trace_id
        digest = hashlib.sha1(
            json.dumps(self.args, sort_keys=True, default=str).encode(), usedforsecurity=False
        )
        return f"{self.template}-{digest.hexdigest()[:8]}"

    def add(self, span: Mapping[str, Any]) -> None:
        payload = get_object(span, "attributes", "hud.payload")
        start, end = parse_time(span.get("start_time")), parse_time(span.get("end_time"))
        if start is not None:
            self.start = start if self.start is None else min(self.start, start)
        if end is not None:
            self.end = end if self.end is None else max(self.end, end)
        if get_object(span, "attributes").get("hud.schema") != STEP_SCHEMA:
            return  # file changes and robots' steps have no counterpart
        source = get_text(payload, "source")
        if source == "task":
            self._add_task_call(get_object(payload, "task_call"))
        elif source == "agent":
            self._add_reply(payload, start, end)
        elif source == "tool":
            self._add_tool_result(payload)
        else:
            self.messages += [convert_prompt_message(each) for each in get_list(payload, "messages")]
        if error := get_text(payload, "error"):
            self.errors.append(error)

    def _add_task_call(self, call: Mapping[str, Any]) -> None:
        self.template = get_text(call, "name") or self.template
        result = call.get("result")
        if call.get("phase") == "setup":
            self.args = get_object(call, "arguments")
        elif isinstance(result, dict):
            self.grade = result
            self.score = result.get("score")

    def _add_reply(self, payload: Mapping[str, Any], start: float | None, end: float | None) -> None:
        index = len(self.messages)
        if self.first_reply is None:
            self.first_reply = index
        message: Message = {"role": "assistant", "content": get_text(payload, "content")}
        if reasoning := get_text(payload, "reasoning"):
            message["reasoning_content"] = reasoning
        if calls := [each for each in get_list(payload, "tool_calls") if isinstance(each, dict)]:
            message["tool_calls"] = [convert_call(each) for each in calls]
        self.messages.append(message)
        self.model = self.model or get_text(payload, "model")
        self.calls.append(build_call(payload, index, start, end))

    def _add_tool_result(self, payload: Mapping[str, Any]) -> None:
        result, call = get_object(payload, "result"), get_object(payload, "call")
        texts = [get_text(part, "text") for part in get_list(result, "content") if isinstance(part, dict)]
        message: Message = {"role": "tool", "content": "\n".join(filter(None, texts))}
        if call_id := get_text(result, "call_id") or get_text(call, "id"):
            message["tool_call_id"] = call_id
        self.messages.append(message)

    def build_parts(self, number: int, slug: str) -> RowParts:
        split = len(self.messages) if self.first_reply is None else self.first_reply
        total = self.end - self.start if self.start is not None and self.end is not None else None
        failed = bool(self.grade.get("isError"))
        is_graded = not failed and is_number(self.score) and is_score(self.score)
        reward = float(self.score) if is_graded else None
        return RowParts(
            example_id=slug,
            rollout=number,
            outcome=self._outcome(reward, failed),
            prompt=self.messages[:split],
            completion=self.messages[split:],
            reward=reward,
            info={"template": self.template, "args": self.args} if self.template else {},
            error=None if reward is not None else self._error(failed),
            timing=build_timing(self.start, total),
            token_usage=add_usage(self.calls),
            model_calls=self.calls,
            columns={"trace_id": self.trace_id, **({"grade": self.grade} if len(self.grade) > 1 else {})},
        )

    def _outcome(self, reward: float | None, failed: bool) -> Outcome:
        if reward is not None:
            return "scored"
        if failed:
            return "grader_error"
        return "environment_error" if self.errors else "cancelled"

    def _error(self, failed: bool) -> dict[str, Any]:
        if failed:
            return build_error("GradeError", get_text(self.grade, "content") or "the grade is an error")
        if self.errors:
            return build_error("Error", self.errors[-1])
        return build_error("Unscored", "the trace ends without a grade")


def convert_prompt_message(message: Any) -> Message:
    content = message.get("content") if isinstance(message, dict) else message
    parts = content if isinstance(content, list) else [content]
    texts = [get_text(part, "text") if isinstance(part, dict) else str(part) for part in parts]
    role = get_text(message, "role") if isinstance(message, dict) else ""
    return {"role": role or "user", "content": "\n".join(filter(None, texts))}


def convert_call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": call.get("id"),
        "name": get_text(call, "name"),
        "arguments": encode_text(call.get("arguments") or {}),
    }


def build_call(
    payload: Mapping[str, Any], index: int, start: float | None, end: float | None
) -> dict[str, Any]:
    call: dict[str, Any] = {
        "role": "agent",
        "model": get_text(payload, "model"),
        "messages": index,
        "reply": index,
        "finish_reason": get_text(payload, "finish_reason") or "unknown",
    }
    if start is not None:
        call["start"] = start
        if end is not None:
            call["seconds"] = max(0.0, end - start)
    usage = get_object(payload, "usage")
    counts = {ours: int(usage[theirs]) for ours, theirs in NAMES.items() if is_number(usage.get(theirs))}
    return call | {"usage": counts} if counts else call


def add_usage(calls: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for call in calls:
        for name, count in call.get("usage", {}).items():
            total[name] = total.get(name, 0) + count
    return total
