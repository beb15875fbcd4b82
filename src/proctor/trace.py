"""Trace: what was said and done in one rollout, recorded while it happens.

Messages are plain dictionaries in one provider-neutral shape:

    {"role": "system" | "user" | "assistant" | "tool", "content": text or a list of parts, …}

An assistant message may carry `reasoning_content` and `tool_calls`, each call
`{"id", "name", "arguments"}` with the arguments as the JSON text the model wrote, valid or not.
A tool message carries `tool_call_id`. An assistant message may carry `native`, what only the provider that
wrote it can read: `{"by": client type, …}`. It is sent back to that provider only.

Knows nothing of tasks, scores or providers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from proctor.errors import Failure

Message = dict[str, Any]
Content = str | list[dict[str, Any]]
"""Text, or parts in the neutral shape: text and images."""


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    parallel: bool = False
    """Its calls may run beside other calls of the same reply. Models are not told."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens one model call, or one rollout, took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class Reply(msgspec.Struct, frozen=True):
    """A model's reply to one request."""

    message: Message
    finish_reason: str = "stop"
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    logprobs: msgspec.Raw | None = None
    served_by: str | None = None
    """Which of several replicas answered."""

    @property
    def text(self) -> str:
        return text_of(self.message)

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        return self.message.get("tool_calls") or []

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"


class Piece(msgspec.Struct, frozen=True):
    """A part of a reply that is still being written."""

    kind: Literal["text", "thought"]
    text: str


class ModelCall(msgspec.Struct, eq=False):
    """One request to a model: recorded before it is sent, completed when it is answered."""

    role: str
    model: str
    messages: Sequence[Message]
    sampling: dict[str, Any]
    started_at: float
    tools: Sequence[ToolSpec] = ()
    seconds: float = 0.0
    reply: Reply | None = None
    failure: Failure | None = None
    reused: bool = False
    """The reply was not asked for now: it comes from a cache or from an earlier run."""


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was created, changed or deleted in a rollout's workspace."""

    path: str
    change: Literal["created", "changed", "deleted", "more"]
    """`more` stands at the end of a list that is not whole."""
    size: int = 0
    """In bytes; of a deleted file, what it had."""
    diff: str = ""
    """Unified, of text."""
    sha256: str = ""
    """Of what has no diff."""
    note: str = ""


class Trace(msgspec.Struct, eq=False):
    """The record of one rollout; grows while it is played and scored."""

    prompt: list[Message] = []
    completion: list[Message] = []
    calls: list[ModelCall] = []
    stop_condition: str | None = None
    truncated: bool = False
    timed_out: bool = False
    """The agent's time was up before it was done."""
    files: list[FileChange] = []
    """The changes in the workspace, if the task has one."""
    answers: list[str] = []
    """What the agent answered, turn by turn, where an agent works on the task."""

    def snapshot(self) -> Trace:
        """A copy of the record as it is now; later writes do not change the copy."""
        own = {id(message): dict(message) for message in (*self.prompt, *self.completion)}

        def copies(messages: Sequence[Message]) -> list[Message]:
            return [own.get(id(message), message) for message in messages]

        calls = [
            msgspec.structs.replace(
                call,
                messages=copies(call.messages),
                reply=call.reply
                and msgspec.structs.replace(call.reply, message=copies([call.reply.message])[0]),
            )
            for call in self.calls
        ]
        return msgspec.structs.replace(
            self, prompt=copies(self.prompt), completion=copies(self.completion), calls=calls
        )

    def usage(self, role: str | None = "agent") -> Usage:
        """Tokens of all answered calls of one role, or of every role with None."""
        total: Usage | None = None
        for call in self.calls:
            if call.reply is not None and (role is None or call.role == role):
                total = call.reply.usage if total is None else total + call.reply.usage
        return total or Usage()

    def model_seconds(self) -> float:
        seconds = 0.0
        for call in self.calls:
            seconds += call.seconds
        return seconds


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message. Parts of other types, such as reasoning, are not part of the answer."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    return "".join(
        part["text"]
        for part in content
        if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def last_assistant_text(completion: Sequence[Message]) -> str:
    """The model's last text since the last message to it."""
    for message in reversed(completion):
        if message.get("role") == "user":
            break
        if message.get("role") == "assistant" and text_of(message):
            return text_of(message)
    return ""
