"""One rollout: its structure first, its content on demand, however long it is.

A skeleton has one line per event with sizes and a preview; the content of events comes in windows.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proctor.api.rollout_list import RolloutEntry
from proctor.api.rows import RowAttempt, RowError, RowTiming
from proctor.rollout import Subscore
from proctor.trace import Usage

MOST_EVENTS_AT_ONCE = 500
PREVIEW_CHARACTERS = 200

EventType = Literal["message", "call"]
"""`call` is a model call without a message of the conversation: it failed, or a judge or helper made it."""


class CallBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One model call in figures."""

    index: int
    """Among the rollout's calls."""
    role: str
    """`agent` for the evaluated model; judges and helpers have others."""
    model: str
    start: float
    seconds: float
    usage: Usage = Usage()
    cost_usd: float | None = None
    finish_reason: str | None = None
    error: str = ""
    altered: bool = False
    """It was sent something else than the conversation before it; see `as sent`."""


class ToolBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str
    arguments_preview: str = ""
    result_index: int | None = None
    """The index of its result in the conversation."""
    result_preview: str = ""
    result_size: int = 0
    is_error: bool = False


class EventBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of the timeline, without its content."""

    index: int
    """In the timeline; `#m12` links to it."""
    type: EventType
    role: str
    size: int
    """Characters of its text."""
    preview: str = ""
    turn: int | None = None
    """Of the evaluated model, from 1."""
    in_prompt: bool = False
    reasoning_size: int = 0
    images: int = 0
    tools: list[ToolBrief] = []
    call: CallBrief | None = None


class FileBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the rollout changed."""

    index: int
    path: str
    change: str
    size: int = 0
    diff_size: int = 0
    note: str = ""


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """Where to go from here, in task order."""

    previous_rollout: tuple[str, int] | None = None
    """Key and number."""
    next_rollout: tuple[str, int] | None = None
    previous_task: tuple[str, int] | None = None
    next_task: tuple[str, int] | None = None
    place: int = 0
    """Of this rollout among those of the run, from 0."""
    total: int = 0


class RolloutView(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout as a skeleton."""

    run_id: str
    entry: RolloutEntry
    neighbours: Neighbours = Neighbours()
    events: list[EventBrief]
    total_events: int
    """More than `events` if only some were asked for."""
    subscores: list[Subscore] = []
    """Which function gave what."""
    error: RowError | None = None
    cleanup_error: RowError | None = None
    earlier_attempts: list[RowAttempt] = []
    timing: RowTiming | None = None
    usage: Usage = Usage()
    other_usage: dict[str, Usage] = {}
    files: list[FileBrief] = []
    answer: Any = None
    info: Any = None
    columns: dict[str, Any] = {}
    """State columns."""
    tool_names: list[str] = []
    size: int = 0
    """Bytes of the row."""


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    first: Annotated[int, Meta(ge=0)] = 0
    count: Annotated[int, Meta(ge=1, le=MOST_EVENTS_AT_ONCE)] = 100
    most_characters: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 50_000
    """Of one text; a longer one is cut in its middle, and says so."""


class CutText(msgspec.Struct, frozen=True, kw_only=True):
    """A text, perhaps cut in its middle."""

    head: str
    tail: str = ""
    omitted: int = 0
    """Characters between head and tail."""


class ImagePart(msgspec.Struct, frozen=True, kw_only=True):
    media_type: str
    size: int
    part: int
    """Ask for it by this number; it is never fetched from another host."""
    url: str = ""
    """Where it is if it is elsewhere; shown as text."""


class ToolContent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    arguments: CutText
    """As the model wrote them, valid or not."""
    result: CutText | None = None
    result_images: list[ImagePart] = []


class EventContent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the timeline with its content."""

    index: int
    role: str
    text: CutText
    reasoning: CutText | None = None
    images: list[ImagePart] = []
    tools: list[ToolContent] = []
    request: CutText | None = None
    """Of a judge or helper: the request it got, as JSON."""


class EventWindow(msgspec.Struct, frozen=True, kw_only=True):
    items: list[EventContent]
    total: int


class SentCall(msgspec.Struct, frozen=True, kw_only=True):
    """A model call as it was sent."""

    index: int
    role: str
    model: str
    messages: list[Any]
    tools: list[Any] = []
    sampling: dict[str, Any] = {}
    reply: Any = None
    error: RowError | None = None


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    q: Annotated[str, Meta(min_length=1, max_length=1_000)]
    """Text to find in messages, tools and errors, in capitals or not."""
    key: Annotated[str, Meta(max_length=100)] = ""
    """Search only the rollouts of this task; with `number`, one of them and every event of it."""
    number: Annotated[int, Meta(ge=0)] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 200


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a search found its text. Hits are streamed, one JSON document per line."""

    task: str
    key: str
    number: int
    event: int | None = None
    """In the timeline; None if it is elsewhere in the row."""
    before: str = ""
    match: str
    after: str = ""


class RolloutAddress(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    key: str
    number: int


class DiffQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    a: Annotated[str, Meta(max_length=400)]
    """RUN/KEY/NUMBER."""
    b: Annotated[str, Meta(max_length=400)]


class DiffPair(msgspec.Struct, frozen=True, kw_only=True):
    """Corresponding events of two rollouts; one of them may be missing."""

    a: int | None
    b: int | None
    differences: list[str] = []
    """Of what kind: wording, reasoning, tool, arguments, result, speaker, missing. Empty if they are the
    same."""


class RolloutDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two rollouts side by side; their content comes from their own windows."""

    a: RolloutView
    b: RolloutView
    pairs: list[DiffPair]
    first: int | None
    """The first pair that differs."""
