"""Search a run's rollouts for a text: first in the bytes of rows, then in the events of those that have it.

Upper and lower case are the same. Knows nothing of stores or HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from proctor.api.rollout_view import SearchHit
from proctor.store.folder import UNREADABLE
from proctor.store.replay import ReplayEvent, ReplayMessage, RolloutReplay, content_of
from proctor.task import TaskId

CONTEXT = 60
"""Characters before and after what was found."""
MOST_HITS_PER_ROLLOUT = 20


class Needle:
    """A text to find."""

    def __init__(self, text: str) -> None:
        self.text = text.lower()
        self._in_row = msgspec.json.encode(self.text)[1:-1]
        self._pattern = (
            None if text.isascii() else re.compile(b"".join(map(row_pattern, self.text)), re.IGNORECASE)
        )

    def may_be_in(self, raw: bytes) -> bool:
        """Whether a row is worth decoding: a cheap test that errs on the side of yes."""
        if self._pattern is not None:
            return self._pattern.search(raw) is not None
        return self._in_row in raw.lower()

    def find_in(self, text: str) -> tuple[str, str, str] | None:
        """What is before it, itself, and what is after it."""
        lowered = text.lower()
        at = lowered.find(self.text)
        if at < 0:
            return None
        if len(lowered) != len(text):  # a letter whose lower case has another length: show it in lower case
            text = lowered
        end = at + len(self.text)
        found = (text[max(0, at - CONTEXT) : at], text[at:end], text[end : end + CONTEXT])
        before, match, after = (part.encode("utf-8", "replace").decode() for part in found)
        return before, match, after


def row_pattern(letter: str) -> bytes:
    """A letter of a text as JSON may encode it: in either case, literal or escaped."""
    if letter.isascii():
        return re.escape(msgspec.json.encode(letter)[1:-1])
    forms = {letter, letter.upper()}
    written = [form.encode() for form in forms] + [json.dumps(form)[1:-1].encode() for form in forms]
    return b"(?:%b)" % b"|".join(map(re.escape, written))


def find_hits(
    needle: Needle, replay: RolloutReplay, key: str, number: int, most: int = MOST_HITS_PER_ROLLOUT
) -> Iterator[SearchHit]:
    """At most one hit for each event; or else one for what is elsewhere in the row."""
    row = replay.row
    count = 0
    for index, event in enumerate(replay.events):
        found = next(filter(None, map(needle.find_in, event_texts(event))), None)
        if found is not None:
            yield build_hit(row.example_id, (key, number), index, found)
            count += 1
            if count >= most:
                return
    if count:
        return
    error = "" if row.error is None else f"{row.error.error}: {row.error.message}"
    for value in (error, row.answer, row.info, replay.columns):
        found = needle.find_in(value if isinstance(value, str) else text_of_value(value))
        if found is not None:
            yield build_hit(row.example_id, (key, number), None, found)
            return


def build_hit(task: TaskId, at: tuple[str, int], event: int | None, found: tuple[str, str, str]) -> SearchHit:
    key, number = at
    before, match, after = found
    return SearchHit(
        task=str(task), key=key, number=number, event=event, before=before, match=match, after=after
    )


def event_texts(event: ReplayEvent) -> Iterable[str]:
    if not isinstance(event, ReplayMessage):
        call = event.call
        yield content_of(call.reply or "") if call.error is None else call.error.message
        if isinstance(call.messages, list):
            yield from map(content_of, call.messages)
        return
    yield event.text
    yield event.reasoning
    for use in event.tools:
        yield f"{use.name} {use.arguments}"
        if use.result is not None:
            yield content_of(use.result)


def text_of_value(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, *UNREADABLE):
        return ""
