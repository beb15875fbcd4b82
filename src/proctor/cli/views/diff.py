"""Two rollouts as text: how each ended, where they first diverge, and both sides after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import (
    format_duration,
    format_quantity,
    format_short_count,
    format_short_number,
)
from proctor.cli.views.jobs import EMPTY_CELL, ROLLOUT_COLUMNS, outcome_style
from proctor.cli.views.lines import DIM, DONE, STRONG, WARN, Part, StyledLine, styled_line
from proctor.cli.views.page import TableColumn, cell, layout_table
from proctor.cli.views.trace import INDENT, TraceOptions, body_lines
from proctor.store.alignment import Difference, MessagePair, RolloutComparison, split_shared_text
from proctor.store.index import StoredRun
from proctor.store.replay import ReplayMessage, RolloutReplay

SIDES = ("A", "B")
STYLES = {"A": WARN, "B": DONE}
MARKS = {"A": ("[-", "-]"), "B": ("{+", "+}")}
KEPT_LETTERS = 60
"""Of a stretch that both have, at each of its ends."""
GUTTER = 4

Heads = Sequence[tuple[str, StoredRun]]


def diff_lines(
    heads: Heads, both: RolloutComparison, width: int | None, *, full: bool
) -> Iterator[StyledLine]:
    look = TraceOptions(None if width is None else width - GUTTER, full)
    yield from head_lines(heads, both, width)
    yield styled_line()
    first = both.first
    if first is None:
        yield styled_line((describe_sameness(both), STRONG))
        return
    if both.same:
        begin = f"The first {both.same} messages are" if both.same > 1 else "The first message is"
        yield styled_line((f"{begin} the same.", DIM))
    yield styled_line(
        ("First divergence  ", DIM),
        (f"{describe_position(first)}: {one_line(describe_difference(first))}", STRONG),
    )
    yield from pair_lines(first, look)
    rest = both.pairs[both.same + 1 :]
    if rest:
        yield styled_line()
        yield styled_line(("After it", DIM))
    for pair in rest:
        yield styled_line()
        yield styled_line(
            (describe_position(pair), STRONG), (f"  {one_line(describe_difference(pair))}", DIM)
        )
        yield from pair_lines(pair, look)


# How they ended


def head_lines(heads: Heads, both: RolloutComparison, width: int | None) -> Iterator[StyledLine]:
    runs = [run for _, run in heads]
    has_envs = runs[0].env != runs[1].env
    has_models = (runs[0].model, runs[0].label) != (runs[1].model, runs[1].label)
    columns = [
        TableColumn(""),
        TableColumn("trace"),
        *([TableColumn("environment", may_shrink=True)] if has_envs else []),
        *([TableColumn("model", may_shrink=True)] if has_models else []),
        *ROLLOUT_COLUMNS,
    ]
    rows: list[list[Part]] = []
    for side, (name, run), seen in zip(SIDES, heads, (both.a, both.b), strict=True):
        envs = [cell(run.env)] if has_envs else []
        models = [cell(f"{run.model} {run.label}".strip())] if has_models else []
        rows.append([(side, STYLES[side]), cell(name), *envs, *models, *figure_cells(seen)])
    gap: list[Part] = [("", "")] * (has_envs + has_models)
    rows.append([("", ""), ("B − A", DIM), *gap, *change_cells(both.a, both.b)])
    yield from layout_table(columns, rows, width)


def figure_cells(seen: RolloutReplay) -> list[Part]:
    row = seen.row
    return [
        EMPTY_CELL if row.reward is None else (format_short_number(row.reward), STRONG),
        (str(seen.turns), ""),
        (format_short_count(count_tokens(seen)), ""),
        (format_duration(row.timing.total), ""),
        (row.outcome.replace("_", " "), outcome_style(row.outcome, row.reward)),
    ]


def change_cells(a: RolloutReplay, b: RolloutReplay) -> list[Part]:
    rewards = (a.row.reward, b.row.reward)
    reward = None if rewards[0] is None or rewards[1] is None else rewards[1] - rewards[0]
    seconds = b.row.timing.total - a.row.timing.total
    return [
        EMPTY_CELL if reward is None else (format_signed(reward, format_short_number(abs(reward))), DIM),
        (format_signed(b.turns - a.turns, str(abs(b.turns - a.turns))), DIM),
        (
            format_signed(
                count_tokens(b) - count_tokens(a), format_short_count(abs(count_tokens(b) - count_tokens(a)))
            ),
            DIM,
        ),
        (format_signed(seconds, format_duration(abs(seconds))), DIM),
        ("", ""),
    ]


def format_signed(value: float, text: str) -> str:
    return f"+{text}" if value > 0 else f"−{text}" if value < 0 else "0"


def count_tokens(seen: RolloutReplay) -> int:
    usage = seen.row.token_usage
    return usage.input_tokens + usage.output_tokens


def describe_sameness(both: RolloutComparison) -> str:
    messages, turns = format_quantity(len(both.pairs), "message"), format_quantity(both.a.turns, "turn")
    message = f"Both say and do the same: {messages} of {turns}."
    scores = [(each.row.reward, each.row.outcome) for each in (both.a, both.b)]
    return message if scores[0] == scores[1] else f"{message} They were judged differently all the same."


# Where they differ


def describe_position(pair: MessagePair) -> str:
    message = pair.either
    if message.turn is not None:
        other = pair.b if pair.a is not None else None
        turns = f"turn {message.turn}"
        if other is not None and other.turn not in (None, message.turn):
            turns += f" of A, {other.turn} of B"
        return f"{turns}, {one_line(message.role)}"
    return f"message {message.index + 1}, {one_line(message.role)}"


def describe_difference(pair: MessagePair) -> str:
    """The first difference, in a few words."""
    if not pair.differences:
        return "the same"
    if pair.a is None or pair.b is None:
        return f"only in {'B' if pair.a is None else 'A'}"
    return difference_phrase(pair.differences[0])


def difference_phrase(found: Difference) -> str:
    side = "A" if found.a else "B"
    one_sided = {"wording": "says anything", "reasoning": "reasons", "tool": "calls a tool"}
    if not (found.a and found.b) and found.kind in one_sided:
        return f"only {side} {one_sided[found.kind]}"
    return {
        "wording": "other words",
        "reasoning": "other reasoning",
        "tool": "another tool",
        "arguments": f"other arguments of {found.tool}",
        "result": f"another result of {found.tool}",
        "speaker": f"{found.a} in A, {found.b} in B",
        "missing": "only on one side",
    }[found.kind]


def pair_lines(pair: MessagePair, look: TraceOptions) -> Iterator[StyledLine]:
    kinds = {found.kind for found in pair.differences}
    if kinds & {"missing", "speaker", "tool"}:
        for side, message in zip(SIDES, (pair.a, pair.b), strict=True):
            if message is not None:
                yield from (
                    side_marker(side) + each for each in body_lines(omit_shared_text(message, kinds), look)
                )
        return
    phrase = describe_difference(pair)
    for found in pair.differences:
        if difference_phrase(found) != phrase:
            phrase = difference_phrase(found)
            yield styled_line((f"  and {one_line(phrase)}", DIM))
        yield from difference_lines(found, look)


def omit_shared_text(message: ReplayMessage, kinds: Collection[str]) -> ReplayMessage:
    """Where tools differ, without the words that both sides have."""
    if "tool" not in kinds or not isinstance(message.message, dict):
        return message
    same = {"reasoning_content": "reasoning", "content": "wording"}
    shown = {key: value for key, value in message.message.items() if same.get(key, "tool") in kinds}
    return msgspec.structs.replace(message, message=shown)


def side_marker(side: str) -> StyledLine:
    return styled_line((f"  {side} ", STYLES[side]))


def difference_lines(found: Difference, look: TraceOptions) -> Iterator[StyledLine]:
    is_block = "\n" in f"{found.a}{found.b}"
    name = f"{found.key} ={chr(10) if is_block else ' '}" if found.key else ""
    for side, text in zip(SIDES, mark_differences(found, look.full), strict=True):
        if text is None:
            message = f"{one_line(found.key)} is not given" if found.key else "(nothing)"
            yield side_marker(side) + styled_line((f"{INDENT}{message}", DIM))
        else:
            yield from (side_marker(side) + each for each in look.text(f"{name}{text}"))


def mark_differences(found: Difference, full: bool) -> tuple[str | None, str | None]:
    """Both sides with marks around the words that the other has not."""
    is_word = bool(found.key) and "\n" not in f"{found.a}{found.b}"
    cut = split_shared_text(found.a, found.b) if found.a and found.b and not is_word else None
    if cut is None:
        return found.a or None, found.b or None
    a, b = (
        "".join(shorten_middle(text, full) if shared else wrap_in_marks(side, text) for shared, text in words)
        for side, words in zip(SIDES, cut, strict=True)
    )
    return a, b


def wrap_in_marks(side: str, text: str) -> str:
    words = text.rstrip()
    return f"{MARKS[side][0]}{words}{MARKS[side][1]}{text[len(words) :]}"


def shorten_middle(text: str, full: bool) -> str:
    if full or len(text) <= 2 * KEPT_LETTERS + 5:
        return text
    return f"{text[:KEPT_LETTERS]} … {text[-KEPT_LETTERS:]}"


# For programs


def diff_document(name: str, other: str, both: RolloutComparison) -> dict[str, Any]:
    first = both.first
    return {
        "a": side_document(name, both.a),
        "b": side_document(other, both.b),
        "identical": first is None,
        "same_messages": both.same,
        "first_divergence": None if first is None else pair_document(first),
        "pairs": [pair_document(pair) for pair in both.pairs],
    }


def side_document(name: str, seen: RolloutReplay) -> dict[str, Any]:
    row = seen.row
    return {
        "trace": name,
        "task": row.example_id,
        "rollout": row.rollout,
        "outcome": row.outcome,
        "reward": row.reward,
        "turns": seen.turns,
        "input_tokens": row.token_usage.input_tokens,
        "output_tokens": row.token_usage.output_tokens,
        "seconds": row.timing.total,
    }


def pair_document(pair: MessagePair) -> dict[str, Any]:
    return {
        "role": pair.either.role,
        "a": None if pair.a is None else {"message": pair.a.index, "turn": pair.a.turn},
        "b": None if pair.b is None else {"message": pair.b.index, "turn": pair.b.turn},
        "differences": msgspec.to_builtins(pair.differences),
    }
