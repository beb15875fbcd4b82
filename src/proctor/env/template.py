"""A template: a generator function for one kind of task, with the types of its inputs and its answer.

Calling it mints a task, which is plain data. Knows nothing of agents.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Generic, ParamSpec, Protocol, get_args, get_type_hints

import msgspec

from proctor.env.exchange import Exchange
from proctor.env.minted_task import MintedTask, bind_task
from proctor.env.yields import count_yields
from proctor.errors import ConfigError, EnvError
from proctor.task import Task, mint_task
from proctor.tools import Tool, ToolArgumentsError
from proctor.trace import ToolSpec

P = ParamSpec("P")

NAME = re.compile(r"[\w.:/-]{1,100}")


class TemplateOwner(Protocol):
    """The environment that a template belongs to."""

    @property
    def name(self) -> str: ...
    def keep(self, task: MintedTask) -> MintedTask: ...


class Template(Generic[P]):
    """A kind of task: a generator function, the types of its inputs and of the answer."""

    def __init__(
        self,
        environment: TemplateOwner,
        function: Callable[P, AsyncGenerator[Any, Any]],
        id: str | None = None,  # noqa: A002
        description: str = "",
        returns: Any = None,
    ) -> None:
        if not inspect.isasyncgenfunction(function):
            name = getattr(function, "__name__", repr(function))
            raise ConfigError(
                f"Template {name!r} is not an async generator; write it as `async def` with `yield`."
            )
        self.environment = environment
        self.function = function
        self.id = id or function.__name__
        if not NAME.fullmatch(self.id):
            raise ConfigError(f"{self.id!r} cannot be a template's id; use letters, digits and . _ : / -")
        try:
            self.inputs = Tool.of(function)
        except TypeError as error:
            raise ConfigError(f"Template {self.id!r}: {str(error).removeprefix('tool ')}.") from error
        self.description = description or self.inputs.spec.description
        self.returns = answer_type(self.id, function) if returns is None else returns
        self.yields = count_yields(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> MintedTask:
        """Mint a task; checks the inputs and runs nothing."""
        inputs = dict(zip(self.inputs.types, args, strict=False))
        if len(args) > len(inputs) or inputs.keys() & kwargs.keys():
            raise ConfigError(f"Template {self.id!r} takes {', '.join(self.inputs.types) or 'no inputs'}.")
        return self.environment.keep(bind_task(self.task({**inputs, **kwargs}), self.environment))

    def task(self, inputs: Mapping[str, Any]) -> Task:
        """The task for these inputs, as plain data."""
        try:
            plain = msgspec.to_builtins(self.validate(as_plain(inputs)), order="deterministic")
        except (ToolArgumentsError, TypeError) as error:
            raise ConfigError(f"Cannot mint a task of {self.environment.name!r}: {error}") from error
        return mint_task(self.environment.name, self.id, plain)

    def validate(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs converted to their annotated types, or a ToolArgumentsError."""
        return self.inputs.arguments(inputs)

    def start(self, inputs: Mapping[str, Any]) -> Exchange:
        function: Callable[..., AsyncGenerator[Any, Any]] = self.function
        try:
            generator = function(**self.validate(inputs))
        except ToolArgumentsError as error:
            raise EnvError(str(error)) from error
        return Exchange(generator, self.id, returns=self.returns, yields=self.yields)

    @property
    def spec(self) -> ToolSpec:
        """The template's id, description and parameters."""
        return ToolSpec(self.id, self.description, self.inputs.spec.parameters)

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the answer, where it is more than text."""
        return None if self.returns is str else msgspec.json.schema(self.returns)


def as_plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as plain JSON data."""
    plain: dict[str, Any] = msgspec.to_builtins(dict(inputs), order="deterministic")
    return plain


def answer_type(template: str, function: Callable[..., Any]) -> Any:
    """The answer's type: the second argument of the annotated AsyncGenerator, or else str."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    if annotation is None:
        return str
    try:
        kinds = get_args(get_type_hints(function, include_extras=True)["return"])
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise ConfigError(
            f"Template {template!r}: its return annotation cannot be read ({error}); import its names at run "
            "time, at module level."
        ) from error
    sent = kinds[1] if len(kinds) > 1 else str
    return str if sent in (Any, object, type(None)) else sent
