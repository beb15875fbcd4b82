"""Raw rows → entries: the part of a rollout that lists, filters and sorts read, from one partial decoding.

An entry can be stored beside its row in compact form. Rows that other tools wrote are read by
reading/foreign_rows.py. Knows nothing of files, databases or queries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import msgspec

from proctor.config.prices import Price
from proctor.report import LONGEST_SECONDS, RolloutLine, bounded, unscored
from proctor.rollout import Outcome, is_settled
from proctor.store.folder import UNREADABLE
from proctor.store.replay import AGENT, content_of, role_of
from proctor.task import TaskId

KEY_DIGITS = 16
PREVIEW_LENGTH = 160
LONGEST_ERROR = 200
LONGEST_WORD = 200
"""Of an error's class, a stop condition, a phase: a file may claim anything."""
LONGEST_LINE = 300
"""Of a line of code that failed."""
MOST_METRICS = 200
MOST_COUNTED = 2**31 - 1
NUMBERS = range(2**31)
"""What can be the number of a rollout."""

CostOf = Callable[[RolloutLine], float | None]


class EntryRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True, omit_defaults=True):
    """What an index keeps of one rollout. Stored as an array: new fields are added at the end."""

    task: TaskId
    number: int
    outcome: Outcome
    reward: float | None = None
    seconds: float = 0.0
    started_at: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    attempts: int = 1
    cost_usd: float | None = None
    metrics: dict[str, float] = {}
    error_kind: str = ""
    error: str = ""
    phase: str = ""
    location: str = ""
    stop_condition: str = ""
    env: str = ""
    preview: str = ""

    @property
    def settled(self) -> bool:
        return is_settled(self.outcome, self.reward)


class EntryRow(msgspec.Struct, frozen=True):
    """A row, read once: for a report, and for an index."""

    line: RolloutLine
    record: EntryRecord


class CallOutcome(msgspec.Struct, frozen=True):
    role: str = AGENT
    finish_reason: str | None = None


class EntryLine(RolloutLine, frozen=True):
    """The part of a stored rollout that an entry is made from."""

    completion: msgspec.Raw = msgspec.Raw(b"[]")
    model_calls: tuple[CallOutcome, ...] = ()


_decode_line = msgspec.json.Decoder(EntryLine).decode
_decode_messages = msgspec.json.Decoder(list[msgspec.Raw]).decode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(EntryRecord).decode
_task_json = msgspec.json.Encoder().encode


def task_key(task: TaskId) -> str:
    """What stands for a task in addresses: ids may hold anything."""
    return hashlib.sha256(_task_json(task)).hexdigest()[:KEY_DIGITS]


def read_entry(raw: bytes, cost_of: CostOf | None = None) -> EntryRow:
    """The entry of a row as Proctor writes it. Raises one of UNREADABLE."""
    line = _decode_line(raw)
    if line.rollout not in NUMBERS:
        raise msgspec.DecodeError(f"{line.rollout} cannot be the number of a rollout")
    return build_entry(line, line.completion, count_answers(line.model_calls), cost_of)


def build_entry(
    line: RolloutLine, completion: bytes | msgspec.Raw, answers: int, cost_of: CostOf | None
) -> EntryRow:
    if line.illegal_score:
        line = unscored(line, line.illegal_score)
    messages = split_messages(completion)
    error, usage = line.error, bounded(line.token_usage)
    record = EntryRecord(
        task=line.example_id,
        number=line.rollout,
        outcome=line.outcome,
        reward=line.reward,
        seconds=limit_seconds(line.timing.total),
        started_at=line.timing.start_time if math.isfinite(line.timing.start_time) else 0.0,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        turns=answers or count_turns(messages),
        attempts=max(1, min(line.attempts, MOST_COUNTED)),
        cost_usd=None if cost_of is None else cost_of(line),
        metrics=limit_metrics(line.metrics),
        error_kind="" if error is None else safe_line(error.error, LONGEST_WORD),
        error="" if error is None else safe_line(error.message, LONGEST_ERROR),
        phase="" if error is None else safe_line(error.phase, LONGEST_WORD),
        location="" if error is None else safe_line(error.location, LONGEST_LINE),
        stop_condition=safe_line(line.stop_condition or "", LONGEST_WORD),
        env=safe_line(line.env, LONGEST_WORD) if isinstance(line.env, str) else "",
        preview=preview_messages(messages),
    )
    return EntryRow(line, record)


def pack_entry(record: EntryRecord) -> bytes:
    return _pack(record)


def unpack_entry(packed: bytes) -> EntryRecord:
    """An entry that was stored beside its row. Raises one of UNREADABLE if it was not written by us."""
    return _unpack(packed)


def cost_by_prices(model: str, price_of: Callable[[str], Price | None]) -> CostOf:
    """What a rollout cost by known prices, with its earlier attempts and its judges; None where the
    evaluated model has no price."""

    def cost_of(line: RolloutLine) -> float | None:
        own = price_of(model)
        if own is None:
            return None
        used = sum((bounded(attempt.usage) for attempt in line.earlier_attempts), bounded(line.token_usage))
        others = ((price_of(name), bounded(usage)) for name, usage in line.other_usage.items())
        return own.of(used) + math.fsum(price.of(usage) for price, usage in others if price is not None)

    return cost_of


# Messages


def split_messages(completion: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """The messages of a completion, not decoded; a text, as other tools write them, is one message."""
    try:
        return _decode_messages(completion)
    except UNREADABLE:
        return [msgspec.Raw(bytes(completion))] if bytes(completion) not in (b"null", b"") else []


def count_answers(calls: tuple[CallOutcome, ...]) -> int:
    """How often the evaluated model answered."""
    return sum(call.role == AGENT and call.finish_reason is not None for call in calls)


def count_turns(messages: list[msgspec.Raw]) -> int:
    return sum(role_of(decode_message(raw)) == "assistant" for raw in messages)


def preview_messages(messages: list[msgspec.Raw]) -> str:
    """The beginning of the model's last text."""
    for raw in reversed(messages):
        message = decode_message(raw)
        if isinstance(message, str) or role_of(message) == "assistant":
            text = message if isinstance(message, str) else content_of(message)
            if text.strip():
                return safe_line(text.lstrip(), PREVIEW_LENGTH)
    return ""


def decode_message(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE:  # nested too deeply: shown as it is where the rollout is
        return None


# Values that a file may claim


def safe_line(text: str, most: int) -> str:
    """The beginning of a text as one line that any encoding can take."""
    short = " ".join(text[: 4 * most].split())[:most]
    return short.encode("utf-8", "replace").decode()


def limit_seconds(seconds: float) -> float:
    return max(0.0, min(seconds, LONGEST_SECONDS)) if math.isfinite(seconds) else 0.0


def limit_metrics(metrics: dict[str, float]) -> dict[str, float]:
    names = list(metrics)[:MOST_METRICS]
    return {safe_line(name, LONGEST_WORD): metrics[name] for name in names}
