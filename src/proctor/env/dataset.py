"""Rows from anywhere → tasks, lazily.

A source is a list of rows, a generator, a function that makes either, a Hugging Face dataset, the path of a
JSON Lines, CSV or Parquet file, or a dataset on a server as `owner/name@hash`. A row is a mapping with
`prompt` or `question`, and optionally
`answer`, `info`, `example_id` and further columns. Knows nothing of models or scoring.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets import files
from proctor.datasets.references import find_reference
from proctor.errors import ConfigError
from proctor.task import Task, TaskId, TaskSequence
from proctor.trace import Message

Row = Mapping[str, Any]
RowSource = Iterable[Row] | Callable[[], Any] | str | Path
KNOWN_COLUMNS = frozenset({"prompt", "question", "answer", "info", "example_id"})


class PromptMaker(msgspec.Struct, frozen=True):
    """What surrounds a row's question in its prompt."""

    system_prompt: str | None = None
    few_shot: tuple[Message, ...] = ()

    def messages(self, row: Row, where: str) -> tuple[Message, ...]:
        prompt = row.get("prompt")
        if prompt is None:
            question = row.get("question")
            if question is None:
                raise ConfigError(f"{where} has neither 'prompt' nor 'question'; it has: {', '.join(row)}.")
            return (*self._system(()), *self.few_shot, {"role": "user", "content": str(question)})
        if isinstance(prompt, str):
            return (*self._system(()), *self.few_shot, {"role": "user", "content": prompt})
        messages = tuple(dict(message) for message in prompt)
        if not all("role" in message for message in messages):
            raise ConfigError(f"{where}: every message of 'prompt' needs a 'role'.")
        return (*self._system(messages), *messages)

    def _system(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        if not self.system_prompt or (messages and messages[0].get("role") == "system"):
            return ()
        return ({"role": "system", "content": self.system_prompt},)

    def task(self, row: Row, number: int) -> Task:
        where = f"row {number}"
        if not isinstance(row, Mapping):
            raise ConfigError(f"{where} is a {type(row).__name__}; it must be a mapping.")
        return Task(
            id=id_of(row.get("example_id", number), where),
            prompt=self.messages(row, where),
            answer=row.get("answer", ""),
            info=info_of(row.get("info"), where),
            columns={name: value for name, value in row.items() if name not in KNOWN_COLUMNS},
        )


class RowTasks(TaskSequence):
    """Tasks of rows whose number is known."""

    def __init__(self, rows: Sequence[Row], maker: PromptMaker, first: int = 0) -> None:
        self.rows = rows
        self.maker = maker
        self.first = first

    def __len__(self) -> int:
        return len(self.rows)

    def build(self, number: int) -> Task:
        return self.maker.task(self.rows[number], number)


class ReplayableRows:
    """The rows of a generator, kept as they arrive so that they can be read again."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._seen: list[Row] = []

    def __iter__(self) -> Iterator[Row]:
        for number in count():
            while number >= len(self._seen):
                try:
                    self._seen.append(next(self._rows))
                except StopIteration:
                    return
            yield self._seen[number]


def read_rows(source: RowSource) -> Iterable[Row]:
    """Rows that can be read more than once; a Sequence where their number is known."""
    if callable(source) and not isinstance(source, Iterable):
        return read_rows(source())
    if isinstance(source, str):
        return read_file(locate_file(source))
    if isinstance(source, Path):
        return read_file(source)
    if hasattr(source, "column_names") and hasattr(source, "__getitem__"):
        return HuggingFaceRows(source)
    if isinstance(source, Iterator):
        return ReplayableRows(source)
    if isinstance(source, Iterable):
        return source
    raise ConfigError(f"A dataset is rows, a function or a path, not {type(source).__name__}.")


class HuggingFaceRows(Sequence[Row]):
    """A Hugging Face dataset, read row by row."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.dataset)


def locate_file(word: str) -> Path:
    """The file of a path, or of a dataset on a server."""
    if find_reference(word) is None:
        return Path(word)
    from proctor.client.dataset_files import locate

    return locate(word, os.environ).path


def read_file(path: Path) -> Sequence[Row]:
    return [row.values for row in files.read_rows(path)]


def id_of(value: Any, where: str) -> TaskId:
    """An id that survives a round trip through JSON."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ConfigError(f"{where}: 'example_id' must be an integer or a string, not {value!r}.")
    return value


def info_of(info: Any, where: str) -> dict[str, Any]:
    """The info column, which may be an object or its JSON text."""
    if info is None or info == "":
        return {}
    if isinstance(info, str):
        try:
            info = msgspec.json.decode(info)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{where}: 'info' is not valid JSON ({error}).") from error
    if not isinstance(info, Mapping):
        raise ConfigError(f"{where}: 'info' must be an object, not {type(info).__name__}.")
    return dict(info)


def tasks_of(source: RowSource, maker: PromptMaker) -> Iterable[Task]:
    rows = read_rows(source)
    if isinstance(rows, Sequence):
        return RowTasks(rows, maker)
    return LazyRowTasks(rows, maker)


class LazyRowTasks:
    """Tasks of rows whose number is unknown."""

    def __init__(self, rows: Iterable[Row], maker: PromptMaker) -> None:
        self.rows = rows
        self.maker = maker

    def __iter__(self) -> Iterator[Task]:
        return (self.maker.task(row, number) for number, row in enumerate(self.rows))
