"""Task: one example of an environment, as plain data, with its identity.

Knows nothing of models, scoring or files.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, overload

import msgspec

from proctor.trace import Message

TaskId = int | str

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Task(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One example: a prompt, and what is known about the right answer."""

    id: TaskId
    prompt: tuple[Message, ...] = ()
    answer: Any = ""
    info: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    """Further columns of the row this task was made from."""
    env: str = ""
    """Name of the environment whose template this task was minted from; empty for other tasks."""
    template: str = ""
    args: dict[str, Any] = {}
    """What the template is started with."""
    member: str = ""
    """Which of several environments that run as one it belongs to; `outer/inner` in a group of groups."""

    @property
    def slug(self) -> str:
        """The id as people type it."""
        return str(self.id)

    def with_slug(self, slug: str) -> Task:
        """The same task under another id."""
        return msgspec.structs.replace(self, id=slug)

    @property
    def hash(self) -> str:
        """Changes when the content of the task changes, and only then."""
        known: str | None = self.__dict__.get("hash")
        if known is None:
            minted = (self.env, self.template, self.args) if self.template else ()
            content = canonical_bytes((self.prompt, self.answer, self.info, self.columns, *minted))
            known = self.__dict__["hash"] = hashlib.sha256(content).hexdigest()[:16]
        return known

    @property
    def origin(self) -> dict[str, Any]:
        """What a row of results says about the task under `info`."""
        if not self.template:
            return self.info
        return {**self.info, "env": self.env, "template": self.template, "args": self.args}


class TaskSequence(Sequence[Task]):
    """Tasks whose number is known, each built on access."""

    @abstractmethod
    def build(self, number: int) -> Task:
        """The task of this number, which exists."""

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self.build(number) for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"there is no task {index} among {len(self)}")
        return self.build(number)


def mint_task(env: str, template: str, args: dict[str, Any], slug: TaskId | None = None) -> Task:
    """A task of a template: the same inputs give the same id, in any process."""
    return Task(
        id=default_slug(template, args) if slug is None else slug, env=env, template=template, args=args
    )


def default_slug(template: str, args: dict[str, Any]) -> str:
    if not args:
        return template
    return f"{template}-{hashlib.sha256(canonical_bytes(args)).hexdigest()[:8]}"


def canonical_bytes(content: Any) -> bytes:
    """The same bytes for the same content; values that are not JSON count by their repr."""
    try:
        return _canonical.encode(content)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, half characters, circles
        return stable_repr(content).encode(errors="backslashreplace")


def stable_repr(value: object) -> str:
    """How a value shows itself, without its place in memory, which differs from run to run."""
    try:
        return ADDRESS.sub("", repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


_canonical = msgspec.json.Encoder(order="deterministic", enc_hook=stable_repr)
