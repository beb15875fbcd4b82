"""The contents of a rollout's events: a window of them, a call as it was sent, one image.

A long text is cut in its middle and says so; it comes whole if more characters are requested. Knows nothing
of stores or HTTP.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.api.refusals import NotFoundError
from proctor.api.rollout_view import (
    CutText,
    EventContent,
    EventQuery,
    EventWindow,
    ImagePart,
    SentCall,
    ToolContent,
)
from proctor.reading.images import ImageData, decode_image, find_images
from proctor.reading.replay_view import convert_error, event_images
from proctor.store.replay import ReplayEvent, RolloutReplay, SideCall, content_of
from proctor.trace import FileChange

TAIL_SHARE = 5
"""The end of a long text is one part in this many of what is shown."""
MOST_SENT = 25_000_000
"""Characters of what the calls of a window were sent, together: each may repeat the whole conversation."""
LEAST_SENT = 1_000
"""Of a call beyond that."""


def read_window(replay: RolloutReplay, query: EventQuery) -> EventWindow:
    shown = replay.events[query.first : query.first + query.count]
    sent = SentTexts(replay, query.most_characters)
    items = [
        read_event(query.first + offset, event, sent, query.most_characters)
        for offset, event in enumerate(shown)
    ]
    return EventWindow(items=items, total=len(replay.events))


class SentTexts:
    """What the calls of a window were sent, as JSON. The conversation is encoded once for all of them, and
    once their texts take too much together, the others are short."""

    def __init__(self, replay: RolloutReplay, most: int) -> None:
        self._conversation = replay.conversation
        self._encoded: list[str] = []
        self._most = most
        self._left = MOST_SENT

    def cut(self, messages: int | list[Any]) -> CutText:
        if isinstance(messages, int):
            count = min(max(0, messages), len(self._conversation))
            self._encoded += map(encode_message, self._conversation[len(self._encoded) : count])
            pieces = self._encoded[:count]
        else:
            pieces = [encode_message(message) for message in messages]
        text = cut_list(pieces, self._most if self._left > 0 else LEAST_SENT)
        self._left -= len(text.head) + len(text.tail)
        return text


def read_event(index: int, event: ReplayEvent, sent: SentTexts, most: int) -> EventContent:
    if isinstance(event, SideCall):
        return read_side_call(index, event, sent, most)
    parts = itertools.count()
    images = number_images(event.message, parts)
    return EventContent(
        index=index,
        role=event.role,
        text=cut_text(event.text, most),
        reasoning=cut_text(event.reasoning, most) if event.reasoning else None,
        images=images,
        tools=[
            ToolContent(
                name=use.name,
                arguments=cut_text(use.arguments, most),
                result=None if use.result is None else cut_text(content_of(use.result), most),
                result_images=number_images(use.result, parts),
            )
            for use in event.tools
        ],
    )


def read_side_call(index: int, event: SideCall, sent: SentTexts, most: int) -> EventContent:
    call = event.call
    text = call.error.message if call.error is not None else content_of(call.reply or "")
    request = sent.cut(call.messages)
    return EventContent(index=index, role=call.role, text=cut_text(text, most), request=request)


def number_images(message: Any, parts: Iterator[int]) -> list[ImagePart]:
    return [image.brief(next(parts)) for image in find_images(message)]


def cut_text(text: str, most: int) -> CutText:
    """A text that any encoding can take, with its head and its tail if it is long."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= most:
        return CutText(head=text)
    tail = most // TAIL_SHARE
    return CutText(head=text[: most - tail], tail=text[len(text) - tail :], omitted=len(text) - most)


def encode_message(message: Any) -> str:
    return msgspec.json.encode(message).decode()


def cut_list(pieces: Sequence[str], most: int) -> CutText:
    """A JSON array of encoded items, cut likewise, without putting together what is left out."""
    size = sum(map(len, pieces)) + max(1, len(pieces)) + 1
    if size <= most:
        return CutText(head=f"[{','.join(pieces)}]")
    tail = most // TAIL_SHARE
    first = list(take_characters(pieces, most - tail))
    last = list(take_characters(reversed(pieces), tail, from_end=True))
    return CutText(
        head=f"[{','.join(first)}"[: most - tail],
        tail=f"{','.join(reversed(last))}]"[-tail:],
        omitted=size - most,
    )


def take_characters(pieces: Iterable[str], most: int, *, from_end: bool = False) -> Iterator[str]:
    """The first pieces, up to this many characters; the last one may be cut."""
    for piece in pieces:
        if most <= 0:
            return
        yield piece[-most:] if from_end else piece[:most]
        most -= len(piece) + 1


def read_image_of_event(replay: RolloutReplay, event: int, part: int) -> ImageData:
    images = event_images(replay.events[event]) if 0 <= event < len(replay.events) else iter(())
    image = next(itertools.islice(images, part, None), None) if part >= 0 else None
    decoded = None if image is None else decode_image(image)
    if decoded is None:
        raise NotFoundError(f"Event {event} of this rollout has no picture {part} that can be shown.")
    return decoded


def read_sent_call(replay: RolloutReplay, number: int, shared_tools: Sequence[Any]) -> SentCall:
    """A model call as it was sent."""
    calls = replay.row.model_calls
    if not 0 <= number < len(calls):
        raise NotFoundError(f"This rollout has no model call {number}; it has {len(calls)}.")
    call = calls[number]
    reply = replay.conversation[call.reply] if is_place(call.reply, replay) else call.reply
    return SentCall(
        index=number,
        role=call.role,
        model=call.model,
        messages=find_messages(replay, call.messages),
        tools=list(replay.row.tool_defs or shared_tools),
        sampling=call.sampling,
        reply=reply,
        error=convert_error(call.error),
    )


def is_place(reply: Any, replay: RolloutReplay) -> bool:
    return isinstance(reply, int) and 0 <= reply < len(replay.conversation)


def find_messages(replay: RolloutReplay, messages: int | list[Any]) -> list[Any]:
    """What a call was sent: the first messages of the conversation, or messages of its own."""
    return replay.conversation[: max(0, messages)] if isinstance(messages, int) else messages


def read_file_change(replay: RolloutReplay, number: int) -> FileChange:
    changes = replay.row.file_changes
    if not 0 <= number < len(changes):
        raise NotFoundError(f"This rollout changed no file {number}; it changed {len(changes)}.")
    return changes[number]
