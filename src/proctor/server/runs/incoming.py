"""Decode a report: within bounds, redacted, ready to be stored.

All of it is work for a thread: a report may be megabytes, and the transaction that stores it must be short.
Knows nothing of the database.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.api.bounds import LARGEST_METADATA, MEGABYTE, MOST_LOG_BYTES, MOST_LOG_LINES, MOST_ROWS
from proctor.api.field_problems import refuse, unknown_name
from proctor.api.runner import LogText, Report
from proctor.api.runs import RunEvent
from proctor.reading.entries import pack_entry, read_lenient_entry
from proctor.report.lines import RolloutLine
from proctor.server.problems import InvalidError, TooLargeError
from proctor.server.runs import event_log
from proctor.server.secrets.redaction import Redactor

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
LONGEST_TASK = 300
NOTHING = msgspec.Raw(b"[]")
NULL = msgspec.Raw(b"null")

_line = msgspec.json.Decoder(RolloutLine).decode


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A report of which only the size of its parts is known."""

    batch: int
    logs: msgspec.Raw = NOTHING
    rows: msgspec.Raw = NOTHING
    planned: int | None = None
    metadata: msgspec.Raw = NULL


class IncomingRowKey(msgspec.Struct, frozen=True):
    """What every row has: a list of anything else is rejected at its first item."""

    example_id: msgspec.Raw
    rollout: int
    outcome: str


class ReadRow(msgspec.Struct, frozen=True):
    """A row as it is stored."""

    line: RolloutLine
    packed: bytes
    entry: bytes
    """What lists and reports read of it."""

    @property
    def task(self) -> str:
        """The task's id as JSON: the task "1" is not the task 1."""
        return msgspec.json.encode(self.line.example_id).decode()


class PreparedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report that is ready to be stored."""

    batch: int
    lines: list[RunEvent]
    rows: list[ReadRow]
    planned: int | None = None
    metadata: Mapping[str, Any] | None = None
    metadata_bytes: int = 0


def read_report(body: bytes, *, strict: bool = False) -> Report:
    """Each part is measured before it is decoded: many small items take longer than a few large ones.

    A report of a run's own process may have parts that this server does not know yet; an upload may not.
    """
    if strict:
        refuse_unknown_parts(body)
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
        check_size("metadata", envelope.metadata, LARGEST_METADATA)
        check_size("log lines", envelope.logs, MOST_LOG_BYTES)
        logs = msgspec.json.decode(envelope.logs, type=list[LogText])
        metadata = msgspec.json.decode(envelope.metadata, type=dict[str, Any] | None)
    except UNREADABLE as error:
        raise InvalidError(f"The request is malformed: {error}") from error
    if len(logs) > MOST_LOG_LINES:
        raise TooLargeError(
            f"A report has at most {MOST_LOG_LINES:,} log lines, this one has {len(logs):,}; send several.",
            most_lines=MOST_LOG_LINES,
        )
    rows = read_rows(envelope.rows)
    return Report(batch=envelope.batch, logs=logs, rows=rows, planned=envelope.planned, metadata=metadata)


def refuse_unknown_parts(body: bytes) -> None:
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise InvalidError(f"The request is malformed: {error}") from error
    known = dict.fromkeys(Envelope.__struct_fields__)
    refuse(unknown_name(name, known, "a field of a report") for name in parts if name not in known)


def read_rows(raw: msgspec.Raw) -> list[msgspec.Raw]:
    try:
        count = len(msgspec.json.decode(raw, type=list[IncomingRowKey]))
    except UNREADABLE as error:
        raise bad_row(error) from error
    if count > MOST_ROWS:
        raise TooLargeError(
            f"A report has at most {MOST_ROWS:,} rows, this one has {count:,}; send several.",
            most_rows=MOST_ROWS,
        )
    return msgspec.json.decode(raw, type=list[msgspec.Raw])


def check_size(what: str, raw: msgspec.Raw, most: int) -> None:
    size = memoryview(raw).nbytes
    if size > most:
        raise TooLargeError(
            f"The {what} of a report may take at most {most // MEGABYTE} MB, "
            f"these take {size / MEGABYTE:.1f} MB; send less at once.",
            most_bytes=most,
        )


def prepare(report: Report, redactor: Redactor | None = None) -> PreparedReport:
    """A report as it is stored; redacted if there is a redactor."""
    clean = redactor or Redactor({})
    metadata = report.metadata
    if redactor is not None and metadata is not None:
        metadata = redactor.value(metadata)
    return PreparedReport(
        batch=report.batch,
        lines=[
            event_log.build_log_event(clean.text(each.text), at=each.at, level=each.level)
            for each in report.logs
        ],
        rows=read_each(report.rows, redactor),
        planned=report.planned,
        metadata=metadata,
        metadata_bytes=len(msgspec.json.encode(metadata)) if metadata else 0,
    )


def read_each(raws: Sequence[bytes], redactor: Redactor | None) -> list[ReadRow]:
    return [read_row(bytes(raw) if redactor is None else redactor.json(bytes(raw))) for raw in raws]


def read_row(raw: bytes) -> ReadRow:
    """A row on a single line, as in the file, however it was sent."""
    try:
        line = _line(raw)
        entry = read_lenient_entry(raw)
        raw.decode()  # parts that a report does not read are checked nowhere else
        flat = msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw
    except UNREADABLE as error:
        raise bad_row(error) from error
    if problem := line.illegal_score:
        task = str(line.example_id)[:LONGEST_TASK]
        raise InvalidError(f"Rollout {line.rollout} of task {task!r}: {problem}.", code="bad_row")
    return ReadRow(line, zlib.compress(flat.rstrip(b"\n"), 1), pack_entry(entry))


def bad_row(error: Exception) -> InvalidError:
    return InvalidError(f"A row is malformed: {error}.", code="bad_row")
