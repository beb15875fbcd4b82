"""A stored row as a sequence of events: messages, tool results, and the model calls behind them.

A row stores messages once and calls separately. Here every call appears where it was made, and every tool
result with the call that requested it. Environments may put anything into a message, so every shape is
checked. Knows nothing of files or terminals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.errors import StoreError
from proctor.report.lines import ErrorLine, RolloutLine, TimingLine
from proctor.rollout import Subscore
from proctor.store.folder import UNREADABLE
from proctor.store.rows import OPTIONAL
from proctor.task import canonical_bytes
from proctor.trace import FileChange, Usage, text_of

AGENT = "agent"


class StoredError(ErrorLine, frozen=True):
    error_chain_str: str = ""
    traceback: tuple[str, ...] = ()


class StoredPhase(msgspec.Struct, frozen=True):
    start: float = 0.0
    end: float = 0.0
    duration: float = 0.0


class StoredTiming(TimingLine, frozen=True):
    setup: StoredPhase = StoredPhase()
    generation: StoredPhase = StoredPhase()
    scoring: StoredPhase = StoredPhase()
    model: StoredPhase = StoredPhase()


class StoredCall(msgspec.Struct, frozen=True, gc=False):
    """One model call; see store/rows.py for what the numbers in it mean."""

    role: str = AGENT
    model: str = ""
    messages: int | list[Any] = 0
    start: float = 0.0
    seconds: float = 0.0
    sampling: dict[str, Any] = {}
    error: StoredError | None = None
    reply: Any = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    served_model: str | None = None
    served_by: str | None = None
    reused: bool = False


class StoredRow(RolloutLine, frozen=True):
    """A stored rollout, with every field."""

    prompt: tuple[Any, ...] = ()
    completion: tuple[Any, ...] = ()
    answer: Any = None
    info: Any = None
    subscores: tuple[Subscore, ...] = ()
    error: StoredError | None = None
    cleanup_error: StoredError | None = None
    timing: StoredTiming = StoredTiming()
    is_truncated: bool = False
    model_calls: tuple[StoredCall, ...] = ()
    group_size: int = 1
    tool_defs: tuple[dict[str, Any], ...] = ()
    file_changes: tuple[FileChange, ...] = ()
    answers: tuple[str, ...] = ()
    reused_from: str = ""


KNOWN_FIELDS = {*StoredRow.__struct_fields__, *OPTIONAL, "is_completed"}


class ToolUse(msgspec.Struct, frozen=True, gc=False):
    """A tool call and its result."""

    name: str
    arguments: str
    """JSON text as the model wrote it, valid or not."""
    result: Any = None
    """The tool's message; None if there is none."""

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments by name; None if their text is not a JSON object."""
        try:
            return msgspec.json.decode(self.arguments or "{}", type=dict[str, Any])
        except UNREADABLE:
            return None


class ReplayMessage(msgspec.Struct, frozen=True, gc=False):
    """One message, with the model call that produced it and the tools it called."""

    index: int
    """In the conversation, from 0."""
    message: Any
    turn: int | None = None
    """Of the evaluated model, from 1; None for any other message."""
    call: StoredCall | None = None
    tools: tuple[ToolUse, ...] = ()

    @property
    def role(self) -> str:
        return role_of(self.message)

    @property
    def text(self) -> str:
        return content_of(self.message)

    @property
    def reasoning(self) -> str:
        text = self.message.get("reasoning_content") if isinstance(self.message, dict) else None
        return text if isinstance(text, str) else ""


class SideCall(msgspec.Struct, frozen=True, gc=False):
    """A model call that produced no message of the conversation: it failed, or a judge or helper made it."""

    call: StoredCall


ReplayEvent = ReplayMessage | SideCall


class RolloutReplay(msgspec.Struct, frozen=True):
    """One rollout, in chronological order."""

    row: StoredRow
    events: tuple[ReplayEvent, ...]
    columns: dict[str, Any]
    """State columns requested with -C."""

    @property
    def turns(self) -> int:
        return sum(isinstance(event, ReplayMessage) and event.turn is not None for event in self.events)

    @property
    def messages(self) -> list[ReplayMessage]:
        return [event for event in self.events if isinstance(event, ReplayMessage)]

    @property
    def conversation(self) -> list[Any]:
        return [*self.row.prompt, *self.row.completion]


def decode_replay(raw: bytes) -> RolloutReplay:
    try:
        row = msgspec.json.decode(raw, type=StoredRow)
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        others = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
        columns = {name: msgspec.json.decode(value) for name, value in others.items()}
    except UNREADABLE as error:
        raise StoreError(f"This rollout's row cannot be read: {error}; --json shows it as it is.") from error
    return build_replay(row, columns)


def build_replay(row: StoredRow, columns: dict[str, Any]) -> RolloutReplay:
    """The replay of a row and its state columns: the fields that no row of ours has."""
    return RolloutReplay(row, tuple(iterate_events(row)), columns)


def iterate_events(row: StoredRow) -> Iterator[ReplayEvent]:
    messages = [*row.prompt, *row.completion]
    wrote, asides = locate_calls(row, messages)
    results = match_tool_results(messages)
    taken = {index for uses in results.values() for _, index in uses if index is not None}
    turn = 0
    for index, message in enumerate(messages):
        for call in asides.get(index, ()):
            yield SideCall(call)
        if index in taken:
            continue
        is_turn = index >= len(row.prompt) and role_of(message) == "assistant"
        turn += is_turn
        tools = tuple(use for use, _ in results.get(index, ()))
        yield ReplayMessage(index, message, turn if is_turn else None, wrote.get(index), tools)
    for call in asides.get(len(messages), ()):
        yield SideCall(call)


# Model calls


def locate_calls(
    row: StoredRow, messages: Sequence[Any]
) -> tuple[dict[int, StoredCall], dict[int, list[StoredCall]]]:
    """The calls by the message they produced; and the others, by the message that follows them."""
    wrote: dict[int, StoredCall] = {}
    asides: dict[int, list[StoredCall]] = {}
    reached = len(row.prompt)
    find_alike = alike_finder(messages, wrote)
    for call in row.model_calls:
        index = find_reply_index(call, messages, wrote, find_alike)
        if index is not None:
            wrote[index] = call
            reached = max(reached, index + 1)
            continue
        if isinstance(call.messages, int) and call.role == AGENT:
            reached = max(reached, min(call.messages, len(messages)))
        asides.setdefault(skip_tool_results(messages, reached), []).append(call)
    return wrote, asides


def find_reply_index(
    call: StoredCall,
    messages: Sequence[Any],
    wrote: Mapping[int, StoredCall],
    find_alike: Callable[[Any], int | None],
) -> int | None:
    """The index of the call's reply. A copy made by the environment is recognized by position or content."""
    if isinstance(call.reply, int):
        return call.reply if 0 <= call.reply < len(messages) else None
    if call.role != AGENT or call.reply is None:
        return None
    next_index = call.messages if isinstance(call.messages, int) else len(messages)
    if role_at(messages, next_index) == "assistant" and next_index not in wrote:
        return next_index
    return find_alike(call.reply)


def alike_finder(messages: Sequence[Any], wrote: Mapping[int, StoredCall]) -> Callable[[Any], int | None]:
    """Finds the first message with a content that no call is known to have produced. The contents are
    indexed when the first is looked for, because few rows need it and a row may have 10,000 messages."""
    indexes: dict[bytes, deque[int]] = {}

    def find_alike(message: Any) -> int | None:
        if not indexes:
            for index, each in enumerate(messages):
                indexes.setdefault(canonical_bytes(each), deque()).append(index)
        left = indexes.get(canonical_bytes(message), deque())
        while left and left[0] in wrote:
            left.popleft()
        return left[0] if left else None

    return find_alike


def role_at(messages: Sequence[Any], index: int) -> str:
    return role_of(messages[index]) if 0 <= index < len(messages) else ""


def skip_tool_results(messages: Sequence[Any], index: int) -> int:
    """The next message that is not a tool result; those are shown with their call."""
    while index < len(messages) and role_of(messages[index]) == "tool":
        index += 1
    return index


def has_altered_request(message: ReplayMessage) -> bool:
    """Whether the call that produced a message was sent anything but the conversation before it."""
    return message.call is not None and message.call.messages != message.index


# Tools


def match_tool_results(messages: Sequence[Any]) -> dict[int, list[tuple[ToolUse, int | None]]]:
    """For each message that calls tools: each call, and the index of its result."""
    found = {}
    for index, message in enumerate(messages):
        asked = parse_tool_calls(message)
        if asked:
            found[index] = list(pair_calls_with_results(asked, find_results_after(messages, index)))
    return found


def find_results_after(messages: Sequence[Any], index: int) -> dict[int, Any]:
    """The tool results between a message and the model's next one."""
    answers = {}
    for later in range(index + 1, len(messages)):
        role = role_of(messages[later])
        if role == "assistant":
            break
        if role == "tool":
            answers[later] = messages[later]
    return answers


def pair_calls_with_results(
    asked: Sequence[tuple[str | None, str, str]], answers: dict[int, Any]
) -> Iterator[tuple[ToolUse, int | None]]:
    left = dict(answers)
    for call_id, name, arguments in asked:
        index = next((at for at, answer in left.items() if answer.get("tool_call_id") == call_id), None)
        result = None if index is None else left.pop(index)
        yield ToolUse(name, arguments, result), index


def parse_tool_calls(message: Any) -> list[tuple[str | None, str, str]]:
    """Id, name and arguments of each tool call, in our shape or in that of OpenAI."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return [parse_tool_call(call) for call in calls] if isinstance(calls, list) else []


def parse_tool_call(call: Any) -> tuple[str | None, str, str]:
    if not isinstance(call, dict):
        return None, str(call), ""
    made = call.get("function", call)
    if not isinstance(made, dict):
        return call.get("id"), str(made), ""
    arguments = made.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return call.get("id"), str(made.get("name")), text


# Messages


def role_of(message: Any) -> str:
    return str(message.get("role", "?")) if isinstance(message, dict) else "?"


def content_of(message: Any) -> str:
    """The text of a message, with a placeholder for each part that is not text."""
    if not isinstance(message, dict):
        return str(message)
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return str(content)
    return "\n".join(filter(None, map(part_text, content)))


def part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "text":
        return text_of({"content": [part]})
    return f"[{part.get('type', 'part')}: {part_source(part)}]"


def part_source(part: Mapping[str, Any]) -> str:
    """The source of an image or sound; inline data as its type and size."""
    held = part.get(str(part.get("type")))
    url = held.get("url") if isinstance(held, dict) else held
    if isinstance(url, str) and not url.startswith("data:"):
        return url
    size = len(msgspec.json.encode(part))
    kind = url.partition(";")[0].removeprefix("data:") + ", " if isinstance(url, str) else ""
    return f"{kind}{size:,} bytes"
