"""What is wrong with the names and values of a request, as sentences: all of it, in one refusal.

Knows types. Knows nothing of HTTP frameworks or of what is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from proctor.api.refusals import InvalidError
from proctor.errors import did_you_mean

LONGEST_QUOTED = 80
MOST_PROBLEMS = 20
Query = TypeVar("Query", bound=msgspec.Struct)


class FieldProblem(msgspec.Struct, frozen=True):
    """What is wrong with one field of a request."""

    field: str
    """Its path in the body, such as `permissions.network`; or the name of a query parameter."""
    message: str
    """A sentence."""


def refuse(problems: Iterable[FieldProblem]) -> None:
    """Raise one refusal for all problems, if there are any; no more are looked for than are named."""
    found = list(islice(problems, MOST_PROBLEMS + 1))
    if not found:
        return
    named = found[:MOST_PROBLEMS]
    message = " ".join(problem.message for problem in named)
    if len(found) > len(named):
        message += " And more."
    details: dict[str, Any] = {"problems": msgspec.to_builtins(named)}
    if len(found) == 1:
        details["field"] = found[0].field
    raise InvalidError(message, **details)


# The query


def decode_query(pairs: Iterable[tuple[str, str]], kind: type[Query]) -> Query:
    """The query parameters of a request as a struct; a list has a parameter for each of its items."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    problems: list[FieldProblem] = []
    for name, value in pairs:
        if len(problems) > MOST_PROBLEMS:
            break
        if name not in fields:
            problems.append(unknown_name(name, fields, "a query parameter"))
            continue
        bare = strip_annotation(fields[name])
        if get_origin(bare) is list:
            given.setdefault(name, []).append(value)
            problems += find_value_problems(value, get_args(bare)[0], name)
        else:
            given[name] = value
            problems += find_value_problems(value, fields[name], name)
    for name, items in given.items():
        if isinstance(items, list):
            problems += find_value_problems([None] * len(items), bounded_list(fields[name]), name)
    problems += [
        FieldProblem(field.encode_name, f"{field.encode_name} is required.")
        for field in msgspec.structs.fields(kind)
        if field.required and field.encode_name not in given
    ]
    refuse(problems)
    return msgspec.convert(given, kind, strict=False)


# The body


def find_body_problems(value: Any, kind: Any, path: str = "") -> Iterator[FieldProblem]:
    struct, item = find_struct(kind), find_item_type(kind)
    if struct is not None and isinstance(value, dict):
        yield from find_object_problems(value, struct, path)
    elif item is not None and isinstance(value, list):
        too_long = list(find_value_problems([None] * len(value), bounded_list(kind), path))
        yield from too_long
        for index, each in enumerate(value if not too_long else ()):
            yield from find_body_problems(each, item, f"{path}[{index}]")
    else:
        yield from find_value_problems(value, kind, path)


def find_object_problems(
    value: Mapping[str, Any], struct: type[msgspec.Struct], path: str
) -> Iterator[FieldProblem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for name in value:
        if name not in fields:
            yield unknown_name(str(name), fields, "a field of this request", path)
    for name, field in fields.items():
        inner = f"{path}.{name}" if path else name
        if name in value:
            yield from find_body_problems(value[name], field.type, inner)
        elif field.required:
            yield FieldProblem(inner, f"{inner} is required.")


def unknown_name(name: str, known: Mapping[str, Any], what: str, path: str = "") -> FieldProblem:
    field = f"{path}.{name}" if path else name
    quoted = field if len(field) <= LONGEST_QUOTED else field[:LONGEST_QUOTED] + "…"
    return FieldProblem(quoted, f"{quoted!r} is not {what}{did_you_mean(name[:LONGEST_QUOTED], known)}")


def find_value_problems(value: Any, kind: Any, path: str) -> Iterator[FieldProblem]:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        yield FieldProblem(path, describe_value(path or "The body", value, kind, str(error)))
    except RecursionError:
        yield FieldProblem(path, f"{path or 'The body'} is nested too deeply.")


def describe_value(path: str, value: Any, kind: Any, message: str) -> str:
    words = list_words(kind)
    if words and isinstance(value, str):
        quoted = value if len(value) <= LONGEST_QUOTED else value[:LONGEST_QUOTED] + "…"
        return f"{path} cannot be {quoted!r}{did_you_mean(value[:LONGEST_QUOTED], words)}"
    return f"{path}: {message[:1].lower()}{message[1:]}."


# Types


def strip_annotation(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def list_alternatives(kind: Any) -> list[Any]:
    """The types of a union; otherwise the type itself."""
    bare = strip_annotation(kind)
    if get_origin(bare) in (Union, UnionType):
        return [inner for each in get_args(bare) for inner in list_alternatives(each)]
    return [bare]


def find_struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that an object of this type is decoded to."""
    for each in list_alternatives(kind):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each
    return None


def find_item_type(kind: Any) -> Any:
    """The type of a list's items, if they are structs."""
    for each in list_alternatives(kind):
        if get_origin(each) is list and find_struct(get_args(each)[0]) is not None:
            return get_args(each)[0]
    return None


def bounded_list(kind: Any) -> Any:
    """A list of anything, with the length that the type allows."""
    metas = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return Annotated[(list[Any], *metas)] if metas else list[Any]


def list_words(kind: Any) -> list[str]:
    """The words that a field may have, if it has no others."""
    literals = [each for each in list_alternatives(kind) if get_origin(each) is Literal]
    return [str(word) for literal in literals for word in get_args(literal)]
