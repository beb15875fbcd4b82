"""Find the main conversation among a program's requests: the trace shows that one.

A program may also ask for other things: a title, a summary, a helper's work. A request belongs to the main
conversation if it continues it, or outranks it: conversations with the task's prompt come first, then those
with tools, then the longest. The trace is updated with each request, so it is complete even if the program is
killed. Knows nothing of wires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.trace import Message, Reply, ToolSpec, Trace, text_of
from proctor.wires.codec import UNREADABLE
from proctor.wires.content import all_text
from proctor.wires.errors import malformed_error

Fingerprint = tuple[Any, ...]


class Conversation:
    """Keeps a trace's prompt and completion equal to the main conversation."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._before = list(trace.completion)
        """Earlier turns, and the prompt of this one."""
        messages = [*trace.prompt, *trace.completion]
        prompts = [text_of(message) for message in messages if message.get("role") == "user"]
        self._task = prompts[-1].strip() if prompts else ""
        self._main: list[Message] = []
        self._rank = (False, False, 0)

    def add_request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message] | None:
        """The main conversation if these messages belong to it, else None."""
        rank = (any(self._task in text for text in all_text(messages)), bool(tools), len(messages))
        if not (rank > self._rank or self._is_continued_by(messages)):
            return None
        self._main, self._rank = list(messages), rank
        opening = next((index for index, each in enumerate(messages) if is_answer(each)), len(messages))
        if not self._before:
            self._trace.prompt = self._main[:opening]
        self._trace.completion = [*self._before, *self._main[opening:]]
        return self._main

    def add_reply(self, conversation: list[Message] | None, reply: Reply) -> bool:
        """Add a reply. False if its conversation is not, or no longer, the main one."""
        if conversation is None or conversation is not self._main:
            return False
        self._main.append(reply.message)
        self._trace.completion.append(reply.message)
        return True

    def _is_continued_by(self, messages: Sequence[Message]) -> bool:
        """Ignores system messages: some programs rewrite them for every request."""
        ours = [fingerprint(each) for each in self._main if each.get("role") != "system"]
        theirs = [fingerprint(each) for each in messages if each.get("role") != "system"]
        return theirs[: len(ours)] == ours


class Memory:
    """The model's replies in one session, to be recognized when the program sends them back.

    A program sends back only what its wire can carry. Memory restores what was lost, above all thoughts:
    some providers refuse to continue without them.
    """

    def __init__(self) -> None:
        self._replies: dict[Fingerprint, Message] = {}
        self._conversations: dict[str, Sequence[Message]] = {}

    def keep(self, answer_id: str, messages: Sequence[Message], reply: Reply) -> None:
        self._replies[fingerprint(reply.message)] = reply.message
        self._conversations[answer_id] = [*messages, reply.message]

    def restore(self, messages: Sequence[Message], previous: str | None) -> list[Message]:
        """The messages as the model wrote them, after those that the request refers to by id."""
        own = [self._replies.get(fingerprint(each), each) if is_answer(each) else each for each in messages]
        if previous is None:
            return own
        before = self._conversations.get(previous)
        if before is None:
            raise malformed_error(
                f"previous_response_id: this session has no answer {previous!r}; send the whole conversation."
            )
        if any(each["role"] == "system" for each in own):  # they replace those of earlier requests
            before = [each for each in before if each["role"] != "system"]
        system = [each for each in own if each["role"] == "system"]
        return [*system, *before, *(each for each in own if each["role"] != "system")]


def is_answer(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant"


def fingerprint(message: Message) -> Fingerprint:
    """The parts of a message that survive every wire."""
    content = message.get("content")
    text = text_of(message) if is_answer(message) or isinstance(content, str) else repr(content)
    calls = message.get("tool_calls") or ()
    return (
        message.get("role"),
        text,
        message.get("tool_call_id"),
        tuple((call["id"], call["name"], normalize_arguments(call["arguments"])) for call in calls),
    )


def normalize_arguments(arguments: str) -> str:
    """One spelling for equal arguments: a wire may carry them as an object and change the text."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except UNREADABLE:
        return arguments
