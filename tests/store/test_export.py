"""A run as a flat table, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.errors import ConfigError, Failure, StoreError
from proctor.rollout import Rollout, Score
from proctor.store.export import ExportTable, scan_table, write_csv, write_file, write_jsonl
from proctor.store.rows import encode_row
from proctor.trace import Trace, Usage

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

Made = Callable[..., Rollout]
METADATA = {"run_id": "1a2b", "env_id": "echo", "model": "m"}


@pytest.fixture
def folder(tmp_path: Path, made: Made) -> Path:
    """A run whose rows differ in everything that may differ."""
    said = Trace(
        prompt=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "2+2"}],
        completion=[
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "name": "add", "arguments": "{}"}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "4"},
            {"role": "assistant", "content": 'it is "4",\nyes'},
        ],
        stop_condition="no_tools_called",
    )
    rows = [
        made(0, usage=Usage(11, 7, 5, 3)),
        made(1, trace=said, score=Score(0.5, {"short": 1.0}), info={"level": 3}),
        made(2, failure=Failure("RateLimitError", "too many", "play"), info={"level": "hard", "of": [1]}),
        made(2, 1, outcome="excluded", columns={"guesses": [1, 2], "reward": "mine"}),
    ]
    return kept(tmp_path / "run", rows)


def kept(folder: Path, rows: list[Rollout]) -> Path:
    folder.mkdir()
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    (folder / "results.jsonl").write_bytes(b"".join(map(encode_row, rows)))
    return folder


def records(table: ExportTable) -> list[dict[str, Any]]:
    return [dict(zip(table.names, values, strict=True)) for values in table.values()]


def test_every_row_has_every_column_whichever_row_it_was_seen_in(folder: Path) -> None:
    table = scan_table(folder)
    first, second, third, fourth = records(table)

    assert table.rows == 4
    assert (first["run_id"], first["env_id"], first["model"]) == ("1a2b", "echo", "m")
    assert (first["example_id"], first["rollout"], first["outcome"], first["reward"]) == (0, 0, "scored", 1.0)
    assert (first["metric.repeats"], first["metric.short"]) == (1.0, None)
    assert (second["metric.repeats"], second["metric.short"]) == (None, 1.0)
    assert [first[f"{kind}_tokens"] for kind in ("input", "output", "cached", "reasoning")] == [11, 7, 5, 3]
    assert (first["seconds"], first["generation_seconds"]) == (2.5, 1.5)
    assert (third["reward"], third["error"], third["error_message"]) == (None, "RateLimitError", "too many")
    assert fourth["outcome"] == "excluded"


def test_a_conversation_reads_as_text_and_one_message_as_what_it_says(folder: Path) -> None:
    first, second, *_ = records(scan_table(folder))

    assert (first["prompt"], first["answer"]) == ("say 0", "say 0")
    assert second["prompt"] == "system: be brief\n\nuser: 2+2"
    assert second["completion"] == 'assistant: → add({})\n\ntool: 4\n\nassistant: it is "4",\nyes'


def test_what_may_be_anything_is_json_text(folder: Path) -> None:
    _, second, third, fourth = records(scan_table(folder))

    assert json.loads(second["info"]) == {"level": 3}
    assert json.loads(third["info"]) == {"level": "hard", "of": [1]}
    assert fourth["state.guesses"] == "[1,2]"
    assert fourth["state.state_reward"] == "mine"


def test_ids_are_numbers_only_where_all_of_them_are(tmp_path: Path, made: Made) -> None:
    mixed = scan_table(kept(tmp_path / "mixed", [made(1), made("two"), made(2**70)]))

    assert [row["example_id"] for row in records(mixed)] == ["1", "two", str(2**70)]


def test_columns_are_chosen_and_ordered_by_name(folder: Path) -> None:
    table = scan_table(folder, ["reward", "example_id"])

    assert table.names == ["reward", "example_id"]
    with pytest.raises(ConfigError, match=r"no column 'metric.shrt'; did you mean 'metric.short'"):
        scan_table(folder, ["metric.shrt"])


def test_csv_survives_quotes_lines_and_commas(folder: Path) -> None:
    file = io.BytesIO()
    write_csv(scan_table(folder), file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))

    assert [row["completion"] for row in rows][1].endswith('it is "4",\nyes')
    assert [row["reward"] for row in rows] == ["1.0", "0.5", "", ""]


def test_json_lines_have_the_same_fields_in_every_line(folder: Path) -> None:
    file = io.BytesIO()
    write_jsonl(scan_table(folder), file)
    rows = [json.loads(line) for line in file.getvalue().splitlines()]

    assert len({tuple(row) for row in rows}) == 1
    assert rows[1]["metric.short"] == 1.0


def test_parquet_keeps_types_also_where_info_differs_from_row_to_row(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    table = scan_table(folder)

    write_file(table, "parquet", tmp_path / "run.parquet")
    read = parquet.read_table(tmp_path / "run.parquet")

    assert read.to_pylist() == records(table)
    assert str(read.schema.field("reward").type) == "double"
    assert str(read.schema.field("example_id").type) == "int64"
    assert str(read.schema.field("state.guesses").type) == "string"


def test_an_empty_run_is_a_table_without_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    table = scan_table(kept(tmp_path / "empty", []))

    write_file(table, "parquet", tmp_path / "empty.parquet")
    write_file(table, "csv", tmp_path / "empty.csv")

    assert (tmp_path / "empty.csv").read_text().startswith("run_id,env_id,model,label,example_id,rollout,")


def test_damaged_lines_are_left_out_and_counted(folder: Path) -> None:
    results = folder / "results.jsonl"
    whole = results.read_bytes()
    torn = whole.splitlines(keepends=True)[0][:-20]
    results.write_bytes(whole + b"no json\n" + b'{"example_id": 9}\n' + b"\xff\xfe\n" + torn)

    table = scan_table(folder)

    assert (table.rows, table.faults, len(records(table))) == (4, 4, 4)


def test_rows_that_come_in_meanwhile_do_not_break_the_table(folder: Path, made: Made) -> None:
    table = scan_table(folder)
    with (folder / "results.jsonl").open("ab") as file:
        file.write(encode_row(made("late", score=Score(1.0, {"unheard of": 1.0}))))

    assert len(records(table)) == 4


def test_a_file_that_cannot_be_written_leaves_the_old_one(folder: Path, tmp_path: Path) -> None:
    table = scan_table(folder)

    with pytest.raises(StoreError, match=r"Cannot write .*nowhere/run.csv: No such file"):
        write_file(table, "csv", tmp_path / "nowhere" / "run.csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_large_run_is_never_held_whole(tmp_path: Path, made: Made, kind: str) -> None:
    row = encode_row(made(0, info={"text": "x" * 20_000}))
    folder = kept(tmp_path / "large", [])
    with (folder / "results.jsonl").open("wb") as file:
        file.writelines(row for _ in range(1_000))

    tracemalloc.start()
    write_file(scan_table(folder), kind, tmp_path / "large.out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (tmp_path / "large.out").stat().st_size > 20_000_000
    assert peak < 2_000_000


# The command


def test_the_latest_run_goes_to_stdout_and_nothing_else_does(proctor: Run) -> None:
    proctor("eval", "run", "echo", "-m", "scripted", "-n", "2", "-r", "1", "-s", "-A")
    proctor("eval", "run", "echo", "-m", "scripted", "-n", "3", "-r", "2", "-A")

    ran = proctor("eval", "export", "latest")

    assert ran.code == 0, ran.stderr
    rows = list(csv.DictReader(io.StringIO(ran.stdout, newline="")))
    assert len(rows) == 6
    assert {row["reward"] for row in rows} == {"1.0"}
    assert ran.stderr == ""


def test_a_run_is_named_by_folder_by_file_or_by_id_and_the_format_by_the_files_name(
    proctor: Run, tmp_path: Path
) -> None:
    done = proctor("eval", "run", "echo", "-m", "scripted", "-n", "2", "-r", "1", "-s", "--json")

    for number, name in enumerate((done.folder, done.folder / "results.jsonl", done.folder.name)):
        ran = proctor("eval", "export", str(name), "-o", f"{number}.jsonl", "--columns", "rollout,reward")
        assert ran.code == 0, ran.stderr
        assert ran.stderr == f"2 rollouts in {number}.jsonl\n"
        assert (tmp_path / f"{number}.jsonl").read_text() == '{"rollout":0,"reward":1.0}\n' * 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["latest"], "No runs in outputs or "),
        (["nowhere"], "No runs in outputs or "),
        (["latest", "--format", "parquet"], "A Parquet file cannot go to stdout; name a file with -o."),
        (["latest", "--format", "xlsx"], "'xlsx' is not one of 'csv', 'jsonl', 'parquet'"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_sentence(
    proctor: Run, words: list[str], sentence: str
) -> None:
    ran = proctor("eval", "export", *words)

    assert ran.code == 2
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_reader_that_has_seen_enough_is_no_error(proctor: Run, folder: Path) -> None:
    row = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)[0]
    (folder / "results.jsonl").write_bytes(row * 20_000)

    ran = proctor(
        "eval", "export", str(folder), under=["bash", "-o", "pipefail", "-c", '"$0" "$@" | head -n 1']
    )

    assert ran.code == 0, ran.stderr
    assert ran.stderr == ""


def test_damaged_lines_are_told_of_on_stderr(proctor: Run, folder: Path) -> None:
    with (folder / "results.jsonl").open("ab") as file:
        file.write(b"{\n")

    ran = proctor("eval", "export", str(folder), "-o", "out.csv")

    assert ran.code == 0
    assert "Left out 1 line of" in ran.stderr


def test_a_file_name_that_promises_another_format_is_asked_about(proctor: Callable[..., Ran]) -> None:
    proctor("eval", "run", "echo", "-m", "scripted", "-n", "1", "-s")

    ran = proctor("eval", "export", "latest", "-o", "results.xlsx")

    assert ran.code == 2
    assert "results.xlsx looks like none of csv, jsonl, parquet, eval; name one with --format." in ran.stderr
    assert not (ran.cwd / "results.xlsx").exists()
