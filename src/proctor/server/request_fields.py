"""Compare a request with what its route takes: every unknown name and every wrong value, in one refusal.

A misspelt limit that is silently ignored would start an unlimited run. Routes whose `opt` has LENIENT ignore
names they do not know: hosts and the processes of runs may be newer than the server while it is upgraded.
Knows nothing of what is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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


async def check_fields(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A guard: refuse a request with names that the route does not have, or values it does not take."""
    if not isinstance(connection, Request) or handler.opt.keys() & LENIENT.keys():
        return
    problems = list(find_query_problems(connection, handler))
    body_type = find_body_type(handler)
    if body_type is not None and await connection.body():
        problems += find_body_problems(await read_json(connection), body_type)
    refuse(problems)


async def read_json(request: Request[Any, Any, Any]) -> Any:
    try:
        return await request.json()
    except SerializationException as error:
        raise ApiError(f"The body is not JSON: {error}.") from error


# The query


def find_query_problems(request: Request[Any, Any, Any], handler: BaseRouteHandler) -> Iterator[FieldProblem]:
    types = query_types(handler)
    for name, value in request.query_params.multi_items():
        if name not in types:
            yield unknown_name(name, types, "a query parameter")
        else:
            yield from find_value_problems(value, types[name], name)


def query_types(handler: BaseRouteHandler) -> dict[str, Any]:
    """The type of each query parameter."""
    parameters = handler.parsed_fn_signature.parameters
    return {
        parameter.kwarg_definition.query or name: parameter.annotation
        for name, parameter in parameters.items()
        if isinstance(parameter.kwarg_definition, QueryParameter)
    }


# The body


def find_body_type(handler: BaseRouteHandler) -> Any:
    """The type of the JSON body; None if the route reads no body, or reads it by itself."""
    data = handler.parsed_fn_signature.parameters.get("data")
    return data.annotation if data is not None and isinstance(data.kwarg_definition, BodyKwarg) else None
