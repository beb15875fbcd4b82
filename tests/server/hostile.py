"""Requests made of an OpenAPI document, each with one value that no honest client would send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

SECONDS = 60.0
RAW = "\ue000"
"""Stands in a body where raw JSON goes that Python's encoder would not write."""

TEXTS = (
    "",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\u202e",
    "\x1b]0;x\x07",
    "x" * 20_000,
    "9" * 5_000,
    "1." * 3_000 + "0",
    "1!" + "9" * 5_000,
    "-1",
    "1e400",
    "NaN",
    "null",
    "../../../etc/passwd",
    "%00",
    "%ff%fe",
    "' OR 1=1 --",
    "[",
    "@" * 50,
    "ada/sums@" + "9" * 5_000,
    "W10",
    "W251bGwsIG51bGxd",
)
RAW_VALUES = (
    "1" + "0" * 5_000,
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "2147483648",
    "1e308",
    "-1e308",
    "1e-400",
    "NaN",
    "-1",
    "0",
    "0.5",
    "true",
    "null",
    "[]",
    "{}",
    '[""]',
    "[null]",
    '[{"a": 1}]',
    '{"": ""}',
    '{"a": {"b": [1e308, "\\u0000", "\\ud800"]}}',
    '{"\\u0000": 1}',
    '{"\\ud800": 1}',
    '{"a": 9223372036854775808}',
    "[" * 400 + "]" * 400,
    '{"a":' * 400 + "1" + "}" * 400,
    "[" * 20_000 + "]" * 20_000,
)


class Call(NamedTuple):
    """One request, and what is hostile about it."""

    method: str
    path: str
    body: bytes | None
    why: str
    operation: str = ""
    """Its name in the document; none where another path might be another operation."""


class Connection:
    """One connection that is used again and again; opened anew where the server has closed it."""

    def __init__(self, url: str, token: str) -> None:
        self._where = urlsplit(url).netloc
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._open: http.client.HTTPConnection | None = None

    def status(self, call: Call, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        for _ in range(2):
            if self._open is None:
                self._open = http.client.HTTPConnection(self._where, timeout=SECONDS)
            try:
                self._open.request(call.method, call.path, call.body, {**self._headers, **(headers or {})})
                answer = self._open.getresponse()
                if answer.headers.get_content_type() == "text/event-stream":  # goes on for as long as a run
                    self.close()
                    return answer.status, b""
                return answer.status, answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
        raise AssertionError(f"nobody answers {call.method} {call.path[:200]}: {call.why}")

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def calls(document: Mapping[str, Any], names: Mapping[str, str], bodies: Mapping[str, Any]) -> Iterator[Call]:
    """Every operation, with each of its values in turn replaced by each hostile one.

    `names` are honest values of parameters in paths; `bodies` honest ones that say more than a sample could.
    """
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            schema = schema_of(operation)
            body = bodies.get(f"{method.upper()} {path}")
            if body is None and schema is not None:
                body = sample(schema, document)
            yield from of_operation(method.upper(), path, operation, names, body)


def of_operation(
    method: str, path: str, operation: Mapping[str, Any], names: Mapping[str, str], body: Any
) -> Iterator[Call]:
    given = [each for each in operation["parameters"] if each["in"] != "header"]
    honest = filled(path, {each["name"]: names.get(each["name"], "x-0") for each in given})
    encoded = None if body is None else json.dumps(body).encode()
    needed = {each["name"]: "1" for each in given if each["in"] == "query" and each.get("required")}
    for parameter in given:
        for text in TEXTS:
            why = f"{parameter['name']} = {text[:40]!r}"
            if parameter["in"] == "path":
                target = filled(path, {**names, parameter["name"]: text}) + query(needed)
                yield Call(method, target, encoded, why)
            else:
                target = honest + query({**needed, parameter["name"]: text})
                yield Call(method, target, encoded, why, operation["operationId"])
    if method in ("GET", "DELETE"):
        return
    target = honest + query(needed)
    for place, changed in replaced(body):
        yield Call(method, target, changed, place, operation["operationId"])


def replaced(body: Any) -> Iterator[tuple[str, bytes]]:
    """The body with one part at a time replaced by each hostile value, the whole of it among them."""
    for place in places_in(body):
        for raw in (*RAW_VALUES, *(json.dumps(text) for text in TEXTS)):
            marked = json.dumps(with_mark(body, place))
            yield f"body{list(place)} = {raw[:40]}", marked.replace(json.dumps(RAW), raw).encode()


def places_in(body: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield before
    if isinstance(body, dict):
        for name in body:
            yield from places_in(body[name], (*before, name))
    elif isinstance(body, list) and body:
        yield from places_in(body[0], (*before, 0))


def with_mark(body: Any, place: tuple[Any, ...]) -> Any:
    if not place:
        return RAW
    copy = dict(body) if isinstance(body, dict) else list(body)
    copy[place[0]] = with_mark(copy[place[0]], place[1:])
    return copy


def filled(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace("{" + name + "}", escaped(value))
    while "{" in path:  # parameters that the document does not list
        start, _, rest = path.partition("{")
        path = f"{start}x-0{rest.partition('}')[2]}"
    return path


def query(values: Mapping[str, str]) -> str:
    return "?" + "&".join(f"{name}={escaped(value)}" for name, value in values.items()) if values else ""


def escaped(text: str) -> str:
    return text if text.startswith("%") else quote(text.encode("utf-8", "surrogatepass"), safe="")


def schema_of(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


def sample(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """An honest value, with everything in it that may be there."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return sample(document["components"]["schemas"][name], document)
    if "anyOf" in schema:
        return sample(next(each for each in schema["anyOf"] if each.get("type") != "null"), document)
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = next((each for each in kind if each != "null"), None) if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        if "properties" not in schema:
            return {"a": "b"}
        return {name: sample(each, document) for name, each in schema["properties"].items()}
    if kind == "array":
        return [sample(schema.get("items", {}), document)]
    return {"string": "a", "integer": 1, "number": 1.0, "boolean": False}.get(str(kind))
