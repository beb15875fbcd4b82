"""Two rollouts as text: what each came to, where they first diverge, and both sides after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from proctor.cli.live.wording import counted, short_count, short_number
from proctor.cli.views.escape import one_line
from proctor.cli.views.jobs import NOTHING, outcome_style
from proctor.cli.views.lines import DONE, LABELS, STRONG, WARN, Line, Part, line
from proctor.cli.views.page import Column, cell, seconds_text, table
from proctor.cli.views.trace import INDENT, Look, body_lines
from proctor.store.alignment import Comparison, Difference, Pair, stretches
from proctor.store.index import StoredRun
from proctor.store.replay import Replay, Said

SIDES = ("A", "B")
STYLES = {"A": WARN, "B": DONE}
MARKS = {"A": ("[-", "-]"), "B": ("{+", "+}")}
KEPT_LETTERS = 60
"""Of a stretch that both have, at each of its ends."""
GUTTER = 4

Heads = Sequence[tuple[str, StoredRun]]


def diff_lines(heads: Heads, both: Comparison, width: int | None, *, full: bool) -> Iterator[Line]:
    look = Look(None if width is None else width - GUTTER, full)
    yield from head_lines(heads, both, width)
    yield line()
    first = both.first
    if first is None:
        yield line((same_text(both), STRONG))
        return
    if both.same:
        begin = f"The first {both.same} messages are" if both.same > 1 else "The first message is"
        yield line((f"{begin} the same.", LABELS))
    yield line(("First divergence  ", LABELS), (f"{where(first)}: {one_line(what(first))}", STRONG))
    yield from pair_lines(first, look)
    rest = both.pairs[both.same + 1 :]
    if rest:
        yield line()
        yield line(("After it", LABELS))
    for pair in rest:
        yield line()
        yield line((where(pair), STRONG), (f"  {one_line(what(pair))}", LABELS))
        yield from pair_lines(pair, look)


# What they came to


def head_lines(heads: Heads, both: Comparison, width: int | None) -> Iterator[Line]:
    runs = [run for _, run in heads]
    has_envs = runs[0].env != runs[1].env
    has_models = (runs[0].model, runs[0].label) != (runs[1].model, runs[1].label)
    columns = [
        Column(""),
        Column("trace"),
        *([Column("environment", may_shrink=True)] if has_envs else []),
        *([Column("model", may_shrink=True)] if has_models else []),
        Column("reward", right=True),
        Column("turns", right=True),
        Column("tokens", right=True),
        Column("time", right=True),
        Column("outcome"),
    ]
    rows: list[list[Part]] = []
    for side, (name, run), seen in zip(SIDES, heads, (both.a, both.b), strict=True):
        envs = [cell(run.env)] if has_envs else []
        models = [cell(f"{run.model} {run.label}".strip())] if has_models else []
        rows.append([(side, STYLES[side]), cell(name), *envs, *models, *figures(seen)])
    gap: list[Part] = [("", "")] * (has_envs + has_models)
    rows.append([("", ""), ("B − A", LABELS), *gap, *changes(both.a, both.b)])
    yield from table(columns, rows, width)


def figures(seen: Replay) -> list[Part]:
    row = seen.row
    return [
        NOTHING if row.reward is None else (short_number(row.reward), STRONG),
        (str(seen.turns), ""),
        (short_count(tokens(seen)), ""),
        (seconds_text(row.timing.total), ""),
        (row.outcome.replace("_", " "), outcome_style(row.outcome, row.reward)),
    ]


def changes(a: Replay, b: Replay) -> list[Part]:
    rewards = (a.row.reward, b.row.reward)
    reward = None if rewards[0] is None or rewards[1] is None else rewards[1] - rewards[0]
    seconds = b.row.timing.total - a.row.timing.total
    return [
        NOTHING if reward is None else (signed(reward, short_number(abs(reward))), LABELS),
        (signed(b.turns - a.turns, str(abs(b.turns - a.turns))), LABELS),
        (signed(tokens(b) - tokens(a), short_count(abs(tokens(b) - tokens(a)))), LABELS),
        (signed(seconds, seconds_text(abs(seconds))), LABELS),
        ("", ""),
    ]


def signed(value: float, text: str) -> str:
    return f"+{text}" if value > 0 else f"−{text}" if value < 0 else "0"


def tokens(seen: Replay) -> int:
    usage = seen.row.token_usage
    return usage.input_tokens + usage.output_tokens


def same_text(both: Comparison) -> str:
    said = (
        f"Both say and do the same: {counted(len(both.pairs), 'message')} of {counted(both.a.turns, 'turn')}."
    )
    scores = [(each.row.reward, each.row.outcome) for each in (both.a, both.b)]
    return said if scores[0] == scores[1] else f"{said} They were judged differently all the same."


# Where they differ


def where(pair: Pair) -> str:
    said = pair.said
    if said.turn is not None:
        other = pair.b if pair.a is not None else None
        turns = f"turn {said.turn}"
        if other is not None and other.turn not in (None, said.turn):
            turns += f" of A, {other.turn} of B"
        return f"{turns}, {one_line(said.role)}"
    return f"message {said.place + 1}, {one_line(said.role)}"


def what(pair: Pair) -> str:
    """The first difference, in a few words."""
    if not pair.differences:
        return "the same"
    if pair.a is None or pair.b is None:
        return f"only in {'B' if pair.a is None else 'A'}"
    return phrase(pair.differences[0])


def phrase(found: Difference) -> str:
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


def pair_lines(pair: Pair, look: Look) -> Iterator[Line]:
    kinds = {found.kind for found in pair.differences}
    if kinds & {"missing", "speaker", "tool"}:
        for side, said in zip(SIDES, (pair.a, pair.b), strict=True):
            if said is not None:
                yield from (gutter(side) + each for each in body_lines(without_same(said, kinds), look))
        return
    told = what(pair)
    for found in pair.differences:
        if phrase(found) != told:
            told = phrase(found)
            yield line((f"  and {one_line(told)}", LABELS))
        yield from difference_lines(found, look)


def without_same(said: Said, kinds: Collection[str]) -> Said:
    """Where tools differ, without the words that both sides have."""
    if "tool" not in kinds or not isinstance(said.message, dict):
        return said
    same = {"reasoning_content": "reasoning", "content": "wording"}
    shown = {key: value for key, value in said.message.items() if same.get(key, "tool") in kinds}
    return msgspec.structs.replace(said, message=shown)


def gutter(side: str) -> Line:
    return line((f"  {side} ", STYLES[side]))


def difference_lines(found: Difference, look: Look) -> Iterator[Line]:
    is_block = "\n" in f"{found.a}{found.b}"
    name = f"{found.key} ={chr(10) if is_block else ' '}" if found.key else ""
    for side, text in zip(SIDES, marked(found, look.full), strict=True):
        if text is None:
            said = f"{one_line(found.key)} is not given" if found.key else "(nothing)"
            yield gutter(side) + line((f"{INDENT}{said}", LABELS))
        else:
            yield from (gutter(side) + each for each in look.text(f"{name}{text}"))


def marked(found: Difference, full: bool) -> tuple[str | None, str | None]:
    """Both sides with marks around the words that the other has not."""
    is_word = bool(found.key) and "\n" not in f"{found.a}{found.b}"
    cut = stretches(found.a, found.b) if found.a and found.b and not is_word else None
    if cut is None:
        return found.a or None, found.b or None
    a, b = (
        "".join(shortened(text, full) if shared else in_marks(side, text) for shared, text in words)
        for side, words in zip(SIDES, cut, strict=True)
    )
    return a, b


def in_marks(side: str, text: str) -> str:
    words = text.rstrip()
    return f"{MARKS[side][0]}{words}{MARKS[side][1]}{text[len(words) :]}"


def shortened(text: str, full: bool) -> str:
    if full or len(text) <= 2 * KEPT_LETTERS + 5:
        return text
    return f"{text[:KEPT_LETTERS]} … {text[-KEPT_LETTERS:]}"


# For programs


def diff_document(name: str, other: str, both: Comparison) -> dict[str, Any]:
    first = both.first
    return {
        "a": side_document(name, both.a),
        "b": side_document(other, both.b),
        "identical": first is None,
        "same_messages": both.same,
        "first_divergence": None if first is None else pair_document(first),
        "pairs": [pair_document(pair) for pair in both.pairs],
    }


def side_document(name: str, seen: Replay) -> dict[str, Any]:
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


def pair_document(pair: Pair) -> dict[str, Any]:
    return {
        "role": pair.said.role,
        "a": None if pair.a is None else {"message": pair.a.place, "turn": pair.a.turn},
        "b": None if pair.b is None else {"message": pair.b.place, "turn": pair.b.turn},
        "differences": msgspec.to_builtins(pair.differences),
    }
