"""Replies of judges and other helpers, as a rollout recorded them.

A helper that is asked the same again, by content, gets the same reply; anything else is a new question. Knows
nothing of models or files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from proctor.contracts import Model
from proctor.task import canonical_bytes
from proctor.trace import ModelCall, Reply


def hash_question(call: ModelCall) -> bytes:
    """Equal for calls that ask the same of the same model, by content."""
    asked = (call.role, call.model, call.messages, call.tools, call.sampling)
    return hashlib.sha256(canonical_bytes(asked)).digest()


class RecordedReplies:
    """The helpers' replies of one rollout."""

    def __init__(self, calls: Iterable[ModelCall]) -> None:
        self._replies: dict[bytes, list[Reply]] = {}
        for call in calls:
            if call.reply is not None:
                self._replies.setdefault(hash_question(call), []).append(call.reply)

    def find(self, call: ModelCall, model: Model) -> Reply | None:  # noqa: ARG002
        """The reply that was given to the same question; the first time the first, then the next."""
        replies = self._replies.get(hash_question(call)) if self._replies else None
        return replies.pop(0) if replies else None

    def keep(self, call: ModelCall, reply: Reply) -> None:
        """New replies are recorded in the trace, and need no other place."""
