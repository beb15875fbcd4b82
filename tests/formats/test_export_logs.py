"""`proctor eval export --format inspect | verifiers`: what other tools read, and reads back the same."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.formats.sources import inspect_header, inspect_sample, write_eval
from tests.formats.test_import import import_path, read_rows

if TYPE_CHECKING:
    from tests.conftest import Ran

KEPT = ("outcome", "reward", "metrics", "prompt", "completion", "answer", "token_usage")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    failed = inspect_sample("two", scores={}, error={"message": "ValueError('no luck')"}, events=[])
    samples = [inspect_sample("one"), failed]
    (run,) = import_path(write_eval(tmp_path / "in.eval", inspect_header(), samples), tmp_path / "out")
    return Path(run.folder)


def kept(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {name: row[name] for name in KEPT} for key, row in rows.items()}


def read_folder(folder: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return {f"{row['example_id']}/{row['rollout']}": row for row in rows}


def test_a_run_exported_to_inspect_imports_as_it_was(
    folder: Path, tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    ran = proctor("eval", "export", str(folder), "-o", "back.eval")
    (run,) = import_path(tmp_path / "back.eval", tmp_path / "again", "reward")

    assert (ran.code, ran.stderr) == (0, "2 rollouts in back.eval\n")
    before, after = kept(read_folder(folder)), kept(read_rows(run))
    for row in after.values():
        row["metrics"].pop("reward", None)  # Inspect's scores are one list: the reward is among them
    assert after == before


def test_the_header_of_an_exported_log_sums_up_its_samples(
    folder: Path, tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    proctor("eval", "export", str(folder), "--format", "inspect", "-o", "back.eval")

    with zipfile.ZipFile(tmp_path / "back.eval") as archive:
        header = json.loads(archive.read("header.json"))
        summaries = json.loads(archive.read("summaries.json"))
    assert (header["status"], header["eval"]["task"]) == ("success", "sums")
    assert header["eval"]["dataset"]["sample_ids"] == ["one", "two"]
    assert (header["results"]["total_samples"], header["results"]["completed_samples"]) == (2, 1)
    assert header["results"]["scores"][0]["metrics"]["mean"]["value"] == 1.0
    assert [(each["id"], each["completed"]) for each in summaries] == [("one", True), ("two", False)]


def test_a_run_exported_to_verifiers_imports_as_it_was(
    folder: Path, tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    ran = proctor("eval", "export", str(folder), "--format", "verifiers", "-o", "theirs")
    (run,) = import_path(tmp_path / "theirs", tmp_path / "again")

    assert (ran.code, ran.stderr) == (0, "2 rollouts in theirs\n")
    written = [json.loads(line) for line in (tmp_path / "theirs" / "results.jsonl").read_text().splitlines()]
    assert [(row["reward"], row.get("includes")) for row in written] == [
        (1.0, 1.0),
        (0.0, None),
    ]
    before, after = kept(read_folder(folder)), kept(read_rows(run))
    for row in (*before.values(), *after.values()):
        row["token_usage"].pop("cached_tokens", None)  # verifiers has no such count
        row["token_usage"] = {name: count for name, count in row["token_usage"].items() if count}
    assert after == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--format", "inspect"), "cannot go to stdout; name its file with -o"),
        (("-o", "a.eval", "--columns", "reward"), "takes no --columns"),
        (("-o", "a.xls"), "looks like none of csv, jsonl, parquet, eval"),
    ],
)
def test_an_export_that_cannot_be_is_refused(
    folder: Path, proctor: Callable[..., Ran], words: tuple[str, ...], sentence: str
) -> None:
    ran = proctor("eval", "export", str(folder), *words)

    assert (ran.code, sentence in ran.stderr) == (2, True), ran.stderr


def test_a_folder_that_holds_a_run_is_not_exported_into(folder: Path, proctor: Callable[..., Ran]) -> None:
    ran = proctor("eval", "export", str(folder), "--format", "verifiers", "-o", str(folder))

    assert ran.code == 2
    assert "already holds a run; choose another folder" in ran.stderr
