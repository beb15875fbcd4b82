"""Damaged and hostile result files: one sentence each, and never more memory than they deserve."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor.errors import ConfigError, StoreError
from proctor.formats import sources
from proctor.formats.inspect import archive
from tests.formats.sources import (
    harbor_trial,
    inspect_header,
    inspect_sample,
    verifiers_row,
    write_eval,
    write_job,
    write_verifiers,
    write_zip_of,
)
from tests.formats.test_import import import_path, read_metadata, read_rows

if TYPE_CHECKING:
    from tests.conftest import Ran


def test_an_archive_that_unpacks_to_too_much_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST_MEMBER_BYTES", 100_000)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    bomb = packer.compress(b" " * 10_000_000) + packer.flush()
    header = json.dumps(inspect_header()).encode()
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = {"samples/a_epoch_1.json": bomb, "header.json": packer.compress(header) + packer.flush()}
    claimed = {"samples/a_epoch_1.json": 10, "header.json": len(header)}

    (run,) = import_path(write_zip_of(tmp_path / "a.eval", packed, 8, claimed), tmp_path / "out")

    assert (run.rollouts, run.left_out) == (0, 1)
    assert "unpacks to more than" in run.problems[0]


def test_an_archive_whose_members_share_their_bytes_is_refused(tmp_path: Path) -> None:
    path = write_zip_of(tmp_path / "a.eval", {"header.json": b"x" * 10_000}, 0, {"header.json": 10_000})
    data = path.read_bytes()
    at = data.index(b"PK\x01\x02")
    entry = data[at : data.index(b"PK\x05\x06")]
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 100, 100, 100 * len(entry), at, 0)
    path.write_bytes(data[:at] + 100 * entry + end)

    with pytest.raises(ConfigError, match="more bytes than it has"):
        import_path(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK\x03\x04 and no more", "is damaged or was not written to its end"),
        (b"not a log", "is not a result file of inspect, harbor, verifiers, hud, promptfoo"),
        (b"", "is not a result file of"),
    ],
)
def test_a_file_that_is_no_log_gets_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "a.eval").write_bytes(content)

    with pytest.raises(ConfigError, match=sentence):
        import_path(tmp_path / "a.eval", tmp_path / "out")


def test_a_header_that_is_no_json_names_the_member(tmp_path: Path) -> None:
    log = write_eval(tmp_path / "a.eval", "{'not': json", [])

    with pytest.raises(ConfigError, match=r"a\.eval: header\.json is damaged"):
        import_path(log, tmp_path / "out")


def test_nesting_that_would_end_the_stack_is_refused(tmp_path: Path) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    log = tmp_path / "log.json"
    log.write_text(json.dumps(inspect_header())[:-1] + f', "samples": {deep}}}')

    with pytest.raises(ConfigError, match=r"log\.json is damaged: nested too deeply"):
        import_path(log, tmp_path / "out")


def test_a_line_that_is_too_long_or_no_json_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LONGEST_LINE_BYTES", 5_000)
    folder = write_verifiers(tmp_path / "v", [verifiers_row(0), verifiers_row(1, answer="x" * 9_000)])
    with (folder / "results.jsonl").open("a") as file:
        file.write('{"example_id": 2, "rew\n[1, 2]\n')

    (run,) = import_path(folder, tmp_path / "out")

    assert (run.rollouts, run.left_out) == (1, 3)
    assert [problem.split(":")[0] for problem in run.problems] == ["line 2", "line 3", "line 4"]
    metadata = read_metadata(run)
    assert (metadata["planned"], metadata["imported"]["left_out"]) == (4, 3)


def test_what_is_left_out_is_said_and_changes_the_exit_code(
    tmp_path: Path, proctor: Callable[..., Ran]
) -> None:
    folder = write_verifiers(tmp_path / "v", [verifiers_row(0)])
    with (folder / "results.jsonl").open("a") as file:
        file.write("{\n")

    ran = proctor("import", "v", "gone.eval")

    assert ran.code == 1
    assert "1 rollout" in ran.stdout
    assert "Left out line 2" in ran.stderr
    assert "Error: There is no 'gone.eval'." in ran.stderr


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results.jsonl")

    with pytest.raises(ConfigError, match="is not a regular file"):
        import_path(tmp_path / "results.jsonl", tmp_path / "out")


def test_a_folder_that_leads_back_to_itself_is_searched_once(tmp_path: Path) -> None:
    write_eval(tmp_path / "logs.eval", inspect_header(), [inspect_sample("one")])
    (tmp_path / "loop").symlink_to(tmp_path)

    assert len(import_path(tmp_path, tmp_path / "out")) == 1


def test_a_rollout_that_a_log_has_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as log:
        log.writestr("header.json", json.dumps(inspect_header()))
        for name in ("samples/a.json", "samples/b.json"):
            log.writestr(name, json.dumps(inspect_sample("one")))

    (run,) = import_path(path, tmp_path / "out")

    assert (run.rollouts, run.left_out) == (1, 1)
    assert "twice" in run.problems[0]


def test_numbers_that_are_no_scores_become_errors(tmp_path: Path) -> None:
    folder = write_verifiers(
        tmp_path / "v", [verifiers_row(0, float("nan")), verifiers_row(1, 1e300), verifiers_row(2, "high")]
    )

    (run,) = import_path(folder, tmp_path / "out")

    assert {row["outcome"] for row in read_rows(run).values()} == {"grader_error"}


def test_a_run_of_ours_is_not_imported_and_never_overwritten(tmp_path: Path) -> None:
    log = write_eval(tmp_path / "log.eval", inspect_header(), [inspect_sample("one")])
    (run,) = import_path(log, tmp_path / "out")
    (Path(run.folder) / "metadata.json").write_text('{"run_id": "mine"}')

    with pytest.raises(StoreError, match="holds a run that was not imported"):
        import_path(log, tmp_path / "out")
    with pytest.raises(ConfigError, match="is already a run of Proctor"):
        import_path(Path(run.folder) / "results.jsonl", tmp_path / "other")


def test_a_trial_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", {"a__1": harbor_trial("a", {"reward": 1.0}), "b__1": {}})
    (job / "b__1" / "result.json").write_text("{")

    (run,) = import_path(job, tmp_path / "out")

    assert (run.rollouts, run.left_out) == (1, 1)
