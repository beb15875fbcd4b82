"""One rollout as its skeleton: a line per event with sizes, times and a preview, whatever its length.

Contents come in windows (reading/event_window.py). Environments may put anything into a message, so every
shape is checked. Knows nothing of stores or HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from proctor.api.rollout_list import RolloutEntry
from proctor.api.rollout_view import (
    PREVIEW_CHARACTERS,
    CallBrief,
    EventBrief,
    FileBrief,
    RolloutView,
    ToolBrief,
)
from proctor.api.rows import RowAttempt, RowError, RowModelTime, RowSpan, RowTiming
from proctor.config.prices import Price
from proctor.reading.entries import safe_line
from proctor.reading.images import find_images
from proctor.report.lines import AttemptLine
from proctor.store.replay import (
    ReplayEvent,
    ReplayMessage,
    RolloutReplay,
    StoredCall,
    StoredError,
    StoredPhase,
    StoredTiming,
    ToolUse,
    content_of,
    has_altered_request,
)

PriceOf = Callable[[str], Price | None]
MOST_TRACEBACK_LINES = 200
LARGEST_COLUMN = 100_000
"""Bytes of a state column, of `info` or of `answer` that a skeleton has; the raw row has all of it."""


def build_view(
    run_id: str,
    entry: RolloutEntry,
    replay: RolloutReplay,
    price_of: PriceOf,
    size: int,
    most_events: int | None = None,
) -> RolloutView:
    row = replay.row
    return RolloutView(
        run_id=run_id,
        entry=entry,
        events=list(islice(describe_events(replay, price_of), most_events)),
        total_events=len(replay.events),
        subscores=list(row.subscores),
        error=convert_error(row.error),
        cleanup_error=convert_error(row.cleanup_error),
        earlier_attempts=[convert_attempt(attempt) for attempt in row.earlier_attempts],
        timing=convert_timing(row.timing),
        usage=row.token_usage,
        other_usage=row.other_usage,
        files=[
            FileBrief(
                index=index,
                path=change.path,
                change=change.change,
                size=change.size,
                diff_size=len(change.diff),
                note=change.note,
            )
            for index, change in enumerate(row.file_changes)
        ],
        answer=limit_value(row.answer),
        info=limit_value(row.info),
        columns={name: limit_value(value) for name, value in replay.columns.items()},
        tool_names=[str(tool.get("name", "")) for tool in row.tool_defs],
        size=size,
    )


# Events


def describe_events(replay: RolloutReplay, price_of: PriceOf) -> Iterator[EventBrief]:
    numbers = {id(call): number for number, call in enumerate(replay.row.model_calls)}
    price_of = cache(price_of)  # a long rollout asks for the same few models again and again
    prompt = len(replay.row.prompt)
    result_indexes = {id(message): index for index, message in enumerate(replay.conversation)}
    for index, event in enumerate(replay.events):
        if isinstance(event, ReplayMessage):
            yield describe_message(index, event, prompt, numbers, result_indexes, price_of)
        else:
            yield describe_side_call(index, event.call, numbers, price_of)


def describe_message(
    index: int,
    event: ReplayMessage,
    prompt: int,
    numbers: Mapping[int, int],
    result_indexes: Mapping[int, int],
    price_of: PriceOf,
) -> EventBrief:
    text = event.text
    call = event.call
    return EventBrief(
        index=index,
        type="message",
        role=event.role,
        size=len(text),
        preview=safe_line(text, PREVIEW_CHARACTERS),
        turn=event.turn,
        in_prompt=event.index < prompt,
        reasoning_size=len(event.reasoning),
        images=sum(1 for _ in event_images(event)),
        tools=[describe_tool(use, result_indexes) for use in event.tools],
        call=None
        if call is None
        else describe_call(call, numbers, price_of, altered=has_altered_request(event)),
    )


def describe_side_call(
    index: int, call: StoredCall, numbers: Mapping[int, int], price_of: PriceOf
) -> EventBrief:
    text = call.error.message if call.error is not None else content_of(call.reply or "")
    return EventBrief(
        index=index,
        type="call",
        role=call.role,
        size=len(text),
        preview=safe_line(text, PREVIEW_CHARACTERS),
        call=describe_call(call, numbers, price_of, altered=isinstance(call.messages, list)),
    )


def describe_call(
    call: StoredCall, numbers: Mapping[int, int], price_of: PriceOf, *, altered: bool
) -> CallBrief:
    price = price_of(call.model)
    return CallBrief(
        index=numbers[id(call)],
        role=call.role,
        model=call.served_model or call.model,
        start=call.start,
        seconds=call.seconds,
        usage=call.usage,
        cost_usd=None if price is None else price.of(call.usage),
        finish_reason=call.finish_reason,
        error="" if call.error is None else f"{call.error.error}: {safe_line(call.error.message, 1_000)}",
        altered=altered,
    )


def describe_tool(use: ToolUse, result_indexes: Mapping[int, int]) -> ToolBrief:
    result = "" if use.result is None else content_of(use.result)
    return ToolBrief(
        name=use.name,
        arguments_preview=safe_line(use.arguments, PREVIEW_CHARACTERS),
        result_index=result_indexes.get(id(use.result)),
        result_preview=safe_line(result, PREVIEW_CHARACTERS),
        result_size=len(result),
        is_error=isinstance(use.result, Mapping) and use.result.get("is_error") is True,
    )


def event_images(event: ReplayEvent) -> Iterator[Any]:
    """The images of an event: its message's, then those of its tools' results; `part` counts them."""
    if isinstance(event, ReplayMessage):
        yield from find_images(event.message)
        for use in event.tools:
            yield from find_images(use.result)


# The parts of a row


def convert_error(error: StoredError | None) -> RowError | None:
    if error is None:
        return None
    return RowError(
        error=error.error,
        message=error.message,
        error_chain_str=error.error_chain_str,
        phase=error.phase,
        location=error.location,
        traceback=list(error.traceback[:MOST_TRACEBACK_LINES]),
    )


def convert_attempt(attempt: AttemptLine) -> RowAttempt:
    error = attempt.error
    return RowAttempt(
        outcome=attempt.outcome,
        error=RowError(error=error.error, message=error.message, phase=error.phase, location=error.location),
        start=attempt.start,
        seconds=attempt.seconds,
        usage=attempt.usage,
    )


def convert_timing(timing: StoredTiming) -> RowTiming:
    return RowTiming(
        start_time=timing.start_time,
        setup=convert_phase(timing.setup),
        generation=convert_phase(timing.generation),
        scoring=convert_phase(timing.scoring),
        model=RowModelTime(timing.model.duration),
        total=timing.total,
        overhead=max(0.0, timing.total - timing.model.duration),
    )


def convert_phase(phase: StoredPhase) -> RowSpan:
    return RowSpan(start=phase.start, end=phase.end, duration=phase.duration)


def limit_value(value: Any) -> Any:
    """A value, or the beginning of a large one as text."""
    text = msgspec.json.encode(value)
    if len(text) <= LARGEST_COLUMN:
        return value
    return f"{text[:LARGEST_COLUMN].decode(errors='ignore')} … ({len(text):,} bytes)"
