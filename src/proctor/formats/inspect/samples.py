"""One sample of an Inspect log as a row.

The model events become model calls; which of them the evaluated model answered and which a scorer made is
taken from the span that contains them. Knows nothing of archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor.formats.foreign_run import (
    Row,
    RowParts,
    build_error,
    build_row,
    build_timing,
    is_number,
    parse_time,
)
from proctor.formats.inspect.messages import convert_message, resolve_attachments
from proctor.formats.inspect.scores import flatten_scores
from proctor.formats.sources import get_list, get_object, get_text
from proctor.rollout import Outcome
from proctor.trace import Message

OUT_OF_TIME = ("time", "working")
FINISH_REASONS = {"max_tokens": "length", "model_length": "length"}
KEPT = ("store", "description", "choices", "uuid")
"""Of a sample: fields without a counterpart here, kept as columns where they hold something."""


def convert_sample(sample: Mapping[str, Any], model: str, reward_name: str) -> Row:
    attachments = get_object(sample, "attachments")
    messages = [
        convert_message(each) for each in resolve_attachments(get_list(sample, "messages"), attachments)
    ]
    split = find_first_generated(get_list(sample, "messages"))
    calls = list(iterate_calls(sample, messages, model))
    scores = get_object(sample, "scores")
    metrics = flatten_scores(scores)
    error = sample.get("error")
    reward = None if error else metrics.get(reward_name)
    limit = get_text(sample, "limit", "type")
    kept = {name: sample[name] for name in KEPT if sample.get(name)}
    usage, others = split_usage(calls) if calls else read_usage(get_object(sample, "model_usage"), model)
    return build_row(
        RowParts(
            example_id=read_id(sample),
            rollout=int(sample["epoch"]) - 1 if is_number(sample.get("epoch")) else 0,
            outcome=choose_outcome(error, reward, limit, calls),
            prompt=messages[:split],
            completion=messages[split:],
            answer=resolve_attachments(sample.get("target"), attachments),
            reward=reward,
            metrics=metrics,
            info=get_object(sample, "metadata"),
            error=convert_error(error, bool(scores), reward, reward_name),
            timing=read_timing(sample, calls),
            token_usage=usage,
            other_usage=others,
            stop_condition=f"{limit}_limit" if limit else None,
            is_truncated=was_cut(limit, calls),
            model_calls=calls,
            columns={**kept, **explain_scores(scores)},
        )
    )


def read_id(sample: Mapping[str, Any]) -> int | str:
    given = sample.get("id")
    return given if isinstance(given, (int, str)) and not isinstance(given, bool) else str(given)


def find_first_generated(messages: Sequence[Any]) -> int:
    """Where the completion begins; assistant messages of the input are part of the prompt."""
    for index, message in enumerate(messages):
        is_reply = isinstance(message, dict) and message.get("role") == "assistant"
        if is_reply and message.get("source") in (None, "generate"):
            return index
    return len(messages)


def choose_outcome(
    error: Any, reward: float | None, limit: str, calls: Sequence[Mapping[str, Any]]
) -> Outcome:
    if error:
        failed_call = bool(calls) and "error" in calls[-1]
        return "model_error" if failed_call else "environment_error"
    if limit in OUT_OF_TIME:
        return "timeout"
    if reward is None:
        return "grader_error"
    return "truncated" if was_cut(limit, calls) else "scored"


def was_cut(limit: str, calls: Sequence[Mapping[str, Any]]) -> bool:
    last = next((call for call in reversed(calls) if call["role"] == "agent"), None)
    return limit in ("context", "token", "message", "turn", "cost") or (
        last is not None and last.get("finish_reason") == "length"
    )


def convert_error(
    error: Any, has_scores: bool, reward: float | None, reward_name: str
) -> dict[str, Any] | None:
    if isinstance(error, dict):
        text = str(error.get("message", ""))
        kind, _, rest = text.partition("(")
        named = kind.isidentifier() and rest.endswith(")")
        message = rest[:-1].strip("'\"") if named else text
        return build_error(kind if named else "Error", message, get_text(error, "traceback"))
    if error:
        return build_error("Error", str(error))
    if reward is None:
        what = f"score {reward_name!r} is not a number" if has_scores else "the sample has no score"
        return build_error("Unscored", what)
    return None


def explain_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """What scorers say beside the value: the extracted answer, the explanation, metadata."""
    said = {
        name: {key: score[key] for key in ("value", "answer", "explanation", "metadata") if score.get(key)}
        for name, score in scores.items()
        if isinstance(score, dict)
    }
    return {"scores": said} if any(said.values()) else {}


def read_timing(sample: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total = sample.get("total_time")
    waited = sum(call.get("seconds", 0.0) for call in calls) if calls else None
    return build_timing(
        parse_time(sample.get("started_at")), total if is_number(total) else None, model=waited
    )


# Model calls


def iterate_calls(
    sample: Mapping[str, Any], conversation: Sequence[Message], model: str
) -> Iterator[dict[str, Any]]:
    attachments = get_object(sample, "attachments")
    pool = get_list(sample, "events_data", "messages")
    in_scoring = find_scoring_spans(get_list(sample, "events"))
    for event in get_list(sample, "events"):
        if not isinstance(event, dict) or event.get("event") != "model":
            continue
        asked = resolve_attachments(list_input(event, pool), attachments)
        choice = next(iter(get_list(event, "output", "choices")), None)
        reply = convert_message(resolve_attachments(choice.get("message"), attachments)) if choice else None
        yield build_call(event, [convert_message(each) for each in asked], reply, conversation) | {
            "role": name_role(event, model, in_scoring)
        }


def list_input(event: Mapping[str, Any], pool: Sequence[Any]) -> list[Any]:
    """The messages that were sent: in the event itself, or ranges of the sample's pool."""
    sent = list(get_list(event, "input"))
    for span in get_list(event, "input_refs"):
        if isinstance(span, list) and len(span) == 2 and all(isinstance(end, int) for end in span):
            sent += pool[max(0, span[0]) : max(0, span[1])]
    return sent


def find_scoring_spans(events: Sequence[Any]) -> set[str]:
    """The spans of scorers, and all that are nested in them; a parent begins before its children."""
    found: set[str] = set()
    for event in events:
        if isinstance(event, dict) and event.get("event") == "span_begin":
            is_scorer = event.get("type") in ("scorers", "scorer")
            if is_scorer or event.get("parent_id") in found:
                found.add(str(event.get("id")))
    return found


def name_role(event: Mapping[str, Any], model: str, in_scoring: set[str]) -> str:
    named = get_text(event, "role")
    if named:
        return named
    if event.get("span_id") in in_scoring:
        return "judge"
    return "agent" if event.get("model") == model else "helper"


def build_call(
    event: Mapping[str, Any], asked: list[Message], reply: Message | None, conversation: Sequence[Message]
) -> dict[str, Any]:
    count = len(asked)
    is_prefix = asked == list(conversation[:count])
    call: dict[str, Any] = {"model": get_text(event, "model"), "messages": count if is_prefix else asked}
    if (start := parse_time(event.get("timestamp"))) is not None:
        call["start"] = start
    seconds = get_object(event, "output").get("time", event.get("working_time"))
    if is_number(seconds):
        call["seconds"] = seconds
    if sampling := {key: value for key, value in get_object(event, "config").items() if value is not None}:
        call["sampling"] = sampling
    if event.get("error"):
        return call | {"error": build_error("ModelError", str(event["error"]), get_text(event, "traceback"))}
    if reply is not None:
        follows = is_prefix and count < len(conversation) and conversation[count] == reply
        call["reply"] = count if follows else reply
        reason = get_text(get_list(event, "output", "choices")[0], "stop_reason")
        call["finish_reason"] = FINISH_REASONS.get(reason, reason) or "stop"
    if usage := get_object(event, "output", "usage"):
        call["usage"] = convert_usage(usage)
    return call


# Tokens


def convert_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Inspect counts cached input apart; here it is part of the input."""

    def count(name: str) -> int:
        value = usage.get(name)
        return int(value) if is_number(value) else 0

    cached = count("input_tokens_cache_read")
    tokens = {
        "input_tokens": count("input_tokens") + cached + count("input_tokens_cache_write"),
        "output_tokens": count("output_tokens"),
    }
    optional = {"cached_tokens": cached, "reasoning_tokens": count("reasoning_tokens")}
    return tokens | {name: value for name, value in optional.items() if value}


def split_usage(calls: Sequence[Mapping[str, Any]]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Tokens of the evaluated model, and of judges and helpers by model."""
    own: dict[str, int] = {}
    others: dict[str, dict[str, int]] = {}
    for call in calls:
        total = own if call["role"] == "agent" else others.setdefault(call["model"], {})
        for name, count in call.get("usage", {}).items():
            total[name] = total.get(name, 0) + count
    return own, {model: usage for model, usage in others.items() if usage}


def read_usage(by_model: Mapping[str, Any], model: str) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """The same from the sample's totals, where the log has no events."""
    usage = {name: convert_usage(each) for name, each in by_model.items() if isinstance(each, dict)}
    return usage.pop(model, {}), usage
