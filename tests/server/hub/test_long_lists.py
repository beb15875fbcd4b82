"""What one user pushes, others look through: no question takes longer than its answer is worth."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.server.hub import pushing, records
from tests.server.hub.packages import made, push
from tests.server.serving import Served


def test_a_text_to_search_for_is_no_longer_than_anybody_types(served: Served) -> None:
    assert served.nobody("GET", f"/environments?search={'a' * 100}").status == 200
    refused = served.nobody("GET", f"/environments?search={'a' * 101}")
    assert refused.status == 422
    assert "search" in refused.body["message"]


def test_a_mistyped_version_is_compared_with_the_newest_only() -> None:
    known: list[Any] = [
        SimpleNamespace(version=f"1.0+{'a' * 60}.{number}.{'b' * 50}") for number in range(5_000)
    ]
    begun = time.process_time()
    said = records.describe_missing(
        SimpleNamespace(owner="ada", name="greet"),  # type: ignore[arg-type]
        f"1.0+{'a' * 59}.x{'b' * 50}",
        known,
    )
    assert time.process_time() - begun < 2.0
    assert "did you mean" in said


def test_an_environment_has_so_many_versions_and_no_more(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "MOST_VERSIONS", 2)
    ada = served.user("ada")
    packages = [made(tmp_path / str(number), version=f"0.{number}.0") for number in range(3)]
    assert [push(ada, each).status for each in packages] == [201, 201, 409]
    assert push(ada, packages[0]).status == 201  # it is there already
    assert push(ada, packages[2]).code == "too_many_versions"

    ada.ok("DELETE", "/environments/ada/greet/versions/0.0.0")
    assert push(ada, packages[2]).status == 201
