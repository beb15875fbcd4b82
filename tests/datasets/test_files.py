from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from proctor.datasets import files
from proctor.datasets import parquet as parquet_files
from proctor.datasets.files import DataRow, UnreadableRow, read_rows, scan_rows
from proctor.errors import ConfigError, FileError


def test_jsonl_rows_have_the_line_they_stand_on(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('\ufeff{"a": 1}\n\n{"a": 2}\n')

    assert list(read_rows(path)) == [DataRow(0, 1, {"a": 1}), DataRow(1, 3, {"a": 2})]


def test_a_bad_line_is_reported_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"a": 1}\n[1]\n{"a": "\xff"}\n{"a": 4}')

    rows = list(scan_rows(path))

    assert [type(row) for row in rows] == [DataRow, UnreadableRow, UnreadableRow, DataRow]
    with pytest.raises(FileError, match=r"data\.jsonl:2: this is not a JSON object"):
        list(read_rows(path))


def test_a_line_that_is_too_long_is_read_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_ROW_BYTES", 100)
    monkeypatch.setattr(files, "CHUNK_BYTES", 7)
    path = tmp_path / "data.jsonl"
    path.write_text('{"a": "' + "x" * 500 + '"}\n{"a": 2}\n')

    long, short = scan_rows(path)

    assert isinstance(long, UnreadableRow)
    assert short == DataRow(1, 2, {"a": 2})


def test_csv_rows_have_their_first_line_also_where_a_cell_spans_lines(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('a,b\n1,"two\nlines"\n\n3,4\n5\n')

    rows = list(scan_rows(path))

    assert rows == [
        DataRow(0, 2, {"a": "1", "b": "two\nlines"}),
        DataRow(1, 5, {"a": "3", "b": "4"}),
        UnreadableRow(2, 6, "this row has 1 cells, and the file has 2 columns."),
    ]


def test_an_unclosed_quotation_mark_does_not_swallow_a_csv_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_ROW_BYTES", 64)
    path = tmp_path / "data.csv"
    path.write_text('a,b\n1,"open\n' + "2,3\n" * 40)

    first, *others = scan_rows(path)

    assert isinstance(first, UnreadableRow)
    assert first.line == 2
    assert "quotation mark" in first.problem
    assert any(isinstance(row, DataRow) for row in others)


@pytest.mark.parametrize(("header", "problem"), [("", "empty"), ("a,b,a", "two columns are called 'a'")])
def test_a_csv_header_must_name_each_column_once(tmp_path: Path, header: str, problem: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"{header}\n1,2,3\n")

    with pytest.raises(FileError, match=problem):
        list(read_rows(path))


def test_parquet_rows_are_numbered_from_one(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": [1, 2], "m": [{"x": 1}, {"x": 2}]}), path)

    assert list(read_rows(path)) == [
        DataRow(0, 1, {"a": 1, "m": {"x": 1}}),
        DataRow(1, 2, {"a": 2, "m": {"x": 2}}),
    ]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match=r"data\.parquet:1: this is not valid Parquet"):
        list(read_rows(path))


def test_an_unknown_ending_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.jsonl, \.csv, \.parquet"):
        list(read_rows(tmp_path / "data.xlsx"))
    with pytest.raises(ConfigError, match="There is no dataset"):
        list(read_rows(tmp_path / "data.csv"))


def write_parquet(path: Path, columns: dict[str, list[object]], **options: object) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, **options)


@pytest.mark.slow
def test_one_long_text_that_every_parquet_row_refers_to_is_never_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    write_parquet(path, {"a": ["x" * 2**23] * 2_000}, compression="zstd", dictionary_pagesize_limit=2**24)
    assert path.stat().st_size < 2**20  # and 16 GB unpacked

    tracemalloc.start()
    count = sum(1 for _ in scan_rows(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 2_000
    assert peak < 3 * 2**23


def test_a_parquet_row_that_is_too_long_is_reported_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    write_parquet(path, {"a": ["x" * (files.LONGEST_ROW_BYTES + 1), "short"]}, compression="zstd")

    long, short = scan_rows(path)

    assert isinstance(long, UnreadableRow)
    assert short == DataRow(1, 2, {"a": "short"})


def test_a_parquet_column_that_unpacks_to_far_more_than_is_stored_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "SUSPECT_BYTES", 2**20)
    path = tmp_path / "bomb.parquet"
    texts: list[object] = ["0" * 2**20 + str(number) for number in range(8)]
    write_parquet(path, {"a": texts}, compression="zstd", use_dictionary=False)

    with pytest.raises(FileError, match=r"bomb.parquet:1: the column 'a' unpacks from \d+ KB to 8 MB"):
        list(scan_rows(path))


def test_a_file_that_only_says_it_is_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")

    with pytest.raises(FileError, match="this is not valid Parquet"):
        list(scan_rows(path))
