"""Rows that other tools wrote, such as verifiers: read with what they have.

A row is put into the shape that Proctor writes, with an outcome that follows from its reward and error. What
has no counterpart stays beside it as a column. Knows nothing of files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from proctor.reading.entries import NUMBERS, CostOf, EntryRow, build_entry
from proctor.report.limits import LONGEST_SECONDS, MOST_TOKENS
from proctor.report.lines import RolloutLine
from proctor.rollout import Outcome, is_score
from proctor.store.folder import UNREADABLE
from proctor.store.replay import KNOWN_FIELDS, RolloutReplay, StoredRow, build_replay
from proctor.task import TaskId

OUTCOMES: frozenset[str] = frozenset(get_args(Outcome))
TASK_FIELDS = ("example_id", "task_id", "id")
MILLISECONDS = ("total_ms", "generation_ms", "scoring_ms")

Fields = dict[str, Any]
NextNumber = Callable[[TaskId], int]


def read_foreign_entry(raw: bytes, index: int, next_number: NextNumber, cost_of: CostOf | None) -> EntryRow:
    """The entry of a row that Proctor did not write. Raises one of UNREADABLE if it is not a JSON object."""
    fields = adapt_row(msgspec.json.decode(raw, type=dict[str, Any]), index)
    if fields["rollout"] is None:
        fields["rollout"] = next_number(fields["example_id"])
    line = msgspec.convert(fields, RolloutLine, strict=False)
    return build_entry(line, msgspec.json.encode(fields["completion"]), 0, cost_of)


def decode_foreign_replay(raw: bytes, task: TaskId, number: int) -> RolloutReplay:
    """The replay of such a row, which an index found to be of this task and number."""
    fields = adapt_row(msgspec.json.decode(raw, type=dict[str, Any]), 0)
    fields |= {"example_id": task, "rollout": number}
    columns = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    return build_replay(msgspec.convert(fields, StoredRow, strict=False), columns)


def adapt_row(row: Fields, index: int) -> Fields:
    """A row in the shape of ours; `rollout` is None if it does not say its number."""
    error = adapt_error(row.get("error"))
    reward = number_or_none(row.get("reward"))
    number = row.get("rollout")
    reward = None if error is not None else reward
    return {
        **row,
        "example_id": find_task_id(row, index),
        "rollout": number if type(number) is int and number in NUMBERS else None,
        "task_hash": text_or_empty(row.get("task_hash")),
        "outcome": find_outcome(row, reward, error),
        "prompt": adapt_messages(row.get("prompt"), "user"),
        "completion": adapt_messages(row.get("completion"), "assistant"),
        "reward": reward,
        "metrics": keep_numbers(row.get("metrics")),
        "stop_condition": text_or_empty(row.get("stop_condition")),
        "token_usage": adapt_usage(row.get("token_usage")),
        "other_usage": {},
        "timing": adapt_timing(row),
        "error": error,
        "cleanup_error": None,
        "attempts": 1,
        "earlier_attempts": [],
        "subscores": [],
        "is_truncated": row.get("is_truncated") is True,
        "model_calls": [],
        "group_size": 1,
        "tool_defs": [tool for tool in list_or_empty(row.get("tool_defs")) if isinstance(tool, dict)],
        "file_changes": [],
    }


def find_task_id(row: Fields, index: int) -> TaskId:
    for name in TASK_FIELDS:
        value = row.get(name)
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            return value
    return index


def find_outcome(row: Fields, reward: float | None, error: Fields | None) -> str:
    recorded = row.get("outcome")
    if isinstance(recorded, str) and recorded in OUTCOMES:
        return recorded
    if error is not None:
        return "model_error" if "ModelError" in error["error"] else "environment_error"
    if reward is None:
        return "cancelled" if row.get("is_completed") is False else "excluded"
    return "truncated" if row.get("is_truncated") is True else "scored"


def adapt_error(error: Any) -> Fields | None:
    if not error:
        return None
    if not isinstance(error, Mapping):
        return {"error": "Error", "message": str(error)}
    kind = text_or_empty(error.get("error")) or text_or_empty(error.get("type")) or "Error"
    message = text_or_empty(error.get("message")) or text_or_empty(error.get("error_chain_repr"))
    return {"error": kind, "message": message, "error_chain_str": text_or_empty(error.get("error_chain_str"))}


def adapt_messages(messages: Any, role: str) -> list[Any]:
    if isinstance(messages, str):
        return [{"role": role, "content": messages}]
    return [adapt_message(message) for message in list_or_empty(messages)]


def adapt_message(message: Any) -> Any:
    """A message whose tool calls may be JSON inside texts."""
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls"), list):
        return message
    return {**message, "tool_calls": [decode_tool_call(call) for call in message["tool_calls"]]}


def decode_tool_call(call: Any) -> Any:
    try:
        return msgspec.json.decode(call) if isinstance(call, str) else call
    except UNREADABLE:
        return call


def adapt_timing(row: Fields) -> Fields:
    timing = row.get("timing")
    fields = timing if isinstance(timing, Mapping) else row
    total = number_or_none(fields.get("total"))
    if total is None:
        in_ms = (number_or_none(fields.get(name)) for name in MILLISECONDS)
        total = next((each / 1000 for each in in_ms if each is not None), 0.0)
    start = number_or_none(fields.get("start_time")) or 0.0
    phases = {name: adapt_phase(fields.get(name)) for name in ("setup", "generation", "scoring", "model")}
    return {"total": min(max(total, 0.0), LONGEST_SECONDS), "start_time": start, **phases}


def adapt_phase(phase: Any) -> Fields:
    found = phase if isinstance(phase, Mapping) else {}
    return {name: number_or_none(found.get(name)) or 0.0 for name in ("start", "end", "duration")}


def adapt_usage(usage: Any) -> Fields:
    found = keep_numbers(usage)
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    return {name: int(max(0, min(found.get(name, 0), MOST_TOKENS))) for name in names}


# Values


def number_or_none(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if is_score(value) and math.isfinite(value) else None


def keep_numbers(value: Any) -> dict[str, float]:
    found = value if isinstance(value, Mapping) else {}
    return {str(name): each for name, raw in found.items() if (each := number_or_none(raw)) is not None}


def text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
