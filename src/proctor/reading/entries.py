"""Raw rows → entries: the part of a rollout that lists, filters and sorts read, from one partial decoding.

An entry can be stored beside its row in compact form. Rows that other tools wrote are read by
reading/foreign_rows.py. Knows nothing of files, databases or queries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from proctor.config.prices import Price
from proctor.report.limits import LONGEST_SECONDS, SAMPLE_LENGTH, bound_usage
from proctor.report.lines import AttemptLine, ErrorLine, ReusedReplies, RolloutLine, TimingLine, drop_score
from proctor.rollout import Outcome, is_settled
from proctor.store.folder import UNREADABLE
from proctor.store.replay import AGENT, content_of, role_of
from proctor.task import TaskId
from proctor.trace import Usage

KEY_DIGITS = 16
PREVIEW_LENGTH = 160
LONGEST_ERROR = 200
LONGEST_WORD = 200
"""Of an error's class, a stop condition, a phase: a file may claim anything."""
LONGEST_LINE = 300
"""Of a line of code that failed."""
MOST_METRICS = 200
MOST_MODELS = 50
"""Judges and helpers of one rollout that a report lists separately."""
NO_ERROR = ErrorLine("")
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
    task_hash: str = ""
    """Of the task's content, by which comparisons pair tasks."""

    @property
    def settled(self) -> bool:
        return is_settled(self.outcome, self.reward)


class EntryRow(msgspec.Struct, frozen=True):
    """A row, read once: for a report, and for an index."""

    line: RolloutLine
    record: EntryRecord


class ReportPart(msgspec.Struct, frozen=True, kw_only=True, array_like=True, omit_defaults=True):
    """What a report reads of a rollout that its entry lacks. Stored as an array: new fields are added at the
    end."""

    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)
    """As in `Usage`."""
    error: ErrorLine | None = None
    cleanup_error: ErrorLine | None = None
    other_usage: dict[str, Usage] = {}
    earlier_usage: Usage = Usage()
    """Of all attempts before the last."""
    reused_replies: dict[str, ReusedReplies] = {}


class StoredEntry(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What is stored beside a row, so that neither lists nor reports have to read the row."""

    record: EntryRecord
    part: ReportPart = ReportPart()

    @property
    def line(self) -> RolloutLine:
        """The row as a report reads it."""
        record, part = self.record, self.part
        return RolloutLine(
            example_id=record.task,
            rollout=record.number,
            outcome=record.outcome,
            task_hash=record.task_hash,
            reward=record.reward,
            metrics=record.metrics,
            stop_condition=record.stop_condition or None,
            token_usage=Usage(*part.tokens),
            other_usage=part.other_usage,
            timing=TimingLine(record.seconds, record.started_at),
            error=part.error,
            cleanup_error=part.cleanup_error,
            attempts=record.attempts,
            earlier_attempts=(AttemptLine(record.outcome, NO_ERROR, usage=part.earlier_usage),),
            env=record.env,
            reused_replies=part.reused_replies,
        )


class CallOutcome(msgspec.Struct, frozen=True):
    role: str = AGENT
    finish_reason: str | None = None


class EntryLine(RolloutLine, frozen=True):
    """The part of a stored rollout that an entry is made from."""

    completion: msgspec.Raw = msgspec.Raw(b"[]")
    model_calls: tuple[CallOutcome, ...] = ()


_decode_line = msgspec.json.Decoder(EntryLine).decode
_decode_report_line = msgspec.json.Decoder(RolloutLine).decode
_decode_messages = msgspec.json.Decoder(list[msgspec.Raw]).decode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(StoredEntry).decode
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


def read_lenient_entry(raw: bytes) -> EntryRow:
    """The same, also where the messages or calls of the row are not as Proctor writes them."""
    try:
        return read_entry(raw)
    except UNREADABLE:
        line = _decode_report_line(raw)
        if line.rollout not in NUMBERS:
            raise
        return build_entry(line, b"", 0, None)


def build_entry(
    line: RolloutLine, completion: bytes | msgspec.Raw, answers: int, cost_of: CostOf | None
) -> EntryRow:
    if line.illegal_score:
        line = drop_score(line, line.illegal_score)
    messages = split_messages(completion)
    error, usage = line.error, bound_usage(line.token_usage)
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
        task_hash=safe_line(line.task_hash, KEY_DIGITS),
    )
    return EntryRow(line, record)


def pack_entry(entry: EntryRow) -> bytes:
    """An entry to be stored beside its row."""
    line, used = entry.line, bound_usage(entry.line.token_usage)
    part = ReportPart(
        tokens=(used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens),
        error=None if line.error is None else shorten_error(line.error),
        cleanup_error=None if line.cleanup_error is None else shorten_error(line.cleanup_error),
        other_usage={
            safe_text(name, LONGEST_WORD): bound_usage(usage)
            for name, usage in islice(line.other_usage.items(), MOST_MODELS)
        },
        earlier_usage=bound_usage(sum((bound_usage(each.usage) for each in line.earlier_attempts), Usage())),
        reused_replies={
            safe_text(name, LONGEST_WORD): ReusedReplies(
                min(reused.calls, MOST_COUNTED), bound_usage(reused.usage)
            )
            for name, reused in islice(line.reused_replies.items(), MOST_MODELS)
        },
    )
    return _pack(StoredEntry(msgspec.structs.replace(entry.record, cost_usd=None), part))


def shorten_error(error: ErrorLine) -> ErrorLine:
    """The part of an error that a report shows, as text that any encoding can take."""
    return ErrorLine(
        safe_text(error.error, LONGEST_WORD),
        safe_text(error.message, SAMPLE_LENGTH),
        safe_text(error.phase, LONGEST_WORD),
        safe_text(error.location, LONGEST_LINE),
    )


def unpack_entry(packed: bytes) -> StoredEntry:
    """An entry that was stored beside its row. Raises one of UNREADABLE if it was not written by us."""
    return _unpack(packed)


def cost_by_prices(model: str, price_of: Callable[[str], Price | None]) -> CostOf:
    """What a rollout cost by known prices, with its earlier attempts and its judges; None where the
    evaluated model has no price."""

    def cost_of(line: RolloutLine) -> float | None:
        own = price_of(model)
        if own is None:
            return None
        used = sum(
            (bound_usage(attempt.usage) for attempt in line.earlier_attempts), bound_usage(line.token_usage)
        )
        others = ((price_of(name), bound_usage(usage)) for name, usage in line.other_usage.items())
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
    return safe_text(" ".join(text[: 4 * most].split()), most)


def safe_text(text: str, most: int) -> str:
    return text[:most].encode("utf-8", "replace").decode()


def limit_seconds(seconds: float) -> float:
    return max(0.0, min(seconds, LONGEST_SECONDS)) if math.isfinite(seconds) else 0.0


def limit_metrics(metrics: dict[str, float]) -> dict[str, float]:
    names = list(metrics)[:MOST_METRICS]
    return {safe_line(name, LONGEST_WORD): metrics[name] for name in names}
