"""A run's rollouts as a table to download: all of them, or those that match."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from proctor.api.refusals import InvalidError
from proctor.api.rollout_list import ExportQuery
from proctor.errors import ModelTimeoutError
from proctor.reading.exchange import Download, ReadRequest
from proctor.reading.export_handler import export_run
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from tests.reading.conftest import Play
from tests.reading.test_entries import VERIFIERS


@pytest.fixture(scope="module")
def played(play: Play, outputs: Path) -> Path:
    return play(outputs, {"say 2": ModelTimeoutError("no answer"), "say 3": "something else"})


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def export(base: Path, run_id: str, **query: Any) -> tuple[Download, bytes]:
    async def main() -> tuple[Download, bytes]:
        library = FolderLibrary(lambda: find_run_folders([base]))
        try:
            answer = await export_run(library, ReadRequest({"run_id": run_id}, ExportQuery(**query)))
            assert not isinstance(answer.body, bytes)
            return answer, b"".join([chunk async for chunk in answer.body])
        finally:
            library.close()

    return asyncio.run(main())


def read_csv(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_a_table_has_a_row_for_each_rollout_and_leaves_nothing_behind(
    played: Path, outputs: Path, temporary: Path
) -> None:
    answer, data = export(outputs, played.name, columns=["example_id", "rollout", "reward", "metric.repeats"])

    rows = read_csv(data)
    assert len(rows) == 8
    assert rows[0] == {"example_id": "0", "rollout": "0", "reward": "1.0", "metric.repeats": "1.0"}
    assert answer.headers["content-disposition"] == f'attachment; filename="{played.name}.csv"'
    assert int(answer.headers["content-length"]) == len(data)
    assert list(temporary.iterdir()) == []


def test_the_filters_and_the_order_of_the_list_hold_for_the_table(played: Path, outputs: Path) -> None:
    _, failed = export(outputs, played.name, outcome=["model_error"])
    _, sorted_rows = export(outputs, played.name, sort="reward", passed=True)

    assert [row["example_id"] for row in read_csv(failed)] == ["2", "2"]
    assert [row["reward"] for row in read_csv(sorted_rows)] == ["1.0"] * 4


def test_a_table_can_be_lines_of_json_or_parquet(played: Path, outputs: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    _, lines = export(outputs, played.name, format="jsonl")
    _, packed = export(outputs, played.name, format="parquet")

    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row["outcome"] for row in rows].count("model_error") == 2
    assert parquet.read_table(io.BytesIO(packed)).num_rows == 8


def test_an_unknown_column_is_named_with_the_nearest(played: Path, outputs: Path, temporary: Path) -> None:
    with pytest.raises(InvalidError, match="did you mean 'reward'"):
        export(outputs, played.name, columns=["rewrd"])
    assert list(temporary.iterdir()) == []


def test_rows_of_another_tool_are_in_the_table(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "abc"
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text(json.dumps(VERIFIERS) + "\n" + json.dumps(VERIFIERS) + "\n")
    (folder / "metadata.json").write_text(json.dumps({"env_id": "gsm8k", "model": "m"}))

    _, data = export(tmp_path / "runs", "abc")

    rows = read_csv(data)
    assert [(row["example_id"], row["rollout"], row["outcome"]) for row in rows] == [
        ("3", "0", "scored"),
        ("3", "1", "scored"),
    ]
    assert rows[0]["metric.correct"] == "1.0"
