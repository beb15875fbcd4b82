"""Samples of Inspect as plain data: tasks before they are played, then messages, scores and failures.

Runs in the task's own Python, loaded by `child.py`. Knows nothing of Proctor or of evaluations.
"""

from __future__ import annotations

import json
import math
from typing import Any

from inspect_ai.scorer import value_to_float

LARGEST_COLUMN = 100_000
"""Characters of one value of the store that is passed on."""


def task_of(key: Any, sample: Any) -> dict[str, Any]:
    given = sample.input
    prompt = [{"role": "user", "content": given}] if isinstance(given, str) else plain_messages(given)
    target = sample.target
    return {
        "id": key,
        "prompt": prompt,
        "answer": target if isinstance(target, str) else "\n".join(map(str, target)),
        "info": dict(sample.metadata or {}),
        "columns": {"choices": sample.choices} if sample.choices else {},
    }


def describe_play(sample: Any) -> dict[str, Any]:
    messages, first = sample.messages, count_prompt(sample.messages)
    limit = sample.limit
    stop = sample.output.stop_reason if sample.output.choices else None
    failed = sample.error is not None and not was_scoring(sample)
    return {
        "prompt": plain_messages(messages[:first]),
        "completion": plain_messages(messages[first:]),
        "stop_condition": f"{limit.type}_limit" if limit is not None else stop,
        "truncated": limit is not None or stop in ("max_tokens", "model_length"),
        "error": describe_failure(sample.error) if failed else None,
    }


def count_prompt(messages: list[Any]) -> int:
    """How many messages came before the model's first; examples in the prompt were not generated."""
    for number, message in enumerate(messages):
        if message.role == "assistant" and message.source == "generate":
            return number
    return len(messages)


def was_scoring(sample: Any) -> bool:
    return any(event.event == "span_begin" and event.name == "scorers" for event in sample.events)


def describe_failure(error: Any) -> dict[str, Any]:
    """The message has the exception's type where Inspect kept it: in the last line of the traceback."""
    last = (error.traceback.strip().splitlines() or [""])[-1]
    kind, colon, message = last.partition(": ")
    known = bool(colon) and kind.replace(".", "").isidentifier()
    return {
        "type": kind.rpartition(".")[2] if known else "Error",
        "message": (message if known else "") or error.message,
    }


def describe_score(sample: Any) -> dict[str, Any]:
    if sample.error is not None:
        return {"error": describe_failure(sample.error)}
    if not sample.scores:
        return {"error": {"type": "NoScore", "message": "the task has no scorer, so nothing was scored"}}
    metrics: dict[str, float] = {}
    for name, score in sample.scores.items():
        metrics.update(numbers_of(name, score.value))
    reward = next(iter(metrics.values()), math.nan)
    if math.isnan(reward):
        name = next(iter(sample.scores))
        return {"error": {"type": "Unscored", "message": f"the scorer {name!r} gave no score"}}
    kept = {name: value for name, value in metrics.items() if not math.isnan(value)}
    return {"reward": reward, "metrics": kept, "state": describe_state(sample)}


def numbers_of(name: str, value: Any) -> dict[str, float]:
    """A score's value as numbers, by the rule of Inspect's own metrics; one for each key or element."""
    to_float = value_to_float()
    if isinstance(value, dict):
        return {f"{name}.{key}": to_float(each) for key, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return {f"{name}.{index}": to_float(each) for index, each in enumerate(value)}
    return {name: to_float(value)}


def describe_state(sample: Any) -> dict[str, Any]:
    """What `-C` can save: the store, and what the scorers said."""
    scores = {
        name: {"value": score.value, "answer": score.answer, "explanation": score.explanation}
        for name, score in sample.scores.items()
    }
    kept = {name: value for name, value in sample.store.items() if len(repr(value)) <= LARGEST_COLUMN}
    return {"scores": scores, "store": kept}


def plain_messages(messages: list[Any]) -> list[dict[str, Any]]:
    return [plain_message(each) for each in messages]


def plain_message(message: Any) -> dict[str, Any]:
    """A message as the chat completions API has it, with its reasoning beside the text."""
    parts = [] if isinstance(message.content, str) else message.content
    found: dict[str, Any] = {"role": message.role, "content": content_of(message)}
    reasoning = [part.reasoning for part in parts if part.type == "reasoning" and part.reasoning]
    if reasoning:
        found["reasoning_content"] = "\n".join(reasoning)
    if calls := getattr(message, "tool_calls", None):
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ]
    if message.role == "tool":
        found["tool_call_id"] = message.tool_call_id or ""
    return found


def content_of(message: Any) -> Any:
    """The text; a list of parts if there are images too."""
    if isinstance(message.content, str):
        return message.content
    if not any(part.type == "image" for part in message.content):
        return message.text
    return [
        {"type": "text", "text": part.text}
        if part.type == "text"
        else {"type": "image_url", "image_url": {"url": part.image}}
        for part in message.content
        if part.type in ("text", "image")
    ]
