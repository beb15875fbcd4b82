"""Runs as data frames, and questions to them in SQL."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest

from proctor import EchoEnvironment, Scripted, evaluate, load_frame
from proctor.errors import ConfigError
from proctor.rollout import Rollout, Score
from proctor.store.labels import Label, append_labels
from proctor.store.query import open_answer
from proctor.store.rows import encode_row
from tests.cli.in_process import run_command

Made = Callable[..., Rollout]


def write_run(folder: Path, rows: list[Rollout], **metadata: Any) -> Path:
    folder.mkdir(parents=True)
    stored = {"run_id": folder.name, "env_id": "echo", "model": "m", "status": "finished", **metadata}
    (folder / "metadata.json").write_text(json.dumps(stored))
    (folder / "results.jsonl").write_bytes(b"".join(map(encode_row, rows)))
    return folder


@pytest.fixture
def runs(tmp_path: Path, made: Made) -> Path:
    """Two runs of different shape: numbered tasks and named ones, each with a metric of its own."""
    first = [
        made(task, number, score=Score(float(task), {"short": 0.5})) for task in (0, 1) for number in (0, 1)
    ]
    second = [made("a", score=Score(0.25, {"long": 3.0}), columns={"guesses": [1, 2]})]
    write_run(tmp_path / "runs" / "evals" / "echo--m" / "first", first, model="m1")
    write_run(tmp_path / "runs" / "evals" / "echo--m" / "second", second, model="m2")
    return tmp_path / "runs"


def ask(sql: str, *folders: Path, exports: tuple[Path, ...] = ()) -> list[tuple[Any, ...]]:
    with open_answer(sql, folders, exports) as answer:
        return list(answer.rows)


@pytest.mark.parametrize("library", ["polars", "pandas", "arrow"])
def test_a_result_is_a_frame_of_each_library_in_one_call(library: Any) -> None:
    result = asyncio.run(evaluate(EchoEnvironment("say 1", "say 2"), Scripted(), rollouts_per_example=2))

    frame = result.frame(library)

    rewards = frame["reward"].to_pylist() if library == "arrow" else list(frame["reward"])
    assert rewards == [1.0] * 4
    assert sum(rewards) / 4 == result.summary.reward.mean
    assert type(frame).__module__.partition(".")[0] == {"arrow": "pyarrow"}.get(library, library)


def test_several_runs_are_one_frame_with_the_columns_of_all(runs: Path) -> None:
    frame = load_frame([runs / "evals/echo--m/first", runs / "evals/echo--m/second"])

    assert frame["example_id"].to_list() == ["0", "0", "1", "1", "a"], "text, because one of them is"
    assert frame["metric.short"].to_list() == [0.5, 0.5, 0.5, 0.5, None]
    assert frame["state.guesses"].to_list()[-1] == "[1,2]"
    assert frame.schema["reward"] == polars.Float64
    assert frame.group_by("model").agg(polars.col("reward").mean()).sort("model")["reward"].to_list() == [
        0.5,
        0.25,
    ]


def test_every_library_has_the_same_columns_and_types_also_for_a_run_without_rows(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", [])

    arrow, frame, pandas = (load_frame(empty, library) for library in ("arrow", "polars", "pandas"))

    assert arrow.column_names == frame.columns == list(pandas.columns)
    assert arrow.schema.field("reward").type == pyarrow.float64()
    assert pandas["reward"].dtype == "float64"


def test_what_cannot_be_a_frame_is_refused_in_a_sentence(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runs / "evals/echo--m/first"
    with pytest.raises(ConfigError, match="polars, pandas or arrow, not 'excel'"):
        load_frame(first, "excel")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="No run is named"):
        load_frame([])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match=r"pip install 'proctor\[polars\]'"):
        load_frame(first)


# SQL


def test_a_query_reads_any_number_of_runs(runs: Path) -> None:
    folders = sorted(runs.glob("evals/*/*"))

    assert ask("select model, count(*), avg(reward) from rollouts group by 1 order by 1", *folders) == [
        ("m1", 4, 0.5),
        ("m2", 1, 0.25),
    ]
    assert ask("select run_id, status from runs order by 1", *folders) == [
        ("first", "finished"),
        ("second", "finished"),
    ]
    assert ask('select max("metric.long") from rollouts', *folders) == [(3.0,)]


def test_exports_are_read_like_runs_and_beside_them(runs: Path, home: Path) -> None:
    folder = runs / "evals/echo--m/first"
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        assert run_command("eval", "export", str(folder), "-o", name).code == 0
    sql = "select count(*), sum(reward), min(rollout), any_value(typeof(reward)) from rollouts"

    for name in ("x.csv", "x.jsonl", "x.parquet"):
        assert ask(sql, exports=(home / name,)) == [(4, 2.0, 0, "DOUBLE")]
    mixed = ask(sql, runs / "evals/echo--m/second", exports=(home / "x.csv", home / "x.parquet"))
    assert mixed == [(9, 4.25, 0, "DOUBLE")]


def test_a_query_joins_what_people_said_with_the_rollouts(runs: Path) -> None:
    first, second = (runs / "evals" / "echo--m" / name for name in ("first", "second"))
    given = [(1, 0, "maria", 0.0), (1, 0, "maria", 1.0), (1, 1, "maria", None), (0, 0, "ben", 0.5)]
    append_labels(
        first,
        [
            Label(example_id=task, rollout=number, person=person, score=score)
            for task, number, person, score in given
        ],
    )
    joined = """
        select person, example_id, score, reward from labels
        join rollouts using (run_id, example_id, rollout) order by person, rollout
    """

    assert ask(joined, first, second) == [
        ("ben", "0", 0.5, 0.0),
        ("maria", "1", 1.0, 1.0),
        ("maria", "1", None, 1.0),
    ]
    assert ask("select count(*) from labels", second) == [(0,)]


def test_a_query_prints_a_table_csv_or_json(runs: Path, home: Path) -> None:
    sql = "select model, sum(reward) total from rollouts group by 1 order by 1"

    table, as_csv = run_command("query", sql, str(runs)), run_command("query", sql, str(runs), "--csv")
    as_json = run_command("query", sql, str(runs), "--json")

    assert [line.split() for line in table.out.splitlines()] == [
        ["model", "total"],
        ["m1", "2"],
        ["m2", "0.25"],
    ]
    assert as_csv.out == "model,total\nm1,2.0\nm2,0.25\n"
    assert json.loads(as_json.out) == [{"model": "m1", "total": 2.0}, {"model": "m2", "total": 0.25}]
    assert json.loads(run_command("query", "select 1 as x where false", str(runs), "--json").out) == []
    assert json.loads(run_command("query", "select 0.5 as x", str(runs), "--json").out) == [{"x": 0.5}]


def test_a_long_answer_is_cut_in_a_table_and_says_so(runs: Path, home: Path) -> None:
    cut = run_command("query", "select * from range(50)", str(runs), "-n", "10")

    assert len(cut.out.splitlines()) == 11
    assert "first 10 rows" in cut.err
    assert len(run_command("query", "select * from range(50)", str(runs), "-n", "-1").out.splitlines()) == 51


def test_queries_that_cannot_be_answered_fail_in_one_sentence(runs: Path, home: Path) -> None:
    (home / "other.csv").write_text("a,b\n1,2\n")
    for sql, words, said in [
        ("selec 1", (str(runs),), "syntax error"),
        ("select nope from rollouts", (str(runs),), '"nope" not found'),
        ("select 1", ("nowhere",), "No run"),
        ("select 1", (str(home / "other.csv"),), "proctor eval export"),
    ]:
        failed = run_command("query", sql, *words)
        assert failed.code == 2
        assert said in failed.err
        assert len(failed.err.strip().splitlines()) == 1


def test_a_damaged_run_hides_no_other(runs: Path, home: Path) -> None:
    (runs / "evals/echo--m/second/metadata.json").write_text("{")

    asked = run_command("query", "select count(*) n from rollouts", str(runs))

    assert asked.out.split() == ["n", "4"]
    assert "1 damaged run" in asked.err


@pytest.mark.parametrize("name", ["*.csv", "[mn]ine.csv", "?ine.csv"])
def test_an_export_is_one_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.csv").write_text("reward,outcome\n1,scored\n")
    (tmp_path / name).write_text("reward,outcome\n0,scored\n")
    with open_answer("select reward from rollouts", [], [tmp_path / name]) as answer:
        assert list(answer.rows) == [(0.0,)]


def test_names_in_a_strangers_export_are_names_and_no_sql(tmp_path: Path) -> None:
    word = 'a" INTEGER)) AS z, (SELECT content FROM read_text(\'secret\')) AS "told" --'
    (tmp_path / "secret").write_text("told you")
    (tmp_path / "x.jsonl").write_text(json.dumps({"reward": 1, "outcome": "scored", word: 2, "z": {word: 3}}))
    with open_answer("select * from rollouts", [], [tmp_path / "x.jsonl"]) as answer:
        assert answer.columns == ["reward", "outcome", word, "z"]
        assert list(answer.rows) == [(1.0, "scored", 2, {word: 3})]


def test_a_query_without_duckdb_names_the_extra(
    runs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[query\]'"):
        ask("select 1", runs / "evals/echo--m/first")
