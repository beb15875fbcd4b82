"""Which of the conversations at a door is the main one: that is what the trace shows.

A program may ask for more than its work needs: a title, a summary, a helper of its own. The main conversation
is the one that goes on from what was last said in it, or outgrows it: first one that asks what the task asks,
then one that offers tools, then the longest. It is kept as it happens, so a program that is killed
leaves all of it. Knows nothing of wires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.gateway.wire import UNREADABLE, all_text, malformed_error
from proctor.trace import Message, Reply, ToolSpec, Trace, text_of

Fingerprint = tuple[Any, ...]


class Conversation:
    """Keeps the prompt and the completion of a trace what the main conversation is."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._before = list(trace.completion)
        """Of earlier turns, and what was asked in this one."""
        said = [*trace.prompt, *trace.completion]
        asked = [text_of(message) for message in said if message.get("role") == "user"]
        self._task = asked[-1].strip() if asked else ""
        self._main: list[Message] = []
        self._rank = (False, False, 0)

    def hear(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message] | None:
        """The main conversation, if these messages are; None if they are about something beside it."""
        rank = (any(self._task in text for text in all_text(messages)), bool(tools), len(messages))
        if not (rank > self._rank or self._is_continued_by(messages)):
            return None
        self._main, self._rank = list(messages), rank
        opening = next((place for place, each in enumerate(messages) if is_answer(each)), len(messages))
        if not self._before:
            self._trace.prompt = self._main[:opening]
        self._trace.completion = [*self._before, *self._main[opening:]]
        return self._main

    def told(self, conversation: list[Message] | None, reply: Reply) -> bool:
        """Add a reply; whether it is one in the main conversation, which may have become another since."""
        if conversation is None or conversation is not self._main:
            return False
        self._main.append(reply.message)
        self._trace.completion.append(reply.message)
        return True

    def _is_continued_by(self, messages: Sequence[Message]) -> bool:
        """System messages do not count: some programs write them anew for every request."""
        ours = [fingerprint(each) for each in self._main if each.get("role") != "system"]
        theirs = [fingerprint(each) for each in messages if each.get("role") != "system"]
        return theirs[: len(ours)] == ours


class Memory:
    """What the model said at a door, to be recognised when a program repeats it.

    A program gives back what its wire could carry. What was lost on the way, thoughts above all, is put back,
    for there are providers who refuse to go on without it.
    """

    def __init__(self) -> None:
        self._said: dict[Fingerprint, Message] = {}
        self._conversations: dict[str, Sequence[Message]] = {}

    def keep(self, answer_id: str, messages: Sequence[Message], reply: Reply) -> None:
        self._said[fingerprint(reply.message)] = reply.message
        self._conversations[answer_id] = [*messages, reply.message]

    def restore(self, messages: Sequence[Message], previous: str | None) -> list[Message]:
        """Messages as they were said, after those that a program only points at."""
        own = [self._said.get(fingerprint(each), each) if is_answer(each) else each for each in messages]
        if previous is None:
            return own
        before = self._conversations.get(previous)
        if before is None:
            raise malformed_error(f"previous_response_id: there was no answer {previous!r} here.")
        if any(each["role"] == "system" for each in own):  # instructions are not those of earlier requests
            before = [each for each in before if each["role"] != "system"]
        system = [each for each in own if each["role"] == "system"]
        return [*system, *before, *(each for each in own if each["role"] != "system")]


def is_answer(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant"


def fingerprint(message: Message) -> Fingerprint:
    """What is left of a message on every wire."""
    content = message.get("content")
    said = text_of(message) if is_answer(message) or isinstance(content, str) else repr(content)
    calls = message.get("tool_calls") or ()
    return (
        message.get("role"),
        said,
        message.get("tool_call_id"),
        tuple((call["id"], call["name"], normalize_arguments(call["arguments"])) for call in calls),
    )


def normalize_arguments(arguments: str) -> str:
    """Arguments that went over a wire as an object may come back in another spelling."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except UNREADABLE:
        return arguments
