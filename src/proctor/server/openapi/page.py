"""The API for people: one page made of the OpenAPI document, without scripts or anything from elsewhere.

Knows nothing of the server; it shows what the document says.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'none'"
)
"""Nothing is loaded and nothing runs: the style is the only thing that the page consists of besides text."""
DOCUMENT = "schema/openapi.json"
Document = Mapping[str, Any]


def render_page(document: Document, codes: Mapping[str, str]) -> str:
    tags = [(tag["name"], tag["description"]) for tag in document["tags"]]
    operations = list_by_tag(document)
    shown = [(name, text) for name, text in tags if operations.get(name)]
    sections = [render_tag(name, text, operations[name]) for name, text in shown]
    info = document["info"]
    title = f"{escape(info['title'])} API"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
{render_navigation([name for name, _ in shown])}
<main>
<h1>{title} <span class="soft">{escape(info["version"])}</span></h1>
<p>{render_text(info["description"])} The same for programs: <a href="{DOCUMENT}">openapi.json</a>.</p>
{render_security(document)}
{"".join(sections)}
{render_errors(document, codes)}
{render_types(document)}
</main>
</body>
</html>
"""


def list_by_tag(document: Document) -> dict[str, list[tuple[str, str, Document]]]:
    found: dict[str, list[tuple[str, str, Document]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return found


def render_navigation(names: Sequence[str]) -> str:
    others = [("authentication", "Authentication"), ("errors", "Errors"), ("types", "Types")]
    links = [others[0], *((name, name.capitalize()) for name in names), *others[1:]]
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(text)}</a></li>' for anchor, text in links)
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def render_security(document: Document) -> str:
    rows = [
        (code(name), describe_scheme(scheme), render_text(scheme["description"]))
        for name, scheme in document["components"]["securitySchemes"].items()
    ]
    return f'<h2 id="authentication">Authentication</h2>{table(("scheme", "header", ""), rows)}'


def describe_scheme(scheme: Document) -> str:
    if scheme["type"] == "apiKey":
        return code(f"{scheme['name']}: …")
    return code(f"Authorization: {scheme['scheme'].capitalize()} …")


def render_tag(name: str, text: str, operations: Sequence[tuple[str, str, Document]]) -> str:
    shown = "".join(render_operation(*each) for each in operations)
    return f'<h2 id="{escape(name)}">{escape(name.capitalize())}</h2><p>{render_text(text)}</p>{shown}'


def render_operation(method: str, path: str, operation: Document) -> str:
    summary = f'<span class="soft">{render_text(operation["summary"])}</span>'
    parts = [
        f'<summary><span class="method">{method}</span><code>{escape(path)}</code>{summary}</summary>',
        '<div class="inner">',
        f'<p class="soft">{describe_security(operation["security"])}</p>',
        render_parameters(operation["parameters"]),
        render_body(operation.get("requestBody")),
        render_responses(operation["responses"]),
        "</div>",
    ]
    return f'<details id="{escape(operation["operationId"])}">{"".join(parts)}</details>'


def describe_security(security: Sequence[Document]) -> str:
    needed = [" and ".join(code(name) for name in each) for each in security if each]
    words = " or ".join(needed)
    return f"Without a token, or with {words}." if {} in security else f"With {words}."


def render_parameters(parameters: Sequence[Document]) -> str:
    rows = [
        (code(each["name"]), each["in"], describe_schema(each["schema"]), describe_parameter(each))
        for each in parameters
    ]
    return f"<h4>Parameters</h4>{table(('name', 'in', 'type', ''), rows)}" if rows else ""


def describe_parameter(parameter: Document) -> str:
    words = [render_text(parameter.get("description", ""))]
    if parameter["required"]:
        words.append("required")
    if "default" in parameter["schema"]:
        words.append(f"default {code(show_value(parameter['schema']['default']))}")
    return "; ".join(filter(None, words))


def render_body(body: Document | None) -> str:
    if body is None:
        return ""
    shown = ", ".join(
        f"{code(kind)}: {describe_schema(content['schema'])}" for kind, content in body["content"].items()
    )
    return f"<h4>Body</h4><p>{shown}</p>"


def render_responses(responses: Mapping[str, Document]) -> str:
    rows: list[tuple[str, str, str]] = []
    errors: list[str] = []
    for status, response in responses.items():
        if "$ref" in response:
            errors.append(f'<a href="#status-{status}">{status}</a>')
            continue
        content = response.get("content", {})
        kinds = [f"{code(kind)} {describe_schema(each['schema'])}" for kind, each in content.items()]
        rows.append((status, escape(response["description"]), ", ".join(kinds)))
    shown = table(("status", "", "content"), rows)
    return f'<h4>Answers</h4>{shown}<p class="soft">Errors: {", ".join(errors)}</p>'


def render_errors(document: Document, codes: Mapping[str, str]) -> str:
    statuses = document["components"]["responses"].items()
    rows = [
        (f'<span id="status-{status}">{status}</span>', escape(response["description"]))
        for status, response in statuses
    ]
    meanings = [
        (f'<code id="{escape(name)}">{escape(name)}</code>', render_text(text))
        for name, text in codes.items()
    ]
    return (
        f'<h2 id="errors">Errors</h2><p>Every answer of status 400 and above is a {link("Problem")}, as '
        f"<code>application/problem+json</code>. Its <code>code</code> is for programs, its "
        f"<code>message</code> for people.</p>{table(('status', ''), rows)}<h3>Codes</h3>"
        f"{table(('code', 'meaning'), meanings)}"
    )


def render_types(document: Document) -> str:
    shown = "".join(render_type(name, schema) for name, schema in document["components"]["schemas"].items())
    return f'<h2 id="types">Types</h2>{shown}'


def render_type(name: str, schema: Document) -> str:
    required = schema.get("required", ())
    rows = [
        (
            code(field) + ("" if field in required else ' <span class="soft">optional</span>'),
            describe_schema(each),
            render_text(each.get("description", "")),
        )
        for field, each in schema.get("properties", {}).items()
    ]
    text = f"<p>{render_text(schema['description'])}</p>" if schema.get("description") else ""
    fields = table(("field", "type", ""), rows) if rows else f"<p>{describe_schema(schema)}</p>"
    return f'<article id="type-{escape(name)}"><h3>{escape(show_name(name))}</h3>{text}{fields}</article>'


# Schemas in words


def describe_schema(schema: Document) -> str:
    """A type as one reads it aloud: `list of RunInfo`, `integer or null`."""
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(describe_schema(each) for each in schema[union])
    if "enum" in schema:
        return " | ".join(code(show_value(value)) for value in schema["enum"])
    if "contentSchema" in schema:
        return f"items: {describe_schema(schema['contentSchema'])}"
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return f"list of {describe_schema(items)}" if items else "list"
    if kind == "object":
        return describe_object(schema)
    if schema.get("format") == "binary":
        return "a file"
    return escape(str(kind or "any value")) + describe_bounds(schema)


def describe_object(schema: Document) -> str:
    if "properties" in schema:
        parts = (f"{code(name)} {describe_schema(each)}" for name, each in schema["properties"].items())
        return "parts " + ", ".join(parts)
    values = schema.get("additionalProperties")
    return f"object of {describe_schema(values)}" if isinstance(values, Mapping) and values else "object"


def describe_bounds(schema: Document) -> str:
    if "maxLength" in schema:
        return f", up to {schema['maxLength']:,} characters"
    if "minimum" in schema and "maximum" in schema:
        return f" from {schema['minimum']:,} to {schema['maximum']:,}"
    return ""


def link(name: str) -> str:
    return f'<a href="#type-{escape(name)}">{escape(show_name(name))}</a>'


def show_name(name: str) -> str:
    """`Page_RunInfo_` as people write it."""
    return re.sub(r"_(.*)_$", r"[\1]", name)


def show_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


# HTML


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def render_text(text: str) -> str:
    """One of our sentences: text in backquotes is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text or "", quote=False))
