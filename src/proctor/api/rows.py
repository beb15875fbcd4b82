"""Rows of results.jsonl, as the API sends them: one finished rollout each.

For readers and generated clients; the server sends rows as they were stored, without decoding them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.report.lines import ReusedReplies
from proctor.rollout import Outcome, Subscore
from proctor.task import TaskId
from proctor.trace import FileChange, ToolSpec, Usage


class RowMessage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: str
    content: Any = None
    """A text, or a list of parts."""
    tool_calls: list[RowToolCall] = []


class RowToolCall(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str = ""
    name: str
    arguments: Any = None


class RowError(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What ended a rollout or an attempt without a score."""

    error: str
    """The kind of the error."""
    message: str = ""
    error_chain_str: str = ""
    """The kinds of the errors behind it, outermost first."""
    phase: str = ""
    location: str = ""
    """The line of the author's code that failed."""
    traceback: list[str] = []


class RowSpan(msgspec.Struct, kw_only=True):
    start: float
    end: float
    duration: float


class RowModelTime(msgspec.Struct):
    duration: float


class RowTiming(msgspec.Struct, kw_only=True):
    """Times in seconds; starts and ends are seconds since 1970."""

    start_time: float
    setup: RowSpan
    generation: RowSpan
    scoring: RowSpan
    model: RowModelTime
    """Spent waiting for models."""
    total: float
    overhead: float


class RowUsage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Tokens of the evaluated model."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    final_input_tokens: int = 0
    """Of its last call."""
    final_output_tokens: int = 0


class RowCall(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One model call."""

    role: str
    """`agent` for the evaluated model; judges and helpers have others."""
    model: str
    messages: int | list[RowMessage]
    """How many messages of the conversation were sent, or the messages themselves."""
    start: float
    seconds: float
    sampling: dict[str, Any] = {}
    error: RowError | None = None
    reply: int | RowMessage | None = None
    """The reply's position in the conversation, or the reply itself."""
    finish_reason: str | None = None
    usage: Usage | None = None
    served_model: str | None = None
    id: str | None = None
    logprobs: Any = None
    served_by: str | None = None
    reused: bool = False
    """It was not sent: the reply comes from a cache or from an earlier run."""


class RowAttempt(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An attempt that failed and was repeated."""

    outcome: Outcome
    error: RowError
    start: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()


class RolloutRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finished rollout, as a line of results.jsonl. State columns are further fields."""

    example_id: TaskId
    task_hash: str
    rollout: int
    """The number of the rollout of its task, from 0."""
    outcome: Outcome
    prompt: list[RowMessage]
    completion: list[RowMessage]
    answer: Any
    reward: float | None
    """Null if it was not scored."""
    metrics: dict[str, float]
    error: RowError | None
    timing: RowTiming
    is_completed: bool
    is_truncated: bool
    stop_condition: str | None
    token_usage: RowUsage
    model_calls: list[RowCall]
    info: Any = None
    """From the dataset."""
    subscores: list[Subscore] = []
    attempts: int = 1
    earlier_attempts: list[RowAttempt] = []
    cleanup_error: RowError | None = None
    group_size: int = 1
    """How many rollouts were scored together."""
    other_usage: dict[str, Usage] = {}
    """Tokens of judges and helpers, by model."""
    tool_defs: list[ToolSpec] = []
    file_changes: list[FileChange] = []
    answers: list[str] = []
    """Of an agent, turn by turn, where they are not the text of its last message."""
    reused_replies: dict[str, ReusedReplies] = {}
    """By model: replies of a cache or of an earlier run, which cost nothing."""
    reused_from: str = ""
    """The run that this row was copied from, if it was."""
