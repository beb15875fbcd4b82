"""Compare a request with what its route takes: every unknown name and every wrong value, in one refusal.

A misspelt limit that is silently ignored would start an unlimited run. Routes whose `opt` has LENIENT ignore
names they do not know: hosts and the processes of runs may be newer than the server while it is upgraded.
Knows nothing of what is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import SerializationException
from litestar.handlers import BaseRouteHandler
from litestar.params import BodyKwarg, QueryParameter

from proctor.api.field_problems import (
    FieldProblem,
    find_body_problems,
    find_value_problems,
    refuse,
    unknown_name,
)
from proctor.api.refusals import ApiError

LENIENT: Mapping[str, Any] = {"ignores_unknown_names": True}
"""The `opt` of routes for hosts and runs, and of those that forward a foreign query."""


QUERY = "query_struct"
EXTRA = "query_words"


def with_query(kind: type[msgspec.Struct] | None, extra: Sequence[str] = ()) -> dict[str, Any]:
    """As part of the `opt` of a route that decodes its query by itself: the struct of its parameters, and
    the names of those that take any text beside it."""
    return {QUERY: kind, EXTRA: tuple(extra)}


async def check_fields(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A guard: refuse a request with names that the route does not have, or values it does not take."""
    if not isinstance(connection, Request) or handler.opt.keys() & LENIENT.keys():
        return
    problems = find_query_problems(connection, handler)
    body_type = find_body_type(handler)
    if body_type is not None and await connection.body():
        problems = chain(problems, find_body_problems(await read_json(connection), body_type))
    refuse(problems)


async def read_json(request: Request[Any, Any, Any]) -> Any:
    try:
        return await request.json()
    except SerializationException as error:
        raise ApiError(f"The body is not JSON: {error}.") from error


# The query


def find_query_problems(request: Request[Any, Any, Any], handler: BaseRouteHandler) -> Iterator[FieldProblem]:
    if handler.opt.get(QUERY) is not None:
        return  # the route decodes it, and refuses what it does not take
    types = query_types(handler)
    for name, value in request.query_params.multi_items():
        if name not in types:
            yield unknown_name(name, types, "a query parameter")
        else:
            yield from find_value_problems(value, types[name], name)


class QueryField(msgspec.Struct, frozen=True):
    """A query parameter of a route."""

    type: Any
    required: bool = False
    default: Any = None


def query_types(handler: BaseRouteHandler) -> dict[str, Any]:
    """The type of each query parameter."""
    return {name: field.type for name, field in list_query_fields(handler).items()}


def list_query_fields(handler: BaseRouteHandler) -> dict[str, QueryField]:
    if QUERY in handler.opt:
        struct = handler.opt[QUERY]
        found = {} if struct is None else {f.encode_name: f for f in msgspec.structs.fields(struct)}
        fields = {name: describe_field(field) for name, field in found.items()}
        return {**fields, **dict.fromkeys(handler.opt[EXTRA], QueryField(str | None))}
    parameters = handler.parsed_fn_signature.parameters
    return {
        parameter.kwarg_definition.query or name: QueryField(
            parameter.annotation,
            not parameter.has_default,
            parameter.default if parameter.has_default else None,
        )
        for name, parameter in parameters.items()
        if isinstance(parameter.kwarg_definition, QueryParameter)
    }


def describe_field(field: msgspec.structs.FieldInfo) -> QueryField:
    has_default = field.default is not msgspec.NODEFAULT
    return QueryField(field.type, field.required, field.default if has_default else None)


# The body


def find_body_type(handler: BaseRouteHandler) -> Any:
    """The type of the JSON body; None if the route reads no body, or reads it by itself."""
    data = handler.parsed_fn_signature.parameters.get("data")
    return data.annotation if data is not None and isinstance(data.kwarg_definition, BodyKwarg) else None
