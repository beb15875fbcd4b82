"""The OpenAPI document that the dashboard's TypeScript types are generated from.

`make web-types` writes it to `web/.openapi.json` with `python -m tests.web.api_types`; no server has to run.
Prose is left out, so that a reworded description changes no type.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.common import BASE
from proctor.api.comparisons import CompareQuery, ComparisonPage
from proctor.api.feed import FeedEvent
from proctor.api.log import LogPage, LogQuery
from proctor.api.rollout_list import (
    Distribution,
    DistributionQuery,
    FailureGroup,
    RolloutPage,
    RolloutQuery,
    TaskPage,
    TaskQuery,
)
from proctor.api.rollout_view import EventQuery, EventWindow, RolloutDiff, RolloutView, SearchHit
from proctor.api.run_list import RunFacets, RunListQuery, RunPage, SuiteInfo
from proctor.report import Summary
from proctor.server.app import create_app
from proctor.server.openapi.document import build_document
from proctor.server.openapi.schemas import Schema, Schemas, list_structs
from proctor.server.platform import Platform
from proctor.server.settings import Settings
from proctor.trace import FileChange

PROSE = ("description", "summary")


class DiffQuery(msgspec.Struct):
    a: str
    b: str


ROLLOUT = "/runs/{run_id}/rollouts/{key}/{number}"
ANNOUNCED: dict[str, tuple[Any, Any]] = {
    "/runs": (RunListQuery, RunPage),
    "/runs/facets": (RunListQuery, RunFacets),
    "/runs/{run_id}/summary": (None, Summary),
    "/runs/{run_id}/rollouts": (RolloutQuery, RolloutPage),
    "/runs/{run_id}/tasks": (TaskQuery, TaskPage),
    "/runs/{run_id}/distribution": (DistributionQuery, Distribution),
    "/runs/{run_id}/failures": (None, list[FailureGroup]),
    "/runs/{run_id}/log": (LogQuery, LogPage),
    ROLLOUT: (None, RolloutView),
    f"{ROLLOUT}/events": (EventQuery, EventWindow),
    f"{ROLLOUT}/files/{{index}}": (None, FileChange),
    "/diff": (DiffQuery, RolloutDiff),
    "/compare": (CompareQuery, ComparisonPage),
    "/suites": (None, list[SuiteInfo]),
    "/suites/{suite_id}": (None, SuiteInfo),
}
"""Routes of the contract that the server does not have yet, with their query and their answer."""
STREAMED = (FeedEvent, SearchHit)


def build_types_document() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        document = build_document(create_app(Platform(Settings(data=Path(folder)))))
    announce(document)
    document["info"] = {"title": "Proctor", "version": "1"}
    del document["tags"]
    return json.dumps(strip_prose(document), sort_keys=True, default=str).encode()


def announce(document: Schema) -> None:
    kinds = [kind for pair in ANNOUNCED.values() for kind in pair if kind is not None] + [*STREAMED]
    schemas = Schemas(kinds)
    structs = list_structs(kinds)
    queries = {query.__name__ for query, _ in ANNOUNCED.values() if query is not None}
    schemas.require_all_fields(schemas.components.keys() - queries, structs)
    document["components"]["schemas"] = {**schemas.components, **document["components"]["schemas"]}
    for path, (query, answer) in ANNOUNCED.items():
        if path != "/runs" and BASE + path in document["paths"]:
            continue
        names = re.findall(r"{(\w+)}", path)
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
        if query is not None:
            component = schemas.components[query.__name__]
            parameters += [
                {"name": name, "in": "query", "required": name in component["required"], "schema": schema}
                for name, schema in component["properties"].items()
            ]
        content = {"application/json": {"schema": schemas.of(answer)}}
        document["paths"].setdefault(BASE + path, {})["get"] = {
            "parameters": parameters,
            "responses": {"200": {"description": "", "content": content}},
        }


def strip_prose(node: Any) -> Any:
    """Without descriptions; a property that is itself called `description` stays: its value is a schema."""
    if isinstance(node, list):
        return [strip_prose(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: strip_prose(value)
        for key, value in node.items()
        if not (key in PROSE and isinstance(value, str))
    }


def hash_document(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(build_types_document())
