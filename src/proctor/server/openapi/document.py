"""The OpenAPI document of an application: every route with its types, its statuses, and who may call it.

Built from the routes themselves, so that it says what the server does. Knows nothing of how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from http import HTTPStatus
from operator import or_
from typing import Any, get_args

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.response import File, Response, Stream
from litestar.routes import HTTPRoute

from proctor import __version__
from proctor.api.common import BASE, HOST_KEY_HEADER, IDEMPOTENCY_HEADER, PROBLEM_TYPE, Problem
from proctor.api.field_problems import list_alternatives
from proctor.api.rows import RolloutRow
from proctor.server.openapi.described import BINARY, KEY, Description
from proctor.server.openapi.schemas import Schema, Schemas, list_structs, read_field_texts
from proctor.server.paging import MOST_ITEMS
from proctor.server.request_fields import LENIENT, QUERY, find_body_type, list_query_fields, query_types

JSON = "application/json"
TEXT_STREAMS = ("text/event-stream", "application/x-ndjson")
CREATED = 201
ALWAYS = (401, 403, 404, 422, 429, 431, 500, 503)
WITH_BODY = (400, 409, 413)
PAID = ("/runs", "/runs/batch", "/runs/{run_id}/resume")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
TAGS = {
    "server": "The server itself.",
    "people": "Users, teams and tokens.",
    "hub": "Environments: push, find, read, share.",
    "datasets": "Datasets: push, find, read.",
    "runs": "Hosted runs: start, follow, read, stop.",
    "sources": "Git repositories, and runs of their recipes.",
    "secrets": "Secrets and variables of environments. Values go in and never come out.",
    "inference": "Models. They are called below `/v1`, with the requests and errors of their providers.",
    "ledger": "Balances, prices, and what was used.",
    "admin": "For admins: the audit log, hosts, the queue, storage.",
    "sandboxes": "Sandboxes and instances, for runs that were granted them.",
    "sessions": "Environments that the server runs for one rollout each.",
    "playing": "For hosts, for the processes of runs, and for uploads of runs that were played elsewhere.",
}
SECURITY_SCHEMES: dict[str, Schema] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token: `proctor token create`."},
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "A token, where a client can only set this header.",
    },
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "A token as the password, with any user name, as pip and uv send it.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "proctor-…",
        "description": "The session of a browser, as `POST /session` sets it; what it changes, it may only "
        "change from the server's own pages.",
    },
    "hostKey": {
        "type": "apiKey",
        "in": "header",
        "name": HOST_KEY_HEADER,
        "description": "The key of a host, which its token is bound to.",
    },
}
ANY_TOKEN: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}, {"basic": []}, {"cookie": []}]
INTRODUCTION = (
    "Everything the command line does on a server, over HTTP. Times are seconds since 1970, money is in "
    "dollars. Lists come in pages: request the next one with `cursor`. Errors are problem details (RFC 9457)."
)


class Operation(msgspec.Struct, frozen=True):
    """One method of one path."""

    path: str
    method: str
    handler: HTTPRouteHandler
    path_names: tuple[str, ...]

    @property
    def described(self) -> Description:
        found: Description = self.handler.opt.get(KEY) or Description()
        return found

    @property
    def tag(self) -> str:
        return next(iter(self.handler.resolve_tags()), "server")

    @property
    def status(self) -> int:
        return self.handler.status_code

    @property
    def body(self) -> Any:
        return self.described.body or find_body_type(self.handler)

    @property
    def query(self) -> type[msgspec.Struct] | None:
        """The struct of its query parameters, if it has one."""
        found: type[msgspec.Struct] | None = self.handler.opt.get(QUERY)
        return found

    @property
    def is_lenient(self) -> bool:
        return bool(self.handler.opt.keys() & LENIENT.keys())

    @property
    def response(self) -> Any:
        """The type of its answer; None if it has no content, or no type."""
        if self.described.is_file:
            return None
        if self.described.response is not None:
            return self.described.response
        kind = self.handler.parsed_fn_signature.return_type
        if kind.is_subclass_of((File, Stream)) or kind.annotation is None or kind.is_subclass_of(type(None)):
            return None
        if kind.is_subclass_of(Response):
            given = [
                each for each in list_alternatives(get_args(kind.annotation)[0]) if each is not type(None)
            ]
            return given[0] if given else None
        return kind.annotation

    @property
    def media_type(self) -> str:
        given = self.handler.media_type
        if given:
            return str(getattr(given, "value", given))
        return JSON


def build_document(app: Litestar) -> Schema:
    operations = sorted(
        list_operations(app), key=lambda each: (list(TAGS).index(each.tag), METHODS.index(each.method))
    )
    queries = [strip_null(kind) for each in operations for kind in query_types(each.handler).values()]
    bodies = [each.body for each in operations if each.body not in (None, bytes)]
    answers = [each.response for each in operations if each.response is not None]
    kinds = list({repr(kind): kind for kind in [*queries, *bodies, *answers, Problem, RolloutRow]}.values())
    schemas = Schemas(kinds)
    mark_fields(schemas, operations, kinds)
    paths: dict[str, Schema] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = build_operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Proctor", "version": __version__, "description": INTRODUCTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {str(status): build_error(status, schemas) for status in list_error_statuses()},
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def list_operations(app: Litestar) -> Iterator[Operation]:
    for route in app.routes:
        if not isinstance(route, HTTPRoute):
            continue
        for handler in route.route_handlers:
            if handler.resolve_include_in_schema() and route.path_format.startswith(BASE):
                methods = sorted(handler.http_methods - {"OPTIONS"})
                names = tuple(route.path_parameters)
                yield from (Operation(route.path_format, method, handler, names) for method in methods)


def mark_fields(schemas: Schemas, operations: Sequence[Operation], kinds: Sequence[Any]) -> None:
    """Answers have all their fields, and strict requests no others."""
    strict = [
        schemas.of(each.body) for each in operations if each.body not in (None, bytes) and not each.is_lenient
    ]
    lenient = [
        schemas.of(each.body) for each in operations if each.body not in (None, bytes) and each.is_lenient
    ]
    answers = [schemas.of(each.response) for each in operations if each.response is not None]
    sent, returned = (
        schemas.reachable([*strict, *lenient]),
        schemas.reachable([*answers, schemas.of(Problem)]),
    )
    schemas.require_all_fields(returned - sent, list_structs(kinds))
    schemas.forbid_others(schemas.reachable(strict) - schemas.reachable(lenient) - returned)


def build_operation(each: Operation, schemas: Schemas) -> Schema:
    found: Schema = {
        "tags": [each.tag],
        "summary": each.handler.summary,
        "operationId": each.handler.operation_id or each.handler.handler_name,
        "security": build_security(each),
        "parameters": build_parameters(each, schemas),
        "responses": build_responses(each, schemas),
    }
    if each.body is not None:
        found["requestBody"] = {"required": True, "content": build_body(each, schemas)}
    return found


def build_security(each: Operation) -> list[dict[str, list[str]]]:
    if each.path.startswith(f"{BASE}/hosts/"):
        return [{"bearer": [], "hostKey": []}]
    return [{}, *ANY_TOKEN] if each.described.is_open else ANY_TOKEN


def build_parameters(each: Operation, schemas: Schemas) -> list[Schema]:
    found: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in each.path_names
    ]
    texts = {} if each.query is None else read_field_texts(each.query)
    for name, field in list_query_fields(each.handler).items():
        schema = dict(schemas.of(strip_null(field.type)))
        if field.default is not None:
            schema["default"] = field.default
        if name == "limit" and each.query is None:
            schema |= {"minimum": 1, "maximum": MOST_ITEMS}
        parameter = {"name": name, "in": "query", "required": field.required, "schema": schema}
        found.append({**parameter, **({"description": texts[name]} if name in texts else {})})
    if each.method == "POST" and each.status == CREATED:
        found.append(
            {
                "name": IDEMPOTENCY_HEADER,
                "in": "header",
                "required": False,
                "description": "The same request with the same key is executed once.",
                "schema": {"type": "string", "maxLength": 200},
            }
        )
    return found


def strip_null(kind: Any) -> Any:
    """The type of a parameter that may be omitted: a query has no null."""
    alternatives = list_alternatives(kind)
    if type(None) not in alternatives:
        return kind
    return reduce(or_, [each for each in alternatives if each is not type(None)])


def build_body(each: Operation, schemas: Schemas) -> Schema:
    if each.body is bytes:
        return {BINARY: {"schema": {"type": "string", "format": "binary"}}}
    schema = schemas.of(each.body)
    if each.described.body_type == JSON:
        return {JSON: {"schema": schema}}
    file = {"type": "string", "format": "binary"}
    parts = {"form": schema, "wheel": file, "source": file}
    form = {"type": "object", "properties": parts, "required": list(parts)}
    return {each.described.body_type: {"schema": form, "encoding": {"form": {"contentType": JSON}}}}


def build_responses(each: Operation, schemas: Schemas) -> Schema:
    found: Schema = {str(each.status): build_success(each, schemas)}
    if each.described.nothing:
        found["204"] = {"description": "There is none."}
    for status in error_statuses(each):
        found[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return dict(sorted(found.items()))


def build_success(each: Operation, schemas: Schemas) -> Schema:
    answer: Schema = {"description": HTTPStatus(each.status).phrase}
    if each.status == HTTPStatus.NO_CONTENT:
        return answer
    schema = {} if each.response is None else schemas.of(each.response)
    if each.media_type in TEXT_STREAMS:
        schema = {"type": "string", "contentMediaType": JSON, "contentSchema": schema}
        answer["description"] = "Items as they come, each as JSON."
    elif each.response is None:
        schema = {"type": "string", "format": "binary"}
    return {**answer, "content": {each.media_type: {"schema": schema}}}


# Errors


def error_statuses(each: Operation) -> list[int]:
    found = [*ALWAYS]
    if each.method != "GET":
        found += WITH_BODY
    if each.path.removeprefix(BASE) in PAID and each.method == "POST":
        found.append(402)
    if each.tag in ("hub", "sandboxes", "sessions"):
        found += [409, 502]
    return sorted(set(found))


def list_error_statuses() -> list[int]:
    return sorted({*ALWAYS, *WITH_BODY, 402, 502})


def build_error(status: int, schemas: Schemas) -> Schema:
    answer: Schema = {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_TYPE: {"schema": schemas.of(Problem)}},
    }
    if status == HTTPStatus.UNAUTHORIZED:
        answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answer
