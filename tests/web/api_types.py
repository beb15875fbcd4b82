"""The OpenAPI document that the dashboard's TypeScript types are generated from.

`make web-types` writes it to `web/.openapi.json` with `python -m tests.web.api_types`; no server has to run.
Prose is left out, so that a reworded description changes no type.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from proctor.server.app import create_app
from proctor.server.openapi.document import build_document
from proctor.server.platform import Platform
from proctor.server.settings import Settings

PROSE = ("description", "summary")


def build_types_document() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        document = build_document(create_app(Platform(Settings(data=Path(folder)))))
    document["info"] = {"title": "Proctor", "version": "1"}
    del document["tags"]
    return json.dumps(strip_prose(document), sort_keys=True, default=str).encode()


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
