"""A rollout as one line of results.jsonl.

Field names are the ones people know from other tools, with ours beside them. Whatever JSON cannot express is
written as text: a row is never lost because of a value. Knows nothing of files.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.errors import Failure
from proctor.report.lines import count_reused, helper_usage
from proctor.rollout import Attempt, Rollout
from proctor.trace import Message, ModelCall, ToolSpec, Trace, Usage, last_assistant_text

_encode = msgspec.json.Encoder(enc_hook=str).encode

OPTIONAL = (
    "info",
    "subscores",
    "attempts",
    "earlier_attempts",
    "cleanup_error",
    "group_size",
    "other_usage",
    "tool_defs",
    "file_changes",
    "answers",
    "reused_replies",
    "reused_from",
)
"""Fields that most rows do not have; no state column may pass for one of them."""
MEMBER = "env"
"""Which of several environments a rollout belongs to."""
MAX_DEPTH = 100
MAX_PARTS = 1_000_000
"""Of one value: deeper or larger than that, it is cut."""
LONGEST_INT_BITS = 1024
"""Longer numbers are more than most readers of JSON can take."""


def encode_row(rollout: Rollout, shared_tools: Sequence[ToolSpec] = ()) -> bytes:
    row = build_row(rollout, shared_tools)
    try:
        return _encode(row) + b"\n"
    except Exception:
        return _encode(to_json_value(row)) + b"\n"


def build_row(rollout: Rollout, shared_tools: Sequence[ToolSpec] = ()) -> dict[str, Any]:
    task, trace, score = rollout.task, rollout.trace, rollout.score
    prompt, completion = split_conversation(trace)
    row: dict[str, Any] = {
        "example_id": task.id,
        "task_hash": task.hash,
        "rollout": rollout.number,
        "outcome": rollout.outcome,
        "prompt": prompt,
        "completion": completion,
        "answer": task.answer,
        "reward": None if score is None else score.reward,
        "metrics": {} if score is None else score.metrics,
        "error": None if rollout.failure is None else encode_failure(rollout.failure),
        "timing": encode_timing(rollout),
        "is_completed": rollout.failure is None,
        "is_truncated": trace.truncated,
        "stop_condition": trace.stop_condition,
        "token_usage": encode_usage(rollout.usage, trace),
        "model_calls": [build_call_row(call, prompt, completion) for call in trace.calls],
    }
    if info := task.origin:
        row["info"] = info
    if task.member:
        row[MEMBER] = task.member
    if has_optional_fields(rollout):
        row.update(optional_fields(rollout, shared_tools))
    for name, value in rollout.columns.items():
        if name == MEMBER and value == task.member:
            continue  # it is a field already
        row[choose_free_name(name, row)] = to_json_value(value)
    return row


def choose_free_name(column: str, row: Mapping[str, Any]) -> str:
    """What a state column is called where it must not be taken for a field."""
    name = column
    while name in row or name in OPTIONAL:
        name = f"state_{name}"
    return name


def has_optional_fields(rollout: Rollout) -> bool:
    """Whether it may have fields that most rollouts do not have."""
    calls = rollout.trace.calls
    return (
        len(calls) != 1
        or bool(calls[0].tools or rollout.earlier or rollout.trace.files)
        or calls[0].role != "agent"
        or calls[0].reused
        or differs_from_text(rollout.trace)
        or rollout.cleanup_failure is not None
        or rollout.group_size > 1
        or (rollout.score is not None and bool(rollout.score.subscores))
    )


def optional_fields(rollout: Rollout, shared_tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Fields that most rollouts do not have."""
    fields: dict[str, Any] = {}
    if rollout.score is not None and rollout.score.subscores:
        fields["subscores"] = rollout.score.subscores
    if rollout.earlier:
        fields["attempts"] = 1 + len(rollout.earlier)
        fields["earlier_attempts"] = [encode_attempt(attempt) for attempt in rollout.earlier]
    if rollout.cleanup_failure is not None:
        fields["cleanup_error"] = encode_failure(rollout.cleanup_failure)
    if rollout.group_size > 1:
        fields["group_size"] = rollout.group_size
    if others := helper_usage(rollout):
        fields["other_usage"] = others
    if reused := count_reused(rollout):
        fields["reused_replies"] = reused
    if differs_from_text(rollout.trace):
        fields["answers"] = rollout.trace.answers
    if rollout.trace.files:
        fields["file_changes"] = rollout.trace.files
    tools = rollout.trace.calls[0].tools if rollout.trace.calls else ()
    if tools and tools is not shared_tools and list(tools) != list(shared_tools):
        fields["tool_defs"] = tools
    return fields


def differs_from_text(trace: Trace) -> bool:
    """Whether an agent answered anything but the text of its last message of the turn."""
    answers = trace.answers
    return bool(answers) and (len(answers) > 1 or answers[0] != last_assistant_text(trace.completion))


def split_conversation(trace: Trace) -> tuple[Sequence[Message], Sequence[Message]]:
    """Prompt and completion; where the environment did not say, as the last answered call shows them."""
    if trace.prompt or not trace.calls:
        return trace.prompt, trace.completion
    prompt = trace.calls[0].messages
    last = trace.calls[-1]
    replied = [last.reply.message] if last.reply is not None else []
    return prompt, [*last.messages[len(prompt) :], *replied]


class CallRow(msgspec.Struct, omit_defaults=True):
    """One model call as it is stored."""

    role: str
    model: str
    messages: int | Sequence[Message]
    start: float
    seconds: float
    sampling: Mapping[str, Any] = {}
    error: dict[str, Any] | None = None
    reply: int | Message | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    served_model: str | None = None
    id: str | None = None
    logprobs: msgspec.Raw | None = None
    served_by: str | None = None
    reused: bool = False


def build_call_row(call: ModelCall, prompt: Sequence[Message], completion: Sequence[Message]) -> CallRow:
    """One model call. Messages of the conversation are stored as how many of it were sent, and
    the reply by its place there, so that a long conversation is stored once and not once a turn."""
    reply = call.reply
    messages = encode_messages(call.messages, prompt, completion)
    error = None if call.failure is None else encode_failure(call.failure)
    if reply is None:
        return CallRow(call.role, call.model, messages, call.started_at, call.seconds, call.sampling, error)
    place = find_position(reply.message, completion)
    return CallRow(
        call.role,
        call.model,
        messages,
        call.started_at,
        call.seconds,
        call.sampling,
        error,
        reply.message if place is None else len(prompt) + place,
        reply.finish_reason,
        reply.usage,
        reply.model,
        reply.id,
        reply.logprobs,
        reply.served_by,
        call.reused,
    )


def encode_messages(
    messages: Sequence[Message], prompt: Sequence[Message], completion: Sequence[Message]
) -> int | Sequence[Message]:
    count = len(messages)
    if count > len(prompt) + len(completion):
        return messages
    for index, message in enumerate(messages):
        there = prompt[index] if index < len(prompt) else completion[index - len(prompt)]
        if message is not there:
            return messages
    return count


def find_position(message: Message, completion: Sequence[Message]) -> int | None:
    for index, known in enumerate(completion):
        if known is message:
            return index
    return None


def encode_usage(total: Usage, trace: Trace) -> dict[str, int]:
    usage = {"input_tokens": total.input_tokens, "output_tokens": total.output_tokens}
    if total.cached_tokens:
        usage["cached_tokens"] = total.cached_tokens
    if total.reasoning_tokens:
        usage["reasoning_tokens"] = total.reasoning_tokens
    for call in reversed(trace.calls):
        if call.reply is not None and call.role == "agent":
            usage["final_input_tokens"] = call.reply.usage.input_tokens
            usage["final_output_tokens"] = call.reply.usage.output_tokens
            break
    return usage


def encode_timing(rollout: Rollout) -> dict[str, Any]:
    timing = rollout.timing
    setup, generation, scoring = timing.setup, timing.generation, timing.scoring
    model = rollout.trace.model_seconds()
    total = timing.end - setup.start
    return {
        "start_time": setup.start,
        "setup": {"start": setup.start, "end": setup.end, "duration": setup.end - setup.start},
        "generation": {
            "start": generation.start,
            "end": generation.end,
            "duration": generation.end - generation.start,
        },
        "scoring": {"start": scoring.start, "end": scoring.end, "duration": scoring.end - scoring.start},
        "model": {"duration": model},
        "total": total,
        "overhead": max(0.0, total - model),
    }


def encode_failure(failure: Failure) -> dict[str, Any]:
    error: dict[str, Any] = {
        "error": failure.kind,
        "message": failure.message,
        "error_chain_str": failure.chain,
    }
    if failure.phase:
        error["phase"] = failure.phase
    if failure.location:
        error["location"] = failure.location
    if failure.trace:
        error["traceback"] = failure.trace
    return error


def encode_attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "outcome": attempt.outcome,
        "error": encode_failure(attempt.failure),
        "start": attempt.started_at,
        "seconds": attempt.seconds,
        "usage": attempt.usage,
    }


def to_json_value(value: Any) -> Any:
    """The value in JSON's terms; what has none becomes text."""
    try:
        return JsonConverter().of(value)
    except CircularValueError:
        return JsonConverter(each_once=True).of(value)


class CircularValueError(Exception):
    """A value holds itself."""


class JsonConverter:
    """Converts one value to JSON, even if it cannot be represented.

    A value that holds itself is put there with every part only once.
    """

    def __init__(self, each_once: bool = False) -> None:
        self.each_once = each_once
        self.met: set[int] = set()
        self.depth = 0
        self.parts = 0

    def of(self, value: Any) -> Any:
        try:
            return self.convert_one(value)
        except CircularValueError:
            raise
        except Exception as error:
            return self.of(f"<{type(value).__name__} that cannot be shown: {safe_text(error)}>")

    def convert_one(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, msgspec.Raw)):
            return value
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if isinstance(value, int):
            return int(value) if value.bit_length() <= LONGEST_INT_BITS else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, (bytes, bytearray)):
            return value.decode("utf-8", "backslashreplace")
        return self.convert_parts(value)

    def convert_parts(self, value: Any) -> Any:
        fields = fields_of(value)
        if fields is None and not isinstance(value, (list, tuple, set, frozenset)):
            return self.of(str(value))
        if id(value) in self.met:
            if not self.each_once:
                raise CircularValueError
            return f"<the same {type(value).__name__} again>"
        if self.depth >= MAX_DEPTH or self.parts >= MAX_PARTS:
            return f"<{type(value).__name__} too deep or too large to keep>"
        self.met.add(id(value))
        self.parts += 1
        self.depth += 1
        try:
            if fields is None:
                return [self.of(item) for item in value]
            return {self.of(safe_text(key)): self.of(item) for key, item in fields}
        finally:
            self.depth -= 1
            if not self.each_once:
                self.met.discard(id(value))


def fields_of(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Names and values of something that becomes an object."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value).items()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return None


def safe_text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} that raised {type(error).__name__}>"
