"""What the server says of itself: errors that HTTP clients understand, a document that is true, a page."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from proctor.api.rows import RolloutRow
from proctor.engine.seat import RunContext
from proctor.env.rubric import Rubric
from proctor.env.tool_env import ToolEnv
from proctor.models.scripted import Scripted, Step
from proctor.server import openapi
from proctor.server.openapi.codes import ERROR_CODES
from proctor.server.openapi.page import render_page
from proctor.store.rows import build_row, encode_row
from tests.env.playing import played
from tests.server.datasets.pushing import ROWS, push_rows
from tests.server.db.filling import REGISTRY, Filled, fill
from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served, serving, settings_in

SERVER = Path(openapi.__file__).parents[1]


class Home(ast.NodeVisitor):
    """Collects the codes of errors in a module."""

    def __init__(self) -> None:
        self.codes: set[str] = set()

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "id", "")
        words = [word.value for word in node.keywords if word.arg == "code" and name.endswith("Error")]
        self.codes |= {str(word.value) for word in words if isinstance(word, ast.Constant)}
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in node.body:
            if isinstance(each, ast.Assign) and node.name.endswith("Error"):
                texts = [part.value for part in ast.walk(each) if isinstance(part, ast.Constant)]
                self.codes |= {text for text in texts if isinstance(text, str)}
        self.generic_visit(node)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "endpoints.toml").write_text(REGISTRY)
    with serving(settings_in(folder, endpoints=folder / "endpoints.toml")) as server:
        yield server


@pytest.fixture(scope="module")
def filled(lab: Served, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    filled = fill(lab.root, tmp_path_factory.mktemp("package"))
    pushed = push_rows(Api(lab.url, filled.token), "ada", "sums", ROWS, visibility="public")
    assert pushed.status == 201
    return filled


@pytest.fixture(scope="module")
def document(lab: Served) -> Any:
    return lab.nobody.get("/schema/openapi.json")


def operations(document: Any) -> dict[str, Any]:
    return {
        operation["operationId"]: operation
        for methods in document["paths"].values()
        for operation in methods.values()
    }


# Errors


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/runs/run-0", None, 404, "not_found"),
        ("POST", "/runs", {}, 422, "invalid"),
        ("POST", "/runs", "{", 400, "bad_request"),
        ("PUT", "/whoami", None, 405, "method_not_allowed"),
        ("GET", "/nowhere", None, 404, "not_found"),
        ("POST", "/teams", {"name": "x" * 2**21}, 413, "too_large"),
        ("GET", "/simple/nobody/nothing/", None, 404, "not_found"),
    ],
)
def test_an_error_is_a_problem_as_any_http_client_knows_it(
    lab: Served, method: str, path: str, body: Any, status: int, code: str
) -> None:
    raw = body.encode() if isinstance(body, str) else None
    answer = lab.root(method, path, None if raw else body, data=raw)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    told = answer.body
    assert (told["status"], told["code"]) == (status, code)
    assert told["detail"] == told["message"] != ""
    assert told["title"] == code.replace("_", " ").capitalize()
    assert "details" in told


def test_the_type_of_an_error_leads_to_its_explanation(lab: Served) -> None:
    kind = lab.root("GET", "/runs/run-0").body["type"]
    path, _, anchor = kind.partition("#")
    assert f'id="{anchor}"' in lab.nobody("GET", path).body


def test_every_code_of_an_error_is_explained() -> None:
    home = Home()
    for path in SERVER.rglob("*.py"):
        home.visit(ast.parse(path.read_text(encoding="utf-8")))
    assert len(home.codes) > 40
    assert home.codes - ERROR_CODES.keys() == set(), "explain them in server/openapi/codes.py"


# The document


def test_every_operation_declares_its_errors_and_who_may_call_it(document: Any) -> None:
    every = [each for methods in document["paths"].values() for each in methods.values()]
    assert len(every) == len(operations(document)) > 90, "operations share a name"
    schemes = document["components"]["securitySchemes"]
    assert {"bearer", "basic", "apiKey", "cookie", "hostKey"} == schemes.keys()
    for each in every:
        assert each["security"], each["operationId"]
        assert {name for way in each["security"] for name in way} <= schemes.keys()
        assert {"401", "403", "404", "422", "500"} <= each["responses"].keys(), each["operationId"]
    for response in document["components"]["responses"].values():
        assert response["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }


def test_what_the_document_calls_open_is_open_and_nothing_else(
    lab: Served, filled: Filled, document: Any
) -> None:
    names = {"owner": "ada", "name": "sums", "version": "0.1.0", "run_id": filled.upload}
    names |= {"sha256": "latest"}
    for path, methods in document["paths"].items():
        if "get" in methods:
            address = re.sub(r"{(\w+)}", lambda match: names.get(match[1], "x"), path)
            status = lab.nobody("GET", address).status
            assert (status == 200) == ({} in methods["get"]["security"]), (path, status)


def test_every_schema_is_one_and_every_reference_leads_somewhere(document: Any) -> None:
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = re.findall(r'"#/components/(\w+)/([^"]+)"', json.dumps(document))
    for part, name in names:
        assert name in document["components"][part], name


def validator(document: Any, schema: Any) -> jsonschema.Draft202012Validator:
    resource: Any = DRAFT202012.create_resource(document)
    registry: Any = Registry().with_resource("urn:document", resource)
    absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:document#/'))
    return jsonschema.Draft202012Validator(absolute, registry=registry)


def test_answers_are_as_the_document_says(lab: Served, filled: Filled, document: Any) -> None:
    ada = Api(lab.url, filled.token)
    names = {"owner": "ada", "name": "sums", "version": "0.1.0", "team": "robots", "run_id": filled.hosted}
    names |= {"sha256": "latest"}
    seen = 0
    for path, methods in document["paths"].items():
        address = re.sub(r"{(\w+)}", lambda match: names.get(match[1], "x"), path)
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" not in content:
            continue
        answer = ada("GET", address)
        shown = answer.status == 200
        problem = document["components"]["schemas"]["Problem"]
        schema = content["application/json"]["schema"] if shown else problem
        validator(document, schema).validate(answer.body)
        assert str(answer.status) in methods["get"]["responses"], (path, answer.status)
        seen += shown
    assert seen > 15


def test_streams_files_and_uploads_are_described(document: Any) -> None:
    every = operations(document)
    stream = every["stream_events"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert stream["contentSchema"] == {"$ref": "#/components/schemas/RunEvent"}
    lines = every["export_rows"]["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
    assert lines["contentSchema"] == {"$ref": "#/components/schemas/RolloutRow"}
    assert "application/gzip" in every["read_source"]["responses"]["200"]["content"]
    form = every["push"]["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert form["form"] == {"$ref": "#/components/schemas/PushForm"}
    assert "204" in every["claim_run"]["responses"]
    limit = next(each for each in every["list_runs"]["parameters"] if each["name"] == "limit")
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"]) == (1, 1000)
    assert "Idempotency-Key" in [each["name"] for each in every["add_run"]["parameters"]]


def test_requests_have_no_other_fields_and_answers_have_all_of_theirs(document: Any) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["NewRun"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["ClaimRequest"]
    assert "next_cursor" in schemas["RunPage"]["required"]
    assert schemas["RunEvent"]["required"] == ["seq", "at", "kind"]
    assert "owner/name@version" in schemas["NewRun"]["properties"]["environment"]["description"]


def test_rows_are_as_the_document_says(document: Any) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    calls: list[Any] = [Step(tool_calls=[{"name": "add", "arguments": {"a": 1, "b": 2}}]), "3"]
    env = ToolEnv([{"question": "?", "answer": "3"}], tools=[add], rubric=Rubric(lambda completion: 1.0))
    [rollout] = played(env, RunContext(Scripted(calls)))
    broken = ToolEnv([{"question": "?", "answer": "3"}], tools=[add])
    [failed] = played(broken, RunContext(Scripted([Step(error="overloaded")])))
    check = validator(document, {"$ref": "#/components/schemas/RolloutRow"})
    for each in (rollout, failed):
        check.validate(json.loads(encode_row(each)))
        assert build_row(each).keys() <= set(RolloutRow.__struct_fields__)
    rows = operations(document)["list_rows"]["responses"]["200"]["content"]["application/json"]
    assert rows["schema"] == {"$ref": "#/components/schemas/Page_RolloutRow_"}


# The page


class Anchors(HTMLParser):
    """Where the links of a page lead, and what it has."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name == "href":
                self.links.add(str(value))


def test_the_page_shows_every_operation_type_and_code_and_its_links_lead_there(
    lab: Served, document: Any
) -> None:
    page = Anchors()
    page.feed(lab.nobody("GET", "/schema").body)
    assert len(page.ids) == len(set(page.ids))
    assert operations(document).keys() <= set(page.ids)
    assert ERROR_CODES.keys() <= set(page.ids)
    assert {f"type-{name}" for name in document["components"]["schemas"]} <= set(page.ids)
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    assert page.links - {f"#{link}" for link in inside} == {"schema/openapi.json"}


def test_nothing_in_the_document_becomes_a_tag(document: Any) -> None:
    changed = json.loads(json.dumps(document).replace("Whether the server runs", "<script>alert(1)</script>"))
    page = render_page(changed, {})
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_push_that_is_refused_is_a_problem_as_well(lab: Served, filled: Filled, tmp_path: Path) -> None:
    answer = push(Api(lab.url, filled.token), made(tmp_path, "sums", module="x = 1\n"))
    assert (answer.status, answer.code) == (409, "version_exists")
    assert answer.headers["content-type"] == "application/problem+json"
