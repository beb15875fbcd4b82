"""One rollout as text: what was said and done, what it scored, what it took.

Everything a model or an environment wrote is shown as plain text. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.cli.live.wording import counted, phase_text, short_number
from proctor.cli.views.escape import one_line
from proctor.cli.views.files import file_lines
from proctor.cli.views.jobs import moment, outcome_style
from proctor.cli.views.lines import BAD, DONE, LABELS, STRONG, WARN, Line, Part, line
from proctor.cli.views.page import paragraph, seconds_text
from proctor.config.prices import AS_OF, price_of
from proctor.store.index import StoredRun
from proctor.store.replay import (
    AGENT,
    Aside,
    Phase,
    Replay,
    Said,
    StoredCall,
    StoredError,
    StoredRow,
    ToolUse,
    content_of,
    differs,
    role_of,
)
from proctor.trace import Usage

INDENT = "  "
LABEL = 12
BAR = 40
USUAL_ENDS = ("stop", "tool_calls")
ONE_LINE_CALL = 72
NARROW = 80


class Look(msgspec.Struct, frozen=True):
    """How much of everything is shown."""

    width: int | None
    full: bool = False
    raw_calls: bool = False
    sampling: Mapping[str, Any] = {}
    """What calls were sampled with unless they say otherwise."""

    def text(self, text: str, indent: str = INDENT, style: str = "") -> Iterator[Line]:
        return paragraph(text, self.width, indent=indent, style=style, full=self.full)


def trace_lines(
    name: str, run: StoredRun, seen: Replay, width: int | None, *, full: bool, raw_calls: bool
) -> Iterator[Line]:
    look = Look(width, full, raw_calls, run.sampling)
    row = seen.row
    yield from head_lines(name, run, seen)
    for event in seen.events:
        yield line()
        yield from (
            said_lines(event, look, seen) if isinstance(event, Said) else aside_lines(event.call, look, seen)
        )
    if raw_calls and not any(map(is_unlike, seen.events)):
        yield line()
        yield line(("Every model call was sent the conversation as it stands above.", LABELS))
    yield from section("Files", file_lines(row.file_changes, look.text, INDENT))
    yield from score_lines(row, look)
    yield from error_lines("Error", row.error, look)
    yield from attempt_lines(row, look)
    yield from error_lines("Cleanup failed; the score stands", row.cleanup_error, look)
    yield from state_lines(seen, look)
    yield from time_lines(row, look)
    yield from token_lines(row, run)


# Head


def head_lines(name: str, run: StoredRun, seen: Replay) -> Iterator[Line]:
    row = seen.row
    label = f"  {one_line(run.label)}" if run.label else ""
    title = line((one_line(run.env), STRONG), ("  with  ", LABELS), (one_line(run.model), STRONG), label)
    yield title
    stopped = f", stopped by {one_line(row.stop_condition)}" if row.stop_condition else ""
    yield line((f"{one_line(name)}, {moment(row.timing.start_time)}{stopped}", LABELS))
    reward = [] if row.reward is None else [line(("reward ", LABELS), (short_number(row.reward), STRONG))]
    usage = row.token_usage
    facts = [
        line((row.outcome.replace("_", " "), outcome_style(row.outcome, row.reward) or STRONG)),
        *reward,
        line(counted(seen.turns, "turn")),
        line(f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"),
        line(seconds_text(row.timing.total)),
    ]
    yield joined(facts, "   ")
    if run.sampling:
        yield line(("sampling ", LABELS), pairs(run.sampling))


def joined(parts: Sequence[Line], between: str) -> Line:
    drawn = Line()
    for number, part in enumerate(parts):
        drawn = drawn + (line(between) if number else Line()) + part
    return drawn


def pairs(values: Mapping[str, Any]) -> str:
    return one_line(", ".join(f"{name} {as_json(value)}" for name, value in values.items()))


# What was said


def said_lines(said: Said, look: Look, seen: Replay) -> Iterator[Line]:
    who: list[Part] = [(one_line(said.role), STRONG)]
    if said.turn is not None:
        who = [(f"turn {said.turn}  ", LABELS), *who]
    facts = line("  ") + call_facts(said.call, look) if said.call is not None else Line()
    yield line(*who) + facts
    if look.raw_calls and differs(said):
        yield from sent_lines(said, seen, look)
    yield from body_lines(said, look)


def body_lines(said: Said, look: Look) -> Iterator[Line]:
    if said.reasoning:
        yield line((f"{INDENT}reasoning", LABELS))
        yield from look.text(said.reasoning, f"{INDENT}· ", LABELS)
    if said.text:
        yield from look.text(said.text)
    for use in said.tools:
        yield from tool_lines(use, look)
    if not (said.reasoning or said.text or said.tools):
        yield line((f"{INDENT}(nothing)", LABELS))


def call_facts(call: StoredCall, look: Look) -> Line:
    """What one model call took, and what is unusual about it."""
    facts: list[Part] = [(seconds_text(call.seconds), LABELS)]
    if call.error is None:
        usage = call.usage
        facts.append((f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{usage_note(usage)}", LABELS))
        ended = call.finish_reason or "no finish reason"
        facts.append((one_line(ended), LABELS if ended in USUAL_ENDS else WARN))
    if dict(call.sampling) != dict(look.sampling) and call.role == AGENT:
        facts.append((f"sampling {pairs(call.sampling) or 'none'}", WARN))
    if call.served_model and call.served_model != call.model:
        facts.append((f"answered as {one_line(call.served_model)}", LABELS))
    if call.served_by:
        facts.append((f"by {one_line(call.served_by)}", LABELS))
    return joined([line(fact) for fact in facts], " · ")


def usage_note(usage: Usage) -> str:
    cached = f", {usage.cached_tokens:,} cached" if usage.cached_tokens else ""
    return cached + (f", {usage.reasoning_tokens:,} reasoning" if usage.reasoning_tokens else "")


def tool_lines(use: ToolUse, look: Look) -> Iterator[Line]:
    yield from call_lines(use, look)
    if use.result is None:
        yield line((f"{INDENT}{INDENT}no result", WARN))
        return
    shown = list(look.text(content_of(use.result) or "(nothing)", f"{INDENT}{INDENT}  "))
    first = Line(((f"{INDENT}{INDENT}← ", LABELS), *shown[0].parts[1:]))
    yield from [first, *shown[1:]]


def call_lines(use: ToolUse, look: Look, arrow: str = "→") -> Iterator[Line]:
    """A tool call on one line where it fits one, else an argument at a time."""
    name, values = one_line(use.name), use.values
    start = line((f"{INDENT}{arrow} ", DONE), (name, STRONG))
    if values is None:
        yield start + line((" with arguments that are no JSON object", WARN))
        yield from look.text(use.arguments, f"{INDENT}{INDENT}  ")
        return
    words = ", ".join(f"{key}={as_json(value)}" for key, value in values.items())
    is_short = not any(isinstance(value, str) and "\n" in value for value in values.values())
    if is_short and len(words) + len(name) <= (look.width or NARROW) - 8:
        yield start + line(f"({one_line(words)})")
        return
    yield start
    for key, value in values.items():
        yield from argument_lines(key, value, look)


def argument_lines(key: str, value: Any, look: Look) -> Iterator[Line]:
    text = value if isinstance(value, str) else as_json(value)
    indent = f"{INDENT}{INDENT}  "
    if "\n" not in text and len(text) + len(key) < (look.width or NARROW) - 12:
        yield line((f"{indent}{one_line(key)}: ", LABELS), one_line(text))
        return
    yield line((f"{indent}{one_line(key)}:", LABELS))
    yield from look.text(text, f"{indent}  ")


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Calls that are not the conversation


def aside_lines(call: StoredCall, look: Look, seen: Replay) -> Iterator[Line]:
    who = "model call" if call.role == AGENT else one_line(call.role)
    who = who if call.error is None else f"{who} failed"
    model = () if call.role == AGENT else ((f" {one_line(call.model)}", LABELS),)
    yield line((who, STRONG), *model) + line("  ") + call_facts(call, look)
    if look.raw_calls and call.role != AGENT and not isinstance(call.messages, int):
        yield from message_lines(call.messages, seen, look)
    if call.error is not None:
        yield from look.text(f"{call.error.error}: {call.error.message}", style=BAD)
    if call.reply is not None:
        reply = Said(-1, call.reply)
        yield from look.text(reply.text or "(nothing)")


def is_unlike(event: Said | Aside) -> bool:
    return differs(event) if isinstance(event, Said) else not isinstance(event.call.messages, int)


def sent_lines(said: Said, seen: Replay, look: Look) -> Iterator[Line]:
    """What the call that wrote a message was really sent."""
    assert said.call is not None
    sent = said.call.messages
    if isinstance(sent, int):
        yield line((f"{INDENT}was sent only the first {counted(sent, 'message')} of the conversation", WARN))
        return
    yield from message_lines(sent, seen, look)


def message_lines(messages: Sequence[Any], seen: Replay, look: Look) -> Iterator[Line]:
    yield line((f"{INDENT}was sent {counted(len(messages), 'message')}", WARN))
    known = seen.conversation
    for message in messages:
        place = next((at for at, each in enumerate(known) if each == message), None)
        role = one_line(role_of(message))
        if place is not None:
            yield line((f"{INDENT}> {role}: message {place + 1} of the conversation", LABELS))
        else:
            yield line((f"{INDENT}> ", LABELS), (role, WARN))
            yield from look.text(content_of(message) or "(nothing)", f"{INDENT}>   ")


# What came of it


def section(name: str, lines: Iterable[Line], style: str = STRONG) -> Iterator[Line]:
    lines = list(lines)
    if lines:
        yield line()
        yield line((name, style))
        yield from lines


def labelled(rows: Iterable[tuple[str, str, str]]) -> list[Line]:
    """Name, value and a remark, one under the other."""
    rows = [(one_line(name), one_line(value), note and f"  {one_line(note)}") for name, value, note in rows]
    names, values = (max((len(row[place]) for row in rows), default=0) for place in (0, 1))
    return [
        line((f"{INDENT}{name:<{max(LABEL, names)}}  ", LABELS), f"{value:>{values}}", (note, LABELS))
        for name, value, note in rows
    ]


def score_lines(row: StoredRow, look: Look) -> Iterator[Line]:
    rows: list[tuple[str, str, str]] = []
    if row.reward is not None:
        together = f"scored together with {row.group_size - 1} others" if row.group_size > 1 else ""
        rows.append(("reward", short_number(row.reward), together))
    for part in row.subscores:
        weight = "" if part.weight == 1 else f"weight {part.weight:g}"
        note = ", ".join(filter(None, (weight, part.note)))
        rows.append((part.name, short_number(part.value), note))
    yield from section("Score", labelled(rows))
    metrics = [
        (name, short_number(value) if isinstance(value, (int, float)) else str(value), "")
        for name, value in row.metrics.items()
    ]
    yield from section("Metrics", labelled(metrics))
    if row.answer not in ("", None):
        answer = row.answer if isinstance(row.answer, str) else as_json(row.answer)
        yield from section("Right answer", look.text(answer))


def error_lines(title: str, error: StoredError | None, look: Look) -> Iterator[Line]:
    if error is None:
        return
    lines = list(look.text(f"{error.error}: {error.message}"))
    if error.phase:
        lines.append(line((f"{INDENT}{one_line(phase_text(error.phase))}", LABELS)))
    if " -> " in error.error_chain_str:
        lines.append(line((f"{INDENT}{one_line(error.error_chain_str)}", LABELS)))
    lines += [line((f"{INDENT}at {one_line(frame)}", LABELS)) for frame in error.traceback]
    yield from section(title, lines, BAD)


def attempt_lines(row: StoredRow, look: Look) -> Iterator[Line]:
    lines: list[Line] = []
    for number, attempt in enumerate(row.earlier_attempts, 1):
        usage = attempt.usage
        took = f"{seconds_text(attempt.seconds)} · {usage.input_tokens:,} in, {usage.output_tokens:,} out"
        outcome = attempt.outcome.replace("_", " ")
        lines.append(line((f"{INDENT}try {number}  ", LABELS), (outcome, WARN), (f"  {took}", LABELS)))
        lines += look.text(f"{attempt.error.error}: {attempt.error.message}", f"{INDENT}{INDENT}")
    yield from section("Earlier attempts", lines)


def state_lines(seen: Replay, look: Look) -> Iterator[Line]:
    if seen.row.info:
        yield from section("Info", look.text(value_text(seen.row.info, look)))
    lines: list[Line] = []
    for name, value in seen.columns.items():
        lines.append(line((f"{INDENT}{one_line(name)}", LABELS)))
        lines += look.text(value_text(value, look), f"{INDENT}{INDENT}")
    yield from section("State", lines)


def value_text(value: Any, look: Look) -> str:
    """Text as it is; anything else as JSON, over several lines where it is long."""
    if isinstance(value, str):
        return value
    text = as_json(value)
    is_short = len(text) <= (look.width or NARROW) - len(INDENT) * 2
    return text if is_short else msgspec.json.format(text)


def time_lines(row: StoredRow, look: Look) -> Iterator[Line]:
    """Each phase where it lies in the whole."""
    timing = row.timing
    phases = [("setup", timing.setup), ("generation", timing.generation), ("scoring", timing.scoring)]
    phases = [(name, phase) for name, phase in phases if phase.duration > 0]
    texts = [seconds_text(phase.duration) for _, phase in phases]
    room = min(BAR, (look.width or NARROW) - LABEL - 16)
    end = max([timing.start_time + timing.total, *(phase.end for _, phase in phases)])
    lines = [
        line(
            (f"{INDENT}{name:<{LABEL}}", LABELS),
            f"{text:>{max(map(len, texts))}}  ",
            *bar(phase, timing.start_time, end, room),
        )
        for (name, phase), text in zip(phases, texts, strict=True)
    ]
    model = f", {seconds_text(timing.model.duration)} of it waiting for models" if row.model_calls else ""
    lines.append(line((f"{INDENT}{seconds_text(timing.total)} in all{model}", LABELS)))
    yield from section("Time", lines)


def bar(phase: Phase, start: float, end: float, room: int) -> list[Part]:
    whole = max(end - start, 1e-9)
    first = min(room - 1, max(0, int((phase.start - start) / whole * room)))
    last = min(room, max(first + 1, round((phase.end - start) / whole * room)))
    return [("─" * first, LABELS), ("━" * (last - first), DONE), ("─" * (room - last), LABELS)]


def token_lines(row: StoredRow, run: StoredRun) -> Iterator[Line]:
    used = {run.model: row.token_usage}
    for model, usage in row.other_usage.items():
        used[model] = used[model] + usage if model in used else usage
    rows = [
        (
            model,
            f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{usage_note(usage)}",
            cost(model, usage),
        )
        for model, usage in used.items()
    ]
    lines = [
        line(
            (f"{INDENT}{one_line(model):<{LABEL}}  ", LABELS), text, (f"   {spent}" if spent else "", LABELS)
        )
        for model, text, spent in rows
    ]
    yield from section("Tokens", lines)


def cost(model: str, usage: Usage) -> str:
    price = price_of(model)
    if price is None or not (price.input or price.output):
        return ""
    return f"${price.of(usage):,.6f} at list prices of {AS_OF}"
