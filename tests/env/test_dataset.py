"""Rows from wherever an author has them, as the tasks that a model is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.env.dataset import PromptMaker, RowSource, tasks_of
from proctor.env.multi_turn import SingleTurnEnv
from proctor.errors import ConfigError
from proctor.task import Task

CAPITALS = [
    {"question": "Capital of France?", "answer": "Paris", "info": {"continent": "Europe"}},
    {"question": "Capital of Peru?", "answer": "Lima", "info": {}},
]


def tasks(source: RowSource, **around: Any) -> list[Task]:
    return list(tasks_of(source, PromptMaker(**around)))


def told(tasks: Sequence[Task]) -> list[tuple[Any, Any, Any]]:
    return [(task.prompt[-1]["content"], task.answer, task.info) for task in tasks]


EXPECTED = [("Capital of France?", "Paris", {"continent": "Europe"}), ("Capital of Peru?", "Lima", {})]


class HuggingFaceLike:
    """Has what a `datasets.Dataset` has, and counts who looks."""

    column_names = ("question", "answer", "info")

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = rows
        self.looked_at: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.looked_at.append(index)
        return self.rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))


# Where rows come from


def write_jsonl(folder: Path) -> Path:
    path = folder / "capitals.jsonl"
    path.write_text("\n".join(map(json.dumps, CAPITALS)) + "\n\n")
    return path


def write_csv(folder: Path) -> Path:
    path = folder / "capitals.csv"
    path.write_text(
        "question,answer,info\n"
        'Capital of France?,Paris,"{""continent"": ""Europe""}"\n'
        "Capital of Peru?,Lima,\n"
    )
    return path


def write_parquet(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    path = folder / "capitals.parquet"
    rows = [{**row, "info": json.dumps(row["info"])} for row in CAPITALS]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize(
    "source",
    [
        lambda _: CAPITALS,
        lambda _: tuple(CAPITALS),
        lambda _: (row for row in CAPITALS),
        lambda _: lambda: CAPITALS,
        lambda _: lambda: iter(CAPITALS),
        lambda _: lambda: lambda: CAPITALS,
        lambda _: HuggingFaceLike(CAPITALS),
        lambda _: lambda: HuggingFaceLike(CAPITALS),
        write_jsonl,
        write_csv,
        write_parquet,
        lambda folder: str(write_jsonl(folder)),
        lambda folder: lambda: write_csv(folder),
    ],
    ids=[
        "list",
        "tuple",
        "generator",
        "builder",
        "builder of a generator",
        "builder of a builder",
        "hugging face",
        "builder of hugging face",
        "jsonl",
        "csv",
        "parquet",
        "path as text",
        "builder of a path",
    ],
)
def test_rows_may_come_from_anywhere(tmp_path: Path, source: Any) -> None:
    env = SingleTurnEnv(source(tmp_path))

    for _ in range(2):  # tasks are read more than once: to plan, and to put results in order
        found = list(env.tasks())
        assert told(found) == EXPECTED
        assert [task.id for task in found] == [0, 1]


def test_a_builder_is_called_when_tasks_are_first_wanted_and_once() -> None:
    calls: list[str] = []

    def build() -> list[dict[str, Any]]:
        calls.append("built")
        return CAPITALS

    env = SingleTurnEnv(build)
    assert calls == []
    list(env.tasks())
    list(env.tasks())
    assert calls == ["built"]


def test_a_generator_is_read_no_further_than_it_is_asked_for() -> None:
    read: list[int] = []

    def endless() -> Iterator[dict[str, Any]]:
        number = 0
        while True:
            read.append(number)
            yield {"question": f"say {number}"}
            number += 1

    env = SingleTurnEnv(endless())

    for _ in range(2):
        first = [task.id for task, _ in zip(env.tasks(), range(3), strict=False)]
        assert first == [0, 1, 2]
    assert len(read) <= 4


def test_rows_that_can_be_counted_are_counted_without_being_looked_at() -> None:
    dataset = HuggingFaceLike([{"question": f"say {number}"} for number in range(1000)])

    found = tasks_of(dataset, PromptMaker())

    assert isinstance(found, Sequence)
    assert len(found) == 1000
    assert [task.id for task in found[3:5]] == [3, 4]
    assert found[-1].id == 999
    assert dataset.looked_at == [3, 4, 999]


# What a row becomes


def test_a_question_is_asked_by_the_user() -> None:
    (task,) = tasks([{"question": "Why?"}])

    assert task.prompt == ({"role": "user", "content": "Why?"},)
    assert (task.answer, task.info, task.columns) == ("", {}, {})


def test_system_prompt_and_examples_come_before_the_question() -> None:
    shots = ({"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"})

    for row in ({"question": "2+2"}, {"prompt": "2+2"}):
        (task,) = tasks([row], system_prompt="Be brief.", few_shot=shots)
        assert task.prompt == (
            {"role": "system", "content": "Be brief."},
            *shots,
            {"role": "user", "content": "2+2"},
        )


def test_a_prompt_of_messages_is_taken_as_it_is() -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]

    (task,) = tasks([{"prompt": said, "question": "ignored"}])
    assert task.prompt == tuple(said)

    (task,) = tasks([{"prompt": said}], system_prompt="Be brief.")
    assert task.prompt == ({"role": "system", "content": "Be brief."}, *said)

    own = {"role": "system", "content": "Be long."}
    (task,) = tasks([{"prompt": [own, *said]}], system_prompt="Be brief.")
    assert task.prompt == (own, *said)


def test_a_row_is_left_as_it_was() -> None:
    row = {"prompt": [{"role": "user", "content": "Hi"}], "info": {"a": 1}}

    (task,) = tasks([row])
    task.prompt[0]["content"] = "changed"
    task.info["a"] = 2

    assert row == {"prompt": [{"role": "user", "content": "Hi"}], "info": {"a": 1}}


def test_numbers_and_other_columns_are_kept() -> None:
    (task,) = tasks([{"question": 5, "answer": 7, "example_id": "t-1", "level": "hard"}])

    assert task.prompt[0]["content"] == "5"
    assert (task.id, task.answer, task.columns) == ("t-1", 7, {"level": "hard"})


@pytest.mark.parametrize("info", [None, "", "{}", {}])
def test_no_info_is_no_info(info: Any) -> None:
    assert tasks([{"question": "q", "info": info}])[0].info == {}


def test_info_may_be_json_text() -> None:
    assert tasks([{"question": "q", "info": '{"a": [1]}'}])[0].info == {"a": [1]}


def test_a_task_has_the_same_hash_wherever_it_comes_from_and_another_when_it_changes(tmp_path: Path) -> None:
    plain = [task.hash for task in tasks(CAPITALS)]

    assert [task.hash for task in tasks(write_jsonl(tmp_path))] == plain
    assert [task.hash for task in tasks(write_parquet(tmp_path))] == plain
    changed = [{**CAPITALS[0], "answer": "Lyon"}, CAPITALS[1]]
    assert [task.hash == old for task, old in zip(tasks(changed), plain, strict=True)] == [False, True]
    assert tasks(CAPITALS, system_prompt="Be brief.")[0].hash != plain[0]


# Mistakes


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"answer": "b"}, "row 1 has neither 'prompt' nor 'question'; it has: answer"),
        ({"prompt": [{"content": "x"}]}, "row 1: every message of 'prompt' needs a 'role'"),
        ({"question": "q", "info": "{torn"}, "row 1: 'info' is not valid JSON"),
        ({"question": "q", "info": "[1]"}, "row 1: 'info' must be an object, not list"),
        ({"question": "q", "info": 3}, "row 1: 'info' must be an object, not int"),
    ],
    ids=["no question", "no role", "torn info", "list info", "number info"],
)
def test_a_bad_row_is_named(row: dict[str, Any], sentence: str) -> None:
    for source in ([CAPITALS[0], row], iter([CAPITALS[0], row])):
        with pytest.raises(ConfigError) as refused:
            tasks(source)
        assert sentence in str(refused.value)


def test_bad_files_are_named(tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"question": "fine"}\n\n{"question": \n')
    listed = tmp_path / "listed.jsonl"
    listed.write_text("[1, 2]\n")

    with pytest.raises(ConfigError, match=r"torn\.jsonl:3: this is not a JSON object"):
        tasks(torn)
    with pytest.raises(ConfigError, match=r"listed\.jsonl:1: this is not a JSON object"):
        tasks(listed)
    with pytest.raises(ConfigError, match=r"There is no dataset .*nowhere\.csv"):
        tasks(tmp_path / "nowhere.csv")
    with pytest.raises(ConfigError, match=r"rows\.xlsx' has an unknown format; .* ends in \.jsonl"):
        tasks(tmp_path / "rows.xlsx")


def test_something_that_is_no_dataset_is_refused() -> None:
    with pytest.raises(ConfigError, match="A dataset is rows, a function or a path, not int"):
        tasks(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="SingleTurnEnv needs a dataset"):
        SingleTurnEnv()


def test_an_evaluation_takes_the_evaluation_rows_where_there_are_some() -> None:
    env = SingleTurnEnv([{"question": "train"}], eval_dataset=[{"question": "eval"}])

    assert [task.prompt[0]["content"] for task in env.tasks()] == ["eval"]
