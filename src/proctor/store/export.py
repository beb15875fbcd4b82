"""A run as a flat table: one row per rollout, with the same columns in every row.

The file is read twice, so that the columns are known before the first row is written; rows are streamed, so
that a run of any size fits. Knows nothing of terminals, or of where runs are stored.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.errors import ConfigError, StoreError, did_you_mean
from proctor.report.lines import RolloutLine, TimingLine
from proctor.store.folder import RESULTS, UNREADABLE, open_replacement, read_metadata
from proctor.store.rows import OPTIONAL
from proctor.support.regular_files import open_regular
from proctor.trace import Message, text_of

FORMATS = ("csv", "jsonl", "parquet")
BATCH_ROWS = 1_000
BATCH_CHARACTERS = 32_000_000
"""Held at once for a Parquet file; long conversations fill a batch sooner."""
LARGEST = 2**63


class ExportPhase(msgspec.Struct, frozen=True):
    duration: float = 0.0


class ExportTiming(TimingLine, frozen=True):
    generation: ExportPhase = ExportPhase()
    scoring: ExportPhase = ExportPhase()
    model: ExportPhase = ExportPhase()


class ExportRow(RolloutLine, frozen=True):
    """The fields of a stored rollout that a table shows."""

    prompt: tuple[Message, ...] = ()
    completion: tuple[Message, ...] = ()
    answer: Any = None
    info: Any = None
    timing: ExportTiming = ExportTiming()
    is_truncated: bool = False


RawFields = Mapping[str, msgspec.Raw]
"""All fields of a stored rollout, undecoded."""


class ExportColumn(msgspec.Struct, frozen=True):
    """One column, of one kind in every row: text, number, whole or flag."""

    name: str
    kind: str
    of: Callable[[ExportRow, RawFields], Any]


class ExportTable(msgspec.Struct, frozen=True):
    """A scanned run, ready to be written."""

    path: Path
    columns: tuple[ExportColumn, ...]
    rows: int
    faults: int
    """Unreadable lines, which are left out."""

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def values(self) -> Iterator[list[Any]]:
        """The rows in the order they were finished; rows added after the scan are left out."""
        for row, fields in itertools.islice(read_valid_lines(self.path), self.rows):
            yield [column.of(row, fields) for column in self.columns]


# Reading


class ScannedRun(msgspec.Struct, frozen=True):
    """A run whose lines were read once, to learn which columns it needs."""

    path: Path
    metadata: Mapping[str, Any]
    metrics: set[str]
    fields: set[str]
    rows: int
    faults: int
    are_numbered: bool
    """Whether all ids of its tasks are numbers."""


def scan_table(folder: Path, wanted: Sequence[str] = ()) -> ExportTable:
    """Scan a run for its columns, and select the wanted ones in the order given."""
    return scan_tables([folder], wanted)[0]


def scan_tables(folders: Sequence[Path], wanted: Sequence[str] = ()) -> list[ExportTable]:
    """A table for each run, all with the same columns: those that any of the runs needs."""
    scanned = [scan_run(folder) for folder in folders]
    metrics = set().union(*(run.metrics for run in scanned))
    fields = set().union(*(run.fields for run in scanned))
    are_numbered = all(run.are_numbered for run in scanned)
    return [
        ExportTable(
            run.path,
            select_columns(list_columns(run.metadata, metrics, fields, are_numbered), wanted),
            run.rows,
            run.faults,
        )
        for run in scanned
    ]


def scan_run(folder: Path) -> ScannedRun:
    metadata = read_metadata(folder)
    path = folder / RESULTS
    metrics: set[str] = set()
    names: set[str] = set()
    rows = faults = 0
    are_numbered = True
    for line in read_lines(path):
        if line is None:
            faults += 1
            continue
        row, fields = line
        rows += 1
        metrics.update(row.metrics)
        names.update(fields)
        are_numbered = are_numbered and isinstance(row.example_id, int) and abs(row.example_id) < LARGEST
    return ScannedRun(path, metadata, metrics, names, rows, faults, are_numbered)


def list_columns(
    metadata: Mapping[str, Any], metrics: set[str], fields: set[str], are_numbered: bool
) -> list[ExportColumn]:
    return [
        *(constant_column(name, metadata.get(name)) for name in RUN_COLUMNS),
        task_column(are_numbered),
        *NUMBER_COLUMNS,
        *map(metric_column, sorted(metrics)),
        *TEXT_COLUMNS,
        *map(state_column, sorted(fields - KNOWN_FIELDS)),
    ]


def read_lines(path: Path) -> Iterator[tuple[ExportRow, RawFields] | None]:
    """Every line; None for an unreadable one."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            for raw in file:
                yield decode_line(raw)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


def read_valid_lines(path: Path) -> Iterator[tuple[ExportRow, RawFields]]:
    return (line for line in read_lines(path) if line is not None)


def decode_line(raw: bytes) -> tuple[ExportRow, RawFields] | None:
    if not raw.endswith(b"\n"):
        return None  # still being written, or cut off
    with suppress(*UNREADABLE):
        return _row(raw), _fields(raw)
    return None


_row = msgspec.json.Decoder(ExportRow).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def select_columns(columns: Sequence[ExportColumn], wanted: Sequence[str]) -> tuple[ExportColumn, ...]:
    if not wanted:
        return tuple(columns)
    by_name = {column.name: column for column in columns}
    for name in wanted:
        if name not in by_name:
            raise ConfigError(f"This run has no column {name!r}{did_you_mean(name, by_name)}")
    return tuple(by_name[name] for name in dict.fromkeys(wanted))


# Columns


def constant_column(name: str, value: Any) -> ExportColumn:
    return ExportColumn(name, "text", lambda row, fields: to_text(value))  # noqa: ARG005


def task_column(are_numbered: bool) -> ExportColumn:
    if are_numbered:
        return ExportColumn("example_id", "whole", lambda row, _: row.example_id)
    return ExportColumn("example_id", "text", lambda row, _: str(row.example_id))


def metric_column(name: str) -> ExportColumn:
    return ExportColumn(f"metric.{name}", "number", lambda row, _: row.metrics.get(name))


def state_column(name: str) -> ExportColumn:
    """State columns requested with -C."""
    return ExportColumn(f"state.{name}", "text", lambda _, fields: to_text(decode_raw(fields.get(name))))


RUN_COLUMNS = ("run_id", "env_id", "model", "label")
NUMBER_COLUMNS = (
    ExportColumn("rollout", "whole", lambda row, _: row.rollout),
    ExportColumn("task_hash", "text", lambda row, _: row.task_hash),
    ExportColumn("outcome", "text", lambda row, _: row.outcome),
    ExportColumn("reward", "number", lambda row, _: row.reward),
    ExportColumn("is_truncated", "flag", lambda row, _: row.is_truncated),
    ExportColumn("stop_condition", "text", lambda row, _: row.stop_condition),
    ExportColumn("attempts", "whole", lambda row, _: row.attempts),
    ExportColumn("input_tokens", "whole", lambda row, _: row.token_usage.input_tokens),
    ExportColumn("output_tokens", "whole", lambda row, _: row.token_usage.output_tokens),
    ExportColumn("cached_tokens", "whole", lambda row, _: row.token_usage.cached_tokens),
    ExportColumn("reasoning_tokens", "whole", lambda row, _: row.token_usage.reasoning_tokens),
    ExportColumn("started_at", "number", lambda row, _: row.timing.start_time),
    ExportColumn("seconds", "number", lambda row, _: row.timing.total),
    ExportColumn("generation_seconds", "number", lambda row, _: row.timing.generation.duration),
    ExportColumn("scoring_seconds", "number", lambda row, _: row.timing.scoring.duration),
    ExportColumn("model_seconds", "number", lambda row, _: row.timing.model.duration),
)
TEXT_COLUMNS = (
    ExportColumn("error", "text", lambda row, _: row.error and row.error.error),
    ExportColumn("error_message", "text", lambda row, _: row.error and row.error.message),
    ExportColumn("error_phase", "text", lambda row, _: (row.error and row.error.phase) or None),
    ExportColumn("prompt", "text", lambda row, _: format_conversation(row.prompt)),
    ExportColumn("completion", "text", lambda row, _: format_conversation(row.completion)),
    ExportColumn("answer", "text", lambda row, _: to_text(row.answer)),
    ExportColumn("info", "text", lambda row, _: encode_json(row.info) if row.info else None),
)
KNOWN_FIELDS = {*ExportRow.__struct_fields__, *OPTIONAL, "is_completed", "model_calls"}


def format_conversation(messages: Sequence[Message]) -> str:
    """A conversation for people: the text alone if there is only one message, else each with its role."""
    if len(messages) == 1 and not messages[0].get("tool_calls"):
        return text_of(messages[0])
    return "\n\n".join(f"{message.get('role', '?')}: {format_message(message)}" for message in messages)


def format_message(message: Message) -> str:
    calls = [f"→ {call.get('name')}({call.get('arguments')})" for call in message.get("tool_calls") or ()]
    return "\n".join(part for part in (text_of(message), *calls) if part)


def to_text(value: Any) -> str | None:
    """Text as it is, anything else as JSON: a column never changes its type."""
    if value is None or isinstance(value, str):
        return value
    return encode_json(value)


def encode_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def decode_raw(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else msgspec.json.decode(raw)


# Writing


def write_file(table: ExportTable, kind: str, path: Path) -> None:
    """Write the whole table, or leave the file as it was."""
    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[kind]
    try:
        with open_replacement(path) as handle, open(handle, "wb", closefd=False) as file:
            write(table, file)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error


def write_csv(table: ExportTable, file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(table.values())
    text.detach()


def write_jsonl(table: ExportTable, file: BinaryIO) -> None:
    names, encode = table.names, msgspec.json.Encoder().encode
    file.writelines(encode(dict(zip(names, values, strict=True))) + b"\n" for values in table.values())


def write_parquet(table: ExportTable, file: BinaryIO) -> None:
    arrow, parquet = import_arrow()
    schema = arrow_schema(table, arrow)
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in arrow_batches(table, arrow):
            writer.write_batch(batch)


def arrow_schema(table: ExportTable, arrow: Any) -> Any:
    kinds = {"text": arrow.string(), "number": arrow.float64(), "whole": arrow.int64(), "flag": arrow.bool_()}
    return arrow.schema([(column.name, kinds[column.kind]) for column in table.columns])


def arrow_batches(table: ExportTable, arrow: Any) -> Iterator[Any]:
    schema = arrow_schema(table, arrow)
    for batch in batch_rows(table.values()):
        columns = zip(*batch, strict=True)
        arrays = [arrow.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        yield arrow.record_batch(arrays, schema=schema)


def import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(
            f"A Parquet file needs pyarrow ({error}); install it with pip install 'proctor[parquet]', or "
            f"choose --format csv."
        ) from error
    return pyarrow, pyarrow.parquet


def batch_rows(rows: Iterable[list[Any]]) -> Iterator[list[list[Any]]]:
    """Batches of a thousand rows, or fewer if they are long."""
    batch: list[list[Any]] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(batch) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
