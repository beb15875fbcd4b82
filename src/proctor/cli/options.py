"""Build command-line options from the settings schema, so that flag, help and meaning are defined once."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import click
import msgspec

from proctor.cli.commands.shared_options import finite_float
from proctor.config.schema import LATEST, meta_of
from proctor.config.sources import PARSERS

F = TypeVar("F", bound=Callable[..., Any])


def parse_secrets(word: str, _: str) -> dict[str, str]:
    from proctor.cli.commands.custom_secrets import read_custom_secrets

    return read_custom_secrets(word, os.environ)


OWN_PARSERS: dict[str, Callable[[Any, str], Any]] = {"secrets": parse_secrets}
METAVARS = {"json": "JSON", "names": "NAMES", "workers": "N|auto", "secrets": "NAMES|@FILE|JSON"}
DEFAULT_VALUES = {"resume": LATEST, "cache": "default"}
"""Of options whose value may be left out."""
TYPES: dict[type, click.ParamType[Any]] = {int: click.INT, float: finite_float, str: click.STRING}


def settings_options(*schemas: type[msgspec.Struct]) -> Callable[[F], F]:
    """Add an option for every field that names flags. Flags that are not given are not passed on."""

    def decorate(function: F) -> F:
        for schema in reversed(schemas):
            hints = get_type_hints(schema, include_extras=True)
            for field in reversed(msgspec.structs.fields(schema)):
                meta = meta_of(hints[field.name])
                flags = (meta.extra or {})["flags"]
                if flags:
                    function = build_option(field, hints[field.name], meta)(function)
        return function

    return decorate


def build_option(field: Any, annotation: Any, meta: msgspec.Meta) -> Callable[[F], F]:
    extra = meta.extra or {}
    kind = type_without_none(get_args(annotation)[0])
    words: dict[str, Any] = {"default": None, "help": help_text(meta, field)}
    if kind is bool and "/" not in extra["flags"][-1]:  # others can be turned off as well
        words["is_flag"] = True
        words["flag_value"] = True
    elif kind is bool:
        words["is_flag"] = True
    elif extra["parse"] == "header":
        words["multiple"] = True
        words["metavar"] = "'NAME: VALUE'"
    elif extra["parse"] == "words":
        words["multiple"] = True
        words["metavar"] = "NAME"
    else:
        words["type"] = click.STRING if extra["parse"] else TYPES.get(kind, click.STRING)
        words["metavar"] = METAVARS.get(extra["parse"])
    if field.name in DEFAULT_VALUES:
        words.update(is_flag=False, flag_value=DEFAULT_VALUES[field.name], metavar="[PATH]")
    return click.option(*extra["flags"], field.name, shell_complete=complete_parameter, **words)


def complete_parameter(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """What a shell may offer for a parameter; found by its name in proctor.cli.completion."""
    from proctor.cli.completion import candidates_for

    return candidates_for(ctx, param, incomplete)


def parse_given(values: dict[str, Any], schema: type[msgspec.Struct]) -> dict[str, Any]:
    """The settings of one schema that were really given, parsed."""
    hints = get_type_hints(schema, include_extras=True)
    found = {}
    for field in msgspec.structs.fields(schema):
        value = values.get(field.name)
        if value is None or value == ():
            continue
        extra = meta_of(hints[field.name]).extra or {}
        parse = PARSERS.get(extra["parse"]) or OWN_PARSERS.get(extra["parse"])
        found[field.name] = parse(value, extra["flags"][-1]) if parse and extra["flags"] else value
    return found


def flag_of(schema: type[msgspec.Struct], name: str, value: Any = True) -> str:
    """How a setting is called on the command line, to have this value."""
    flags = (meta_of(get_type_hints(schema, include_extras=True)[name]).extra or {})["flags"]
    word = next((flag for flag in flags if flag.startswith("--")), name)
    on, _, off = word.partition("/")
    return off if off and value is False else on


def type_without_none(annotation: Any) -> type:
    """The type of a setting without its None."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    kind: type = get_origin(annotation) or annotation
    return kind


def help_text(meta: msgspec.Meta, field: Any) -> str:
    default = field.default
    text = meta.description or ""
    if isinstance(default, (int, float, str)) and not isinstance(default, bool):
        return (
            f"{text} [default: {default:g}]" if isinstance(default, float) else f"{text} [default: {default}]"
        )
    return text
