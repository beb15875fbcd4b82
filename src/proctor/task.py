"""Task: one example of an environment, as plain data, with its identity.

Knows nothing of models, scoring or files.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from proctor.trace import Message

TaskId = int | str

_canonical = msgspec.json.Encoder(order="deterministic", enc_hook=str)


class Task(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What is asked once, and what is known about the right answer."""

    id: TaskId
    prompt: tuple[Message, ...] = ()
    answer: Any = ""
    info: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    """Further columns of the row this task was made from."""

    @property
    def hash(self) -> str:
        """Changes when the content of the task changes, and only then."""
        known: str | None = self.__dict__.get("hash")
        if known is None:
            content = _canonical.encode((self.prompt, self.answer, self.info, self.columns))
            known = self.__dict__["hash"] = hashlib.sha256(content).hexdigest()[:16]
        return known
