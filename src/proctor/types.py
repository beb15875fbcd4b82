"""The types that environments are written with: messages, tool calls, and names for common shapes.

A message is a dictionary in the neutral shape of `trace.py` whose fields are attributes too, so that
`message["content"]` and `message.content` are the same. Knows nothing of environments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

Info = dict[str, Any]
SamplingArgs = dict[str, Any]
RewardFunc = Callable[..., Any]
IndividualRewardFunc = RewardFunc
GroupRewardFunc = RewardFunc
DatasetBuilder = Callable[[], Any]
MessageContent = str | list[Any]


class State(dict[str, Any]):
    """Holds `prompt`, `completion`, `answer`, `info`, `task`, `example_id`, `turn`, `trajectory`, every
    further column of the task's row, and whatever the author's code puts there."""

    __slots__ = ("seat",)

    seat: Any
    """The rollout's Seat, its access to models; set when it is played."""


class FieldDict(dict[str, Any]):
    """A dictionary whose keys are attributes. A field that is not set is None, like in a typed record."""

    fields: ClassVar[Mapping[str, Any]] = {}
    """The fields that every object has, and their defaults."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def __missing__(self, name: str) -> Any:
        return self.fields[name]

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Plain data, with the fields that are not set unless they are excluded."""
        whole = dict(self) if exclude_none else {**self.fields, **self}
        return {name: to_plain(value) for name, value in whole.items()}

    def __copy__(self) -> FieldDict:
        return type(self)(**self)

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_fields, (type(self), dict(self))


class CalledTool(FieldDict):
    """A tool call: `id`, `name`, and `arguments` as the JSON text that the model wrote."""

    def __init__(self, id: str = "", name: str = "", arguments: str = "", **more: Any) -> None:  # noqa: A002
        super().__init__(id=id, name=name, arguments=arguments, **more)


class ToolDefinition(FieldDict):
    """A tool as a model sees it."""

    fields = {"strict": None}  # noqa: RUF012

    def __init__(self, name: str, description: str, parameters: dict[str, Any], **more: Any) -> None:
        super().__init__(name=name, description=description, parameters=parameters, **more)


class AuthorMessage(FieldDict):
    """A message of any role."""

    role_name: ClassVar[str] = ""

    def __init__(self, content: Any = None, **fields: Any) -> None:
        fields.setdefault("role", self.role_name)
        super().__init__(role=fields.pop("role"), content=content, **fields)


class TextMessage(AuthorMessage):
    """Text without a role of its own; models get it as the user's."""

    role_name = "text"


class SystemMessage(AuthorMessage):
    """Instructions, before everything else."""

    role_name = "system"

    @classmethod
    def from_path(cls, path: str | Path) -> SystemMessage:
        return cls(content=Path(path).read_text(encoding="utf-8"))


class UserMessage(AuthorMessage):
    """The prompt to the model, or the environment's reply."""

    role_name = "user"


class AssistantMessage(AuthorMessage):
    """What the model wrote: text, thoughts, tool calls."""

    role_name = "assistant"
    fields = {  # noqa: RUF012
        "content": None,
        "reasoning_content": None,
        "thinking_blocks": None,
        "tool_calls": None,
    }


class ToolMessage(AuthorMessage):
    """The result of a tool call."""

    role_name = "tool"
    fields = {"tool_call_id": None}  # noqa: RUF012


Tool = ToolDefinition
ToolCall = CalledTool
Message = AuthorMessage
Messages = list[Message]
"""What environment code gets and returns; plain dictionaries of the same shape may be returned too."""

KINDS: dict[str, type[AuthorMessage]] = {
    kind.role_name: kind for kind in (TextMessage, SystemMessage, UserMessage, AssistantMessage, ToolMessage)
}


def to_message(given: Mapping[str, Any]) -> Any:
    """The message with fields as attributes; a new object unless it is one already."""
    if isinstance(given, AuthorMessage):
        return given
    kind = KINDS.get(given.get("role", ""), AuthorMessage)
    message = kind.__new__(kind)
    dict.update(message, given)
    if calls := given.get("tool_calls"):
        dict.__setitem__(message, "tool_calls", [to_tool_call(call) for call in calls])
    return message


def to_tool_call(given: Mapping[str, Any]) -> Any:
    if isinstance(given, CalledTool):
        return given
    call = CalledTool.__new__(CalledTool)
    dict.update(call, given)
    return call


def to_messages(given: str | Iterable[Mapping[str, Any]]) -> list[Any]:
    """Messages with fields as attributes; a bare text is the user's."""
    if isinstance(given, str):
        return [UserMessage(content=given)]
    return [to_message(each) for each in given]


def to_plain(value: Any) -> Any:
    if isinstance(value, FieldDict):
        return {name: to_plain(each) for name, each in value.items()}
    return [to_plain(each) for each in value] if isinstance(value, list) else value


def restore_fields(kind: type[FieldDict], values: dict[str, Any]) -> FieldDict:
    made = kind.__new__(kind)
    dict.update(made, values)
    return made
