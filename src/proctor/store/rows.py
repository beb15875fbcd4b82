"""A rollout as one line of results.jsonl.

Field names are the ones people know from other tools, with ours beside them. Whatever is no JSON is
written as text: a row is never lost because of a value. Knows nothing of files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.errors import Failure
from proctor.report import other_usage
from proctor.rollout import Attempt, Rollout, Span
from proctor.trace import Message, ModelCall, ToolSpec, Trace

_encode = msgspec.json.Encoder(enc_hook=str).encode


def encode_row(rollout: Rollout, shared_tools: Sequence[ToolSpec] = ()) -> bytes:
    row = row_of(rollout, shared_tools)
    try:
        return _encode(row) + b"\n"
    except Exception:
        return _encode(as_json(row)) + b"\n"


def row_of(rollout: Rollout, shared_tools: Sequence[ToolSpec] = ()) -> dict[str, Any]:
    task, trace, score = rollout.task, rollout.trace, rollout.score
    prompt, completion = conversation(trace)
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
        "error": None if rollout.failure is None else error_of(rollout.failure),
        "timing": timing_of(rollout),
        "is_completed": rollout.failure is None,
        "is_truncated": trace.truncated,
        "stop_condition": trace.stop_condition,
        "token_usage": token_usage(trace),
        "model_calls": [call_of(call, prompt, completion) for call in trace.calls],
    }
    if task.info:
        row["info"] = task.info
    row.update(optional_fields(rollout, shared_tools))
    for name, value in rollout.columns.items():
        row[name if name not in row else f"state_{name}"] = value
    return row


def optional_fields(rollout: Rollout, shared_tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Fields that most rollouts do not have."""
    fields: dict[str, Any] = {}
    if rollout.score is not None and rollout.score.subscores:
        fields["subscores"] = rollout.score.subscores
    if rollout.earlier:
        fields["attempts"] = 1 + len(rollout.earlier)
        fields["earlier_attempts"] = [attempt_of(attempt) for attempt in rollout.earlier]
    if rollout.cleanup_failure is not None:
        fields["cleanup_error"] = error_of(rollout.cleanup_failure)
    if rollout.group_size > 1:
        fields["group_size"] = rollout.group_size
    if others := other_usage(rollout):
        fields["other_usage"] = others
    tools = rollout.trace.calls[0].tools if rollout.trace.calls else ()
    if tools and tools != shared_tools:
        fields["tool_defs"] = tools
    return fields


def conversation(trace: Trace) -> tuple[Sequence[Message], Sequence[Message]]:
    """Prompt and completion; where the environment did not say, as the last answered call shows them."""
    if trace.prompt or not trace.calls:
        return trace.prompt, trace.completion
    prompt = trace.calls[0].messages
    last = trace.calls[-1]
    replied = [last.reply.message] if last.reply is not None else []
    return prompt, [*last.messages[len(prompt) :], *replied]


def call_of(call: ModelCall, prompt: Sequence[Message], completion: Sequence[Message]) -> dict[str, Any]:
    """One model call. Messages that stand in the conversation are told by how many of it were sent, and
    the reply by its place there, so that a long conversation is stored once and not once a turn."""
    said: dict[str, Any] = {
        "role": call.role,
        "model": call.model,
        "messages": shared_length(call.messages, prompt, completion),
        "start": call.started_at,
        "seconds": call.seconds,
    }
    if call.sampling:
        said["sampling"] = call.sampling
    if call.failure is not None:
        said["error"] = error_of(call.failure)
    reply = call.reply
    if reply is not None:
        place = position(reply.message, completion)
        said["reply"] = reply.message if place is None else len(prompt) + place
        said["finish_reason"] = reply.finish_reason
        said["usage"] = reply.usage
        if reply.model is not None:
            said["served_model"] = reply.model
        if reply.id is not None:
            said["id"] = reply.id
        if reply.logprobs is not None:
            said["logprobs"] = reply.logprobs
    return said


def shared_length(
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


def position(message: Message, completion: Sequence[Message]) -> int | None:
    for index, known in enumerate(completion):
        if known is message:
            return index
    return None


def token_usage(trace: Trace) -> dict[str, int]:
    total = trace.usage()
    usage = {"input_tokens": total.input_tokens, "output_tokens": total.output_tokens}
    if total.cached_tokens:
        usage["cached_tokens"] = total.cached_tokens
    if total.reasoning_tokens:
        usage["reasoning_tokens"] = total.reasoning_tokens
    last = next((call.reply for call in reversed(trace.calls) if call.reply and call.role == "agent"), None)
    if last is not None:
        usage["final_input_tokens"] = last.usage.input_tokens
        usage["final_output_tokens"] = last.usage.output_tokens
    return usage


def timing_of(rollout: Rollout) -> dict[str, Any]:
    timing = rollout.timing
    model = rollout.trace.model_seconds()
    total = timing.total
    return {
        "start_time": timing.setup.start,
        "setup": span_of(timing.setup),
        "generation": span_of(timing.generation),
        "scoring": span_of(timing.scoring),
        "model": {"duration": model},
        "total": total,
        "overhead": max(0.0, total - model),
    }


def span_of(span: Span) -> dict[str, float]:
    return {"start": span.start, "end": span.end, "duration": span.end - span.start}


def error_of(failure: Failure) -> dict[str, Any]:
    error: dict[str, Any] = {
        "error": failure.kind,
        "message": failure.message,
        "error_chain_str": failure.chain,
    }
    if failure.phase:
        error["phase"] = failure.phase
    if failure.trace:
        error["traceback"] = failure.trace
    return error


def attempt_of(attempt: Attempt) -> dict[str, Any]:
    return {
        "outcome": attempt.outcome,
        "error": error_of(attempt.failure),
        "start": attempt.started_at,
        "seconds": attempt.seconds,
    }


def as_json(value: Any, depth: int = 0) -> Any:
    """The value in JSON's terms; what has none becomes text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth > 40:
        return as_json(safe_text(value))
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {as_json(str(key)): as_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(item, depth + 1) for item in value]
    return as_json(safe_text(value))


def safe_text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {error}>"
