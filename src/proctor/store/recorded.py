"""A run's rollouts as they were played, to be scored again: found by key, read one at a time.

Only offsets are kept in memory, so a run of any size fits. Knows nothing of environments or scoring.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import Failure, StoreError
from proctor.report.lines import ErrorLine, ReusedReplies, RolloutLine
from proctor.rollout import RecordedPlay, RolloutKey, is_settled
from proctor.store.folder import RESULTS, UNREADABLE, read_line
from proctor.store.replay import KNOWN_FIELDS, StoredRow
from proctor.task import TaskId
from proctor.trace import FileChange, Message, ModelCall, Reply, ToolSpec, Trace, Usage

AGENT = "agent"
TIMEOUT = "timeout"


class RecordedCall(msgspec.Struct, frozen=True):
    """One model call; see store/rows.py for what the numbers in it mean."""

    role: str = AGENT
    model: str = ""
    messages: int | list[Message] = 0
    start: float = 0.0
    seconds: float = 0.0
    sampling: dict[str, Any] = {}
    error: ErrorLine | None = None
    reply: int | Message | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    served_model: str | None = None
    id: str | None = None
    logprobs: msgspec.Raw | None = None
    served_by: str | None = None


class RecordedRow(msgspec.Struct, frozen=True):
    """The part of a row that is needed to score it again."""

    outcome: str
    prompt: list[Message] = []
    completion: list[Message] = []
    metrics: dict[str, float] = {}
    stop_condition: str | None = None
    is_truncated: bool = False
    model_calls: list[RecordedCall] = []
    tool_defs: list[ToolSpec] | None = None
    file_changes: list[FileChange] = []
    answers: list[str] = []


_decode_row = msgspec.json.Decoder(RecordedRow).decode
_decode_stored_row = msgspec.json.Decoder(StoredRow).decode
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


class PlayedLine(msgspec.Struct, frozen=True):
    """What must be known of every stored rollout to decide what becomes of it."""

    task_hash: str
    outcome: str
    reward: float | None
    was_played: bool
    """It was played to its end, so that it can be scored: what failed later failed in scoring."""

    @property
    def is_settled(self) -> bool:
        return is_settled(self.outcome, self.reward)


class StoredPlays:
    """The rollouts of a run's folder, by key."""

    def __init__(self, folder: Path, metadata: Mapping[str, Any]) -> None:
        self.folder = folder
        self.tools = msgspec.convert(metadata.get("tools") or (), tuple[ToolSpec, ...])
        """Those that rows do not repeat."""
        self.has_columns = bool(metadata.get("state_columns"))
        self.faults = 0
        """Lines that could not be read."""
        self.lines: dict[RolloutKey, PlayedLine] = {}
        self._places: dict[RolloutKey, tuple[int, int]] = {}
        try:
            self._file = os.open(folder / RESULTS, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{folder / RESULTS} cannot be read: {error.strerror}.") from error
        self._index()
        self.rollouts_per_task = 1 + max((number for _, number in self.lines), default=-1)
        """One more than the largest number of a rollout."""

    def _index(self) -> None:
        """Of two rows of one rollout, the first that is settled counts, as when a run is resumed."""
        start = 0
        with open(self._file, "rb", closefd=False) as file:
            for raw in file:
                line, place = read_line(raw), (start, len(raw))
                start += len(raw)
                if line is None:
                    self.faults += 1
                    continue
                known = self.lines.get(line.key)
                if known is None or (line.is_settled and not known.is_settled):
                    self.lines[line.key] = summarize_line(line)
                    self._places[line.key] = place

    def read_raw(self, key: RolloutKey) -> bytes:
        """The row as it is stored."""
        start, size = self._places[key]
        return os.pread(self._file, size, start)

    def read_row(self, key: RolloutKey) -> StoredRow:
        """The row with every field."""
        try:
            return _decode_stored_row(self.read_raw(key))
        except UNREADABLE as error:
            raise StoreError(f"Task {key[0]}, rollout {key[1]} cannot be read: {error}.") from error

    def reader(self, key: RolloutKey) -> Callable[[], RecordedPlay]:
        """Reads one rollout when it is called."""
        return partial(self._read, key)

    def _read(self, key: RolloutKey) -> RecordedPlay:
        try:
            return decode_recorded_play(self.read_raw(key), self.tools, self.folder, self.has_columns)
        except UNREADABLE as error:
            raise StoreError(f"Task {key[0]}, rollout {key[1]} cannot be read: {error}.") from error

    def close(self) -> None:
        os.close(self._file)


def summarize_line(line: RolloutLine) -> PlayedLine:
    was_played = line.error is None or line.error.phase == "scoring"
    return PlayedLine(line.task_hash, line.outcome, line.reward, was_played)


def copy_row(raw: bytes, task: TaskId, run_id: str) -> bytes:
    """A row of one run for another, which did not pay for it."""
    row = _decode_fields(raw)
    reused: dict[str, ReusedReplies] = {}
    for call in row.get("model_calls") or ():
        if call.get("finish_reason") is not None:
            call["reused"] = True
            usage = msgspec.convert(call.get("usage") or {}, Usage)
            model = str(call.get("model"))
            reused[model] = reused.get(model, ReusedReplies()) + ReusedReplies(1, usage)
    row |= {"example_id": task, "reused_replies": reused, "reused_from": row.get("reused_from") or run_id}
    return msgspec.json.encode(row) + b"\n"


def decode_recorded_play(
    raw: bytes, tools: Sequence[ToolSpec] = (), folder: Path | None = None, has_columns: bool = True
) -> RecordedPlay:
    row = _decode_row(raw)
    conversation = [*row.prompt, *row.completion]
    offered = tuple(tools if row.tool_defs is None else row.tool_defs)
    calls = [restore_call(call, conversation, offered) for call in row.model_calls]
    trace = Trace(
        prompt=row.prompt,
        completion=row.completion,
        calls=[call for call in calls if call.role == AGENT],
        stop_condition=row.stop_condition,
        truncated=row.is_truncated,
        timed_out=row.outcome == TIMEOUT,
        files=row.file_changes,
        answers=row.answers,
    )
    fields = _decode_fields(raw) if has_columns else {}
    return RecordedPlay(
        trace=trace,
        helper_calls=tuple(call for call in calls if call.role != AGENT),
        metrics=row.metrics,
        columns={name: value for name, value in fields.items() if name not in KNOWN_FIELDS},
        folder=folder,
    )


def restore_call(
    call: RecordedCall, conversation: Sequence[Message], tools: tuple[ToolSpec, ...]
) -> ModelCall:
    """A call as it was made; messages of the conversation are the same objects."""
    messages = conversation[: call.messages] if isinstance(call.messages, int) else call.messages
    offered = tools if call.role == AGENT else ()  # rows do not say what helpers were offered
    made = ModelCall(call.role, call.model, messages, call.sampling, call.start, offered, call.seconds)
    if call.error is not None:
        made.failure = Failure(call.error.error, call.error.message, call.error.phase)
    if call.reply is None:
        return made
    made.reused = True
    made.reply = Reply(
        conversation[call.reply] if isinstance(call.reply, int) else call.reply,
        call.finish_reason or "stop",
        call.usage,
        call.served_model,
        call.id,
        call.logprobs,
        call.served_by,
    )
    return made
