"""The dashboard's types are those of the API that this tree serves."""

from __future__ import annotations

from pathlib import Path

from tests.web.api_types import build_types_document, hash_document

SCHEMA = Path(__file__).parents[2] / "web" / "src" / "api" / "schema.d.ts"


def test_the_types_of_the_dashboard_are_generated_from_the_api_as_it_is_now() -> None:
    first_line = SCHEMA.read_text(encoding="utf-8").partition("\n")[0]

    assert hash_document(build_types_document()) in first_line, (
        "The API has changed: run `make web-types` and commit web/src/api/schema.d.ts."
    )
