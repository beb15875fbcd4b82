"""Turn a Python function into a tool: the schema a model reads, and the arguments it then sends.

Knows functions, annotations and JSON. Knows nothing of models, rollouts or who makes the call.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Optional, TypeVar, get_type_hints

import msgspec

from proctor.trace import ToolSpec


class ToolArgumentsError(ValueError):
    """The arguments a model sent do not fit the tool. The message is written for the model."""


class ToolError(Exception):
    """A tool call failed. The message is written for the model."""


class ToolParseError(ToolError):
    """What verifiers calls a tool call that cannot be read, for code of yours that raises or names it."""


class ToolCallError(ToolError):
    """What verifiers calls a tool that failed, for code of yours that raises or names it."""


F = TypeVar("F", bound=Callable[..., Any])

PARALLEL = "__proctor_parallel__"


def parallel_tool(function: F) -> F:
    """Mark a function whose calls, as a tool, may run beside other calls of the same reply. Without the mark
    they are made one after the other, in the order in which the model wrote them."""
    setattr(function, PARALLEL, True)
    return function


@dataclass(frozen=True, eq=False)
class Tool:
    """A function that a model may call."""

    function: Callable[..., Any]
    spec: ToolSpec
    is_async: bool
    hidden: frozenset[str]
    """Arguments the model neither sees nor may send; the environment fills them in."""
    types: Mapping[str, Any]
    """The type of each argument the model sees."""

    @property
    def name(self) -> str:
        return self.spec.name

    @classmethod
    def of(cls, function: Callable[..., Any], hidden: Collection[str] = (), parallel: bool = False) -> Tool:
        """The tool for a function; TypeError if a model could not call it."""
        name = _name(function)
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            raise TypeError(f"{name} cannot be a tool's name; give the function a plain `def` name")
        parameters = _parameters(name, function)
        if unknown := [argument for argument in hidden if argument not in parameters]:
            raise TypeError(
                f"tool {name} has no argument {unknown[0]} to hide{_hint(unknown[0], parameters)}"
            )
        visible = {argument: parameters[argument] for argument in parameters if argument not in hidden}
        names_in_scope = getattr(_definition(function), "__globals__", {})
        types = {argument: _type(name, parameter, names_in_scope) for argument, parameter in visible.items()}
        description, arguments = _parse_docstring(_docstring(function))
        return cls(
            function=function,
            spec=ToolSpec(
                name,
                description,
                _schema(name, visible, types, arguments),
                parallel or _is_parallel(function),
            ),
            is_async=_is_async(function),
            hidden=frozenset(hidden),
            types=types,
        )

    def arguments(self, raw: str | Mapping[str, Any]) -> dict[str, Any]:
        """What the model sent, checked and converted to the annotated types; defaults are not filled in."""
        sent = self._decode_arguments(raw) if isinstance(raw, str) else raw
        for argument in sent:
            if argument not in self.types:
                raise ToolArgumentsError(
                    f"`{self.name}` has no argument `{_shorten(argument)}`{_hint(argument, self.types)}"
                )
        if missing := [argument for argument in self.spec.parameters["required"] if argument not in sent]:
            wanted = ", ".join(f"`{argument}`{self._kind(argument)}" for argument in missing)
            raise ToolArgumentsError(f"`{self.name}` also needs {wanted}.")
        return {argument: self._convert_argument(argument, value) for argument, value in sent.items()}

    def _decode_arguments(self, raw: str) -> Mapping[str, Any]:
        if not raw.strip():  # how some models call a tool without arguments
            return {}
        try:
            sent = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = str(error).removeprefix("JSON is malformed: ")
            raise ToolArgumentsError(
                f"The arguments of `{self.name}` are not valid JSON ({problem}); send one JSON object."
            ) from error
        if sent is None:
            return {}
        if not isinstance(sent, dict):
            raise ToolArgumentsError(
                f"The arguments of `{self.name}` must be one JSON object, but {_short_repr(sent)} was sent."
            )
        return sent

    def _convert_argument(self, argument: str, value: Any) -> Any:
        try:
            return msgspec.convert(value, self.types[argument], strict=False)
        except (msgspec.ValidationError, RecursionError) as error:
            problem, _, path = str(error).partition(" - at `$")
            location = argument + path.removesuffix("`")
            choices = self._choices(self.spec.parameters["properties"][argument])
            if choices and not path:
                problem = f"expected one of {', '.join(map(_short_repr, choices))}"
            raise ToolArgumentsError(
                f"`{location}` of `{self.name}` is wrong: {problem[:1].lower()}{problem[1:]}; "
                f"{_short_repr(value)} was sent{f' as `{argument}`' if path else ''}."
            ) from error

    def _kind(self, argument: str) -> str:
        schema = self.spec.parameters["properties"][argument]
        if choices := self._choices(schema):
            return f" (one of {', '.join(map(_short_repr, choices))})"
        return f" ({schema['type']})" if "type" in schema else ""

    def _choices(self, schema: Mapping[str, Any]) -> list[Any]:
        schema = self.spec.parameters.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)
        if "anyOf" not in schema:
            return list(schema.get("enum", ()))
        options = [
            [None] if option == {"type": "null"} else self._choices(option) for option in schema["anyOf"]
        ]
        return [choice for option in options for choice in option] if all(options) else []


def _name(function: Any) -> str:
    if not callable(function):
        raise TypeError(f"{function!r} is not a function, so it cannot be a tool")
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    return _name(function.func) if isinstance(function, functools.partial) else type(function).__name__


def _definition(function: Any) -> Any:
    """The `def` behind a callable, in whose module the names in its annotations are found."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function):
            return function
        else:
            function = function.__init__ if inspect.isclass(function) else type(function).__call__


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _is_parallel(function: Any) -> bool:
    return bool(getattr(function, PARALLEL, False) or getattr(_definition(function), PARALLEL, False))


def _parameters(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters still to fill in; those bound by a partial are excluded."""
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise TypeError(f"tool {name} has no signature to read; wrap it in a `def`") from error
    for settled in function.keywords if isinstance(function, functools.partial) else ():
        parameters.pop(settled, None)
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"tool {name} takes {parameter}, which cannot be described to a model; name every argument"
                " (a decorator needs functools.wraps)"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"tool {name} takes {parameter.name} by position only; tools are called by name")
    return parameters


def _type(tool: str, parameter: inspect.Parameter, names_in_scope: dict[str, Any]) -> Any:
    if parameter.annotation is parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        annotation = get_type_hints(holder, names_in_scope, include_extras=True)[parameter.name]
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise TypeError(
            f"tool {tool}: the annotation of {parameter.name}, {parameter.annotation!r}, cannot be read"
            f" ({error}); import its names at run time, at module level"
        ) from error
    # `limit: int = None` means that None may be passed, although the annotation omits it.
    lenient = parameter.default is None and annotation is not Any
    return Optional[annotation] if lenient else annotation  # noqa: UP045


def _schema(
    tool: str,
    parameters: Mapping[str, inspect.Parameter],
    types: Mapping[str, Any],
    descriptions: Mapping[str, str],
) -> dict[str, Any]:
    # One call for all, so that two classes of one name do not overwrite each other's definition.
    schemas, definitions = _json_schemas(tool, types)
    properties: dict[str, Any] = {}
    for name, parameter in parameters.items():
        described = {"description": descriptions[name]} if name in descriptions else {}
        properties[name] = schemas[name] | described | _default_schema(parameter)
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def _json_schemas(tool: str, types: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    try:
        schemas, definitions = msgspec.json.schema_components(types.values(), ref_template="#/$defs/{name}")
    except TypeError:
        for name, annotation in types.items():
            try:
                msgspec.json.schema(annotation)
            except TypeError as error:
                raise TypeError(
                    f"tool {tool}: {name} is annotated {annotation!r}, which JSON cannot carry;"
                    " use plain types, TypedDict, dataclass or msgspec.Struct, or hide the argument"
                ) from error
        raise
    return dict(zip(types, schemas, strict=True)), definitions


def _default_schema(parameter: inspect.Parameter) -> dict[str, Any]:
    if parameter.default is parameter.empty:
        return {}
    try:
        plain = msgspec.to_builtins(parameter.default, str_keys=True)
        return {"default": json.loads(json.dumps(plain, allow_nan=False))}
    except (TypeError, ValueError):  # a sentinel or infinity: the model need only know it may leave this out
        return {}


def _docstring(function: Any) -> str:
    if inspect.isroutine(function) or function.__doc__ is not type(function).__doc__:
        return inspect.getdoc(function) or ""
    if isinstance(function, functools.partial):
        return _docstring(function.func)
    return type(function).__call__.__doc__ or inspect.getdoc(function) or ""


def _parse_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """What a docstring says about the tool, and about each argument."""
    if not docstring:
        return "", {}
    import docstring_parser  # costly to import, and only programs with tools need it

    try:
        parsed = docstring_parser.parse(docstring)
    except docstring_parser.ParseError:
        return inspect.cleandoc(docstring), {}
    paragraphs = (parsed.short_description, parsed.long_description)
    arguments = {argument.arg_name: argument.description for argument in parsed.params}
    return (
        "\n\n".join(paragraph for paragraph in paragraphs if paragraph),
        {name: description for name, description in arguments.items() if description},
    )


def _hint(wrong: str, names: Iterable[str]) -> str:
    names = list(names)
    # Comparing is quadratic in length, and a model may send a name of any length.
    if close := difflib.get_close_matches(wrong[:100], names, n=1):
        return f"; did you mean `{close[0]}`?"
    return f"; its arguments are {', '.join(f'`{name}`' for name in names)}." if names else "; it takes none."


def _short_repr(value: Any) -> str:
    try:
        return _shorten(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError):
        return _shorten(repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
