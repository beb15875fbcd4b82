"""One rollout as text: what was said and done, what it scored, what it took.

Everything a model or an environment wrote is shown as plain text. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.cli.views.escape import one_line
from proctor.cli.views.files import file_lines
from proctor.cli.views.formatting import (
    describe_phase,
    format_dollars,
    format_duration,
    format_moment,
    format_quantity,
    format_short_number,
)
from proctor.cli.views.jobs import describe_players, outcome_style
from proctor.cli.views.lines import BAD, DIM, DONE, STRONG, WARN, Part, StyledLine, styled_line
from proctor.cli.views.page import layout_paragraph
from proctor.config.prices import AS_OF, find_price
from proctor.store.index import StoredRun
from proctor.store.replay import (
    AGENT,
    ReplayMessage,
    RolloutReplay,
    SideCall,
    StoredCall,
    StoredError,
    StoredPhase,
    StoredRow,
    ToolUse,
    content_of,
    has_altered_request,
    role_of,
)
from proctor.trace import Usage

INDENT = "  "
LABEL = 12
BAR = 40
USUAL_ENDS = ("stop", "tool_calls")
NARROW = 80


class TraceOptions(msgspec.Struct, frozen=True):
    """How much of everything is shown."""

    width: int | None
    full: bool = False
    raw_calls: bool = False
    sampling: Mapping[str, Any] = {}
    """What calls were sampled with unless they say otherwise."""

    def text(self, text: str, indent: str = INDENT, style: str = "") -> Iterator[StyledLine]:
        return layout_paragraph(text, self.width, indent=indent, style=style, full=self.full)


def trace_lines(
    name: str, run: StoredRun, seen: RolloutReplay, width: int | None, *, full: bool, raw_calls: bool
) -> Iterator[StyledLine]:
    look = TraceOptions(width, full, raw_calls, run.sampling)
    row = seen.row
    yield from head_lines(name, run, seen)
    for event in seen.events:
        yield styled_line()
        yield from (
            replay_message_lines(event, look, seen)
            if isinstance(event, ReplayMessage)
            else side_call_lines(event.call, look, seen)
        )
    if raw_calls and not any(map(differs_from_conversation, seen.events)):
        yield styled_line()
        yield styled_line(("Every model call was sent the conversation as it stands above.", DIM))
    yield from section("Files", file_lines(row.file_changes, look.text, INDENT))
    yield from score_lines(row, look)
    yield from error_lines("Error", row.error, look)
    yield from attempt_lines(row, look)
    yield from error_lines("Cleanup failed; the score stands", row.cleanup_error, look)
    yield from state_lines(seen, look)
    yield from time_lines(row, look)
    yield from token_lines(row, run)


# Head


def head_lines(name: str, run: StoredRun, seen: RolloutReplay) -> Iterator[StyledLine]:
    row = seen.row
    label = f"  {one_line(run.label)}" if run.label else ""
    title = styled_line((one_line(run.env), STRONG), ("  with  ", DIM), (one_line(run.model), STRONG), label)
    yield title
    if facts_of_run := describe_players(run):
        yield styled_line((facts_of_run, DIM))
    stopped = f", stopped by {one_line(row.stop_condition)}" if row.stop_condition else ""
    yield styled_line((f"{one_line(name)}, {format_moment(row.timing.start_time)}{stopped}", DIM))
    reward = (
        []
        if row.reward is None
        else [styled_line(("reward ", DIM), (format_short_number(row.reward), STRONG))]
    )
    usage = row.token_usage
    facts = [
        styled_line((row.outcome.replace("_", " "), outcome_style(row.outcome, row.reward) or STRONG)),
        *reward,
        styled_line(format_quantity(seen.turns, "turn")),
        styled_line(f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"),
        styled_line(format_duration(row.timing.total)),
    ]
    yield join_lines(facts, "   ")
    if run.sampling:
        yield styled_line(("sampling ", DIM), format_pairs(run.sampling))


def join_lines(parts: Sequence[StyledLine], between: str) -> StyledLine:
    drawn = StyledLine()
    for number, part in enumerate(parts):
        drawn = drawn + (styled_line(between) if number else StyledLine()) + part
    return drawn


def format_pairs(values: Mapping[str, Any]) -> str:
    return one_line(", ".join(f"{name} {encode_json(value)}" for name, value in values.items()))


# What was message


def replay_message_lines(
    message: ReplayMessage, look: TraceOptions, seen: RolloutReplay
) -> Iterator[StyledLine]:
    who: list[Part] = [(one_line(message.role), STRONG)]
    if message.turn is not None:
        who = [(f"turn {message.turn}  ", DIM), *who]
    facts = styled_line("  ") + call_facts(message.call, look) if message.call is not None else StyledLine()
    yield styled_line(*who) + facts
    if look.raw_calls and has_altered_request(message):
        yield from request_lines(message, seen, look)
    yield from body_lines(message, look)


def body_lines(message: ReplayMessage, look: TraceOptions) -> Iterator[StyledLine]:
    if message.reasoning:
        yield styled_line((f"{INDENT}reasoning", DIM))
        yield from look.text(message.reasoning, f"{INDENT}· ", DIM)
    if message.text:
        yield from look.text(message.text)
    for use in message.tools:
        yield from tool_lines(use, look)
    if not (message.reasoning or message.text or message.tools):
        yield styled_line((f"{INDENT}(nothing)", DIM))


def call_facts(call: StoredCall, look: TraceOptions) -> StyledLine:
    """What one model call took, and what is unusual about it."""
    facts: list[Part] = [(format_duration(call.seconds), DIM)]
    if call.error is None:
        usage = call.usage
        facts.append((f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{usage_note(usage)}", DIM))
        ended = call.finish_reason or "no finish reason"
        facts.append((one_line(ended), DIM if ended in USUAL_ENDS else WARN))
    if dict(call.sampling) != dict(look.sampling) and call.role == AGENT:
        facts.append((f"sampling {format_pairs(call.sampling) or 'none'}", WARN))
    if call.served_model and call.served_model != call.model:
        facts.append((f"answered as {one_line(call.served_model)}", DIM))
    if call.served_by:
        facts.append((f"by {one_line(call.served_by)}", DIM))
    return join_lines([styled_line(fact) for fact in facts], " · ")


def usage_note(usage: Usage) -> str:
    cached = f", {usage.cached_tokens:,} cached" if usage.cached_tokens else ""
    return cached + (f", {usage.reasoning_tokens:,} reasoning" if usage.reasoning_tokens else "")


def tool_lines(use: ToolUse, look: TraceOptions) -> Iterator[StyledLine]:
    yield from call_lines(use, look)
    if use.result is None:
        yield styled_line((f"{INDENT}{INDENT}no result", WARN))
        return
    shown = list(look.text(content_of(use.result) or "(nothing)", f"{INDENT}{INDENT}  "))
    first = StyledLine(((f"{INDENT}{INDENT}← ", DIM), *shown[0].parts[1:]))
    yield from [first, *shown[1:]]


def call_lines(use: ToolUse, look: TraceOptions, arrow: str = "→") -> Iterator[StyledLine]:
    """A tool call on one line where it fits one, else an argument at a time."""
    name, values = one_line(use.name), use.values
    start = styled_line((f"{INDENT}{arrow} ", DONE), (name, STRONG))
    if values is None:
        yield start + styled_line((" with arguments that are not a JSON object", WARN))
        yield from look.text(use.arguments, f"{INDENT}{INDENT}  ")
        return
    words = ", ".join(f"{key}={encode_json(value)}" for key, value in values.items())
    is_short = not any(isinstance(value, str) and "\n" in value for value in values.values())
    if is_short and len(words) + len(name) <= (look.width or NARROW) - 8:
        yield start + styled_line(f"({one_line(words)})")
        return
    yield start
    for key, value in values.items():
        yield from argument_lines(key, value, look)


def argument_lines(key: str, value: Any, look: TraceOptions) -> Iterator[StyledLine]:
    text = value if isinstance(value, str) else encode_json(value)
    indent = f"{INDENT}{INDENT}  "
    if "\n" not in text and len(text) + len(key) < (look.width or NARROW) - 12:
        yield styled_line((f"{indent}{one_line(key)}: ", DIM), one_line(text))
        return
    yield styled_line((f"{indent}{one_line(key)}:", DIM))
    yield from look.text(text, f"{indent}  ")


def encode_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Calls that are not the conversation


def side_call_lines(call: StoredCall, look: TraceOptions, seen: RolloutReplay) -> Iterator[StyledLine]:
    who = "model call" if call.role == AGENT else one_line(call.role)
    who = who if call.error is None else f"{who} failed"
    model = () if call.role == AGENT else ((f" {one_line(call.model)}", DIM),)
    yield styled_line((who, STRONG), *model) + styled_line("  ") + call_facts(call, look)
    if look.raw_calls and call.role != AGENT and not isinstance(call.messages, int):
        yield from sent_message_lines(call.messages, seen, look)
    if call.error is not None:
        yield from look.text(f"{call.error.error}: {call.error.message}", style=BAD)
    if call.reply is not None:
        reply = ReplayMessage(-1, call.reply)
        yield from look.text(reply.text or "(nothing)")


def differs_from_conversation(event: ReplayMessage | SideCall) -> bool:
    return (
        has_altered_request(event)
        if isinstance(event, ReplayMessage)
        else not isinstance(event.call.messages, int)
    )


def request_lines(message: ReplayMessage, seen: RolloutReplay, look: TraceOptions) -> Iterator[StyledLine]:
    """What the call that wrote a message was really sent."""
    assert message.call is not None
    sent = message.call.messages
    if isinstance(sent, int):
        yield styled_line(
            (f"{INDENT}was sent only the first {format_quantity(sent, 'message')} of the conversation", WARN)
        )
        return
    yield from sent_message_lines(sent, seen, look)


def sent_message_lines(
    messages: Sequence[Any], seen: RolloutReplay, look: TraceOptions
) -> Iterator[StyledLine]:
    yield styled_line((f"{INDENT}was sent {format_quantity(len(messages), 'message')}", WARN))
    known = seen.conversation
    for message in messages:
        index = next((at for at, each in enumerate(known) if each == message), None)
        role = one_line(role_of(message))
        if index is not None:
            yield styled_line((f"{INDENT}> {role}: message {index + 1} of the conversation", DIM))
        else:
            yield styled_line((f"{INDENT}> ", DIM), (role, WARN))
            yield from look.text(content_of(message) or "(nothing)", f"{INDENT}>   ")


# What came of it


def section(name: str, lines: Iterable[StyledLine], style: str = STRONG) -> Iterator[StyledLine]:
    lines = list(lines)
    if lines:
        yield styled_line()
        yield styled_line((name, style))
        yield from lines


def layout_labelled(rows: Iterable[tuple[str, str, str]]) -> list[StyledLine]:
    """Name, value and a remark, one under the other."""
    rows = [(one_line(name), one_line(value), note and f"  {one_line(note)}") for name, value, note in rows]
    names, values = (max((len(row[index]) for row in rows), default=0) for index in (0, 1))
    return [
        styled_line((f"{INDENT}{name:<{max(LABEL, names)}}  ", DIM), f"{value:>{values}}", (note, DIM))
        for name, value, note in rows
    ]


def score_lines(row: StoredRow, look: TraceOptions) -> Iterator[StyledLine]:
    rows: list[tuple[str, str, str]] = []
    if row.reward is not None:
        together = f"scored together with {row.group_size - 1} others" if row.group_size > 1 else ""
        rows.append(("reward", format_short_number(row.reward), together))
    for part in row.subscores:
        weight = "" if part.weight == 1 else f"weight {part.weight:g}"
        note = ", ".join(filter(None, (weight, part.note)))
        rows.append((part.name, format_short_number(part.value), note))
    yield from section("Score", layout_labelled(rows))
    metrics = [
        (name, format_short_number(value) if isinstance(value, (int, float)) else str(value), "")
        for name, value in row.metrics.items()
    ]
    yield from section("Metrics", layout_labelled(metrics))
    if row.answer not in ("", None):
        answer = row.answer if isinstance(row.answer, str) else encode_json(row.answer)
        yield from section("Right answer", look.text(answer))


def error_lines(title: str, error: StoredError | None, look: TraceOptions) -> Iterator[StyledLine]:
    if error is None:
        return
    lines = list(look.text(f"{error.error}: {error.message}"))
    if error.phase:
        lines.append(styled_line((f"{INDENT}{one_line(describe_phase(error.phase))}", DIM)))
    if " -> " in error.error_chain_str:
        lines.append(styled_line((f"{INDENT}{one_line(error.error_chain_str)}", DIM)))
    lines += [styled_line((f"{INDENT}at {one_line(frame)}", DIM)) for frame in error.traceback]
    yield from section(title, lines, BAD)


def attempt_lines(row: StoredRow, look: TraceOptions) -> Iterator[StyledLine]:
    lines: list[StyledLine] = []
    for number, attempt in enumerate(row.earlier_attempts, 1):
        usage = attempt.usage
        took = f"{format_duration(attempt.seconds)} · {usage.input_tokens:,} in, {usage.output_tokens:,} out"
        outcome = attempt.outcome.replace("_", " ")
        lines.append(styled_line((f"{INDENT}try {number}  ", DIM), (outcome, WARN), (f"  {took}", DIM)))
        lines += look.text(f"{attempt.error.error}: {attempt.error.message}", f"{INDENT}{INDENT}")
    yield from section("Earlier attempts", lines)


def state_lines(seen: RolloutReplay, look: TraceOptions) -> Iterator[StyledLine]:
    if seen.row.info:
        yield from section("Info", look.text(value_text(seen.row.info, look)))
    lines: list[StyledLine] = []
    for name, value in seen.columns.items():
        lines.append(styled_line((f"{INDENT}{one_line(name)}", DIM)))
        lines += look.text(value_text(value, look), f"{INDENT}{INDENT}")
    yield from section("State", lines)


def value_text(value: Any, look: TraceOptions) -> str:
    """Text as it is; anything else as JSON, over several lines where it is long."""
    if isinstance(value, str):
        return value
    text = encode_json(value)
    is_short = len(text) <= (look.width or NARROW) - len(INDENT) * 2
    return text if is_short else msgspec.json.format(text)


def time_lines(row: StoredRow, look: TraceOptions) -> Iterator[StyledLine]:
    """Each phase where it lies in the whole."""
    timing = row.timing
    phases = [("setup", timing.setup), ("generation", timing.generation), ("scoring", timing.scoring)]
    phases = [(name, phase) for name, phase in phases if phase.duration > 0]
    texts = [format_duration(phase.duration) for _, phase in phases]
    room = min(BAR, (look.width or NARROW) - LABEL - 16)
    end = max([timing.start_time + timing.total, *(phase.end for _, phase in phases)])
    lines = [
        styled_line(
            (f"{INDENT}{name:<{LABEL}}", DIM),
            f"{text:>{max(map(len, texts))}}  ",
            *phase_bar(phase, timing.start_time, end, room),
        )
        for (name, phase), text in zip(phases, texts, strict=True)
    ]
    model = f", {format_duration(timing.model.duration)} of it waiting for models" if row.model_calls else ""
    lines.append(styled_line((f"{INDENT}{format_duration(timing.total)} in all{model}", DIM)))
    yield from section("Time", lines)


def phase_bar(phase: StoredPhase, start: float, end: float, room: int) -> list[Part]:
    whole = max(end - start, 1e-9)
    first = min(room - 1, max(0, int((phase.start - start) / whole * room)))
    last = min(room, max(first + 1, round((phase.end - start) / whole * room)))
    return [("─" * first, DIM), ("━" * (last - first), DONE), ("─" * (room - last), DIM)]


def token_lines(row: StoredRow, run: StoredRun) -> Iterator[StyledLine]:
    used = {run.model: row.token_usage}
    for model, usage in row.other_usage.items():
        used[model] = used[model] + usage if model in used else usage
    rows = [
        (
            model,
            f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{usage_note(usage)}",
            describe_cost(model, usage),
        )
        for model, usage in used.items()
    ]
    lines = [
        styled_line(
            (f"{INDENT}{one_line(model):<{LABEL}}  ", DIM), text, (f"   {spent}" if spent else "", DIM)
        )
        for model, text, spent in rows
    ]
    yield from section("Tokens", lines)


def describe_cost(model: str, usage: Usage) -> str:
    price = find_price(model)
    if price is None or not (price.input or price.output):
        return ""
    return f"{format_dollars(price.of(usage))} at list prices of {AS_OF}"
