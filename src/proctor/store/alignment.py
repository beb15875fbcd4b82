"""Align two rollouts: which messages correspond, and where they first differ.

The common prefix is paired first, then the two messages that end it, so that the first difference is the
earliest possible. The rest is aligned by role and by the tools that are called. Ids of tool calls are random
and are ignored. Knows nothing of files or terminals.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from proctor.store.replay import ReplayMessage, RolloutReplay, ToolUse, content_of
from proctor.store.subsequence import find_stretches

MOST_ALIGNED = 2_000
"""Messages; longer conversations are paired by index, because aligning them takes too long."""
MOST_WORDS = 3_000
MIN_SIMILARITY = 0.3
WORDS = re.compile(r"\S+\s*|\s+")

Kind = Literal["wording", "reasoning", "tool", "arguments", "result", "speaker", "missing"]


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference between two messages."""

    kind: Kind
    a: str | None = None
    b: str | None = None
    tool: str = ""
    key: str = ""
    """Of the argument; empty where the arguments as a whole differ."""


class MessagePair(msgspec.Struct, frozen=True):
    """Corresponding messages; one of them may be missing."""

    a: ReplayMessage | None
    b: ReplayMessage | None
    differences: tuple[Difference, ...] = ()

    @property
    def either(self) -> ReplayMessage:
        message = self.a or self.b
        assert message is not None
        return message


class RolloutComparison(msgspec.Struct, frozen=True):
    """Two rollouts, aligned."""

    a: RolloutReplay
    b: RolloutReplay
    pairs: tuple[MessagePair, ...]

    @property
    def same(self) -> int:
        """How many messages are the same before the first difference."""
        return next((index for index, pair in enumerate(self.pairs) if pair.differences), len(self.pairs))

    @property
    def first(self) -> MessagePair | None:
        return next((pair for pair in self.pairs if pair.differences), None)


def compare_rollouts(a: RolloutReplay, b: RolloutReplay) -> RolloutComparison:
    left, right = a.messages, b.messages
    same = 0
    for one, other in zip(left, right, strict=False):
        if list(find_differences(one, other)):
            break
        same += 1
    together = [MessagePair(one, other) for one, other in zip(left[:same], right[:same], strict=True)]
    left, right = left[same:], right[same:]
    if left and right and left[0].role == right[0].role:
        together.append(MessagePair(left[0], right[0], tuple(find_differences(left[0], right[0]))))
        left, right = left[1:], right[1:]
    return RolloutComparison(a, b, (*together, *align_messages(left, right)))


def align_messages(left: Sequence[ReplayMessage], right: Sequence[ReplayMessage]) -> Iterator[MessagePair]:
    if max(len(left), len(right)) > MOST_ALIGNED:
        yield from pair_in_order(left, right)
        return
    for each in find_stretches([*map(message_shape, left)], [*map(message_shape, right)]):
        yield from pair_in_order(left[each.start : each.end], right[each.other_start : each.other_end])


def message_shape(message: ReplayMessage) -> tuple[str, ...]:
    return message.role, *(use.name for use in message.tools)


def pair_in_order(left: Sequence[ReplayMessage], right: Sequence[ReplayMessage]) -> Iterator[MessagePair]:
    for one, other in itertools.zip_longest(left, right):
        if one is None or other is None:
            yield MessagePair(one, other, (Difference("missing"),))
        elif one.role != other.role:
            yield MessagePair(one, other, (Difference("speaker", one.role, other.role),))
        else:
            yield MessagePair(one, other, tuple(find_differences(one, other)))


# Two messages


def find_differences(one: ReplayMessage, other: ReplayMessage) -> Iterator[Difference]:
    """In chronological order: reasoning, text, tool calls, tool results."""
    if one.role != other.role:
        yield Difference("speaker", one.role, other.role)
        return
    if one.reasoning != other.reasoning:
        yield Difference("reasoning", one.reasoning, other.reasoning)
    if one.text != other.text:
        yield Difference("wording", one.text, other.text)
    for use, other_use in itertools.zip_longest(one.tools, other.tools):
        yield from find_tool_differences(use, other_use)


def find_tool_differences(one: ToolUse | None, other: ToolUse | None) -> Iterator[Difference]:
    if one is None or other is None or one.name != other.name:
        yield Difference("tool", call_text(one), call_text(other))
        return
    yield from find_argument_differences(one, other)
    answers = [None if use.result is None else content_of(use.result) for use in (one, other)]
    if answers[0] != answers[1]:
        yield Difference("result", answers[0], answers[1], tool=one.name)


def find_argument_differences(one: ToolUse, other: ToolUse) -> Iterator[Difference]:
    values, other_values = one.values, other.values
    if values is None or other_values is None:
        if one.arguments != other.arguments:
            yield Difference("arguments", one.arguments, other.arguments, tool=one.name)
        return
    for key in dict.fromkeys((*values, *other_values)):
        texts = [value_text(each[key]) if key in each else None for each in (values, other_values)]
        if texts[0] != texts[1]:
            yield Difference("arguments", texts[0], texts[1], tool=one.name, key=key)


def call_text(use: ToolUse | None) -> str | None:
    if use is None:
        return None
    values = use.values
    if values is None:
        return f"{use.name}({use.arguments})"
    return f"{use.name}({', '.join(f'{key}={value_text(value)}' for key, value in values.items())})"


def value_text(value: object) -> str:
    """JSON; text of several lines, such as code, as it is."""
    if isinstance(value, str) and "\n" in value:
        return value
    return msgspec.json.encode(value, order="deterministic").decode()


# Two texts


TextStretch = tuple[bool, str]
"""Whether both texts have it, and the words."""


def split_shared_text(one: str, other: str) -> tuple[list[TextStretch], list[TextStretch]] | None:
    """Both texts, split into shared and differing stretches; None if they share too little."""
    words, other_words = WORDS.findall(one), WORDS.findall(other)
    if max(len(words), len(other_words)) > MOST_WORDS:
        return None
    stretches = list(find_stretches(words, other_words))
    shared = sum(each.end - each.start for each in stretches if each.is_same)
    if 2 * shared < MIN_SIMILARITY * (len(words) + len(other_words)):
        return None
    left: list[TextStretch] = []
    right: list[TextStretch] = []
    for each in stretches:
        parts = words[each.start : each.end], other_words[each.other_start : each.other_end]
        for side, part in zip((left, right), parts, strict=True):
            if part:
                side.append((each.is_same, "".join(part)))
    return left, right
