"""Store the reports of the process that plays a run: rows, log lines, its final report.

Only the attempt that holds the run is accepted. Repeating a report adds nothing. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from proctor.api.runner import Ending, LostRun, ReportReply
from proctor.api.runs import Cause, RunEvent
from proctor.run import ACTIVE
from proctor.server.db.tables import rollouts, runs
from proctor.server.problems import QuotaError, UnauthenticatedError
from proctor.server.runs import entries, event_log, queue, rows
from proctor.server.runs.causes import build_cause, cause_of_no_scores
from proctor.server.runs.incoming import PreparedReport
from proctor.server.runs.records import metadata_values

LOG_SHARE = 4
"""At most one in this many stored bytes of a run may be log: rows are its purpose."""
LINE_BYTES = 64
"""Roughly what is stored of a log line beside its text."""
LEFT_OUT = (
    "This run has logged too much; further log lines are omitted, unless the operator raises the limit "
    "(--run-storage-mb)."
)

COUNT_BATCH = (
    update(runs)
    .where(runs.c.id == bindparam("run_id"))
    .values(last_batch=bindparam("batch"), log_bytes=runs.c.log_bytes + bindparam("more_bytes"))
)
"""Made once, like the statements that store rows."""


def take_report(
    connection: Connection,
    run_id: str,
    attempt: int | None,
    news: PreparedReport,
    now: float,
    most_bytes: int = 2**62,
) -> ReportReply:
    """Store a report; `most_bytes` limits what is stored of the run in total."""
    row = lock_attempt(connection, run_id, attempt)
    is_known = news.batch <= row.last_batch
    if is_known and attempt is not None:  # everything was stored, and only the answer was lost
        return ReportReply(stop=row.status == "stopping")
    if row.row_bytes + new_bytes(news) > most_bytes - most_bytes // LOG_SHARE:
        return refuse_more(connection, row, now, most_bytes)
    events, log_bytes = ([], 0) if is_known else kept_lines(news.lines, row, most_bytes // LOG_SHARE)
    keep_facts(connection, row, news, is_known=is_known, log_bytes=log_bytes)
    if news.rows:
        events += build_row_events(rows.store_rows(connection, run_id, news.rows), now)
    event_log.append_events(connection, run_id, events)
    return ReportReply(stop=row.status == "stopping")


def keep_facts(
    connection: Connection, row: Row[Any], news: PreparedReport, *, is_known: bool, log_bytes: int
) -> None:
    if not is_known:
        connection.execute(COUNT_BATCH, {"run_id": row.id, "batch": news.batch, "more_bytes": log_bytes})
    values: dict[str, Any] = {}
    if news.planned is not None:
        values["planned"] = news.planned
    if news.metadata is not None:
        values |= metadata_values(news.metadata, row)
        values["row_bytes"] = runs.c.row_bytes + news.metadata_bytes
    if values:
        connection.execute(update(runs).where(runs.c.id == row.id).values(values))


def new_bytes(news: PreparedReport) -> int:
    return sum(map(rows.stored_bytes, news.rows)) + news.metadata_bytes


def line_bytes(line: RunEvent) -> int:
    return len(line.text) + LINE_BYTES


def refuse_more(connection: Connection, row: Row[Any], now: float, most_bytes: int) -> ReportReply:
    """The run has reached its storage limit: a hosted run is stopped, with the results it has so far."""
    message = (
        f"The rows of this run take more than the {most_bytes - most_bytes // LOG_SHARE:,} bytes that the "
        f"server stores of one run beside its log (--run-storage-mb)."
    )
    if row.kind != "hosted":
        raise QuotaError(f"{message} Upload less, or ask the operator for more.", most_bytes=most_bytes)
    queue.stop(connection, row.id, build_cause("limit_exceeded", message), now)
    return ReportReply(stop=True)


def kept_lines(lines: Sequence[RunEvent], row: Row[Any], most_bytes: int) -> tuple[list[RunEvent], int]:
    """As many lines as there is room for, and their bytes. If some are omitted, the last line says so, and
    the count exceeds the limit: later lines are dropped."""
    left_events, left_bytes = event_log.MOST_EVENTS - row.last_seq, most_bytes - row.log_bytes
    if left_events < 0 or left_bytes < 0:
        return [], 0
    kept: list[RunEvent] = []
    size = 0
    for line in lines:
        size += line_bytes(line)
        if len(kept) == left_events or size > left_bytes:
            return [*kept, event_log.build_log_event(LEFT_OUT, at=line.at, level="WARNING")], left_bytes + 1
        kept.append(line)
    return kept, size


def build_row_events(taken: rows.AddedRows, now: float) -> list[RunEvent]:
    if not taken.briefs:
        return []
    events = [RunEvent(seq=0, at=now, kind="rollout", rollout=brief) for brief in taken.briefs]
    return [*events, RunEvent(seq=0, at=now, kind="progress", progress=taken.progress)]


def take_ending(
    connection: Connection, run_id: str, attempt: int | None, ending: Ending, now: float, most_crashes: int
) -> None:
    """The final report of an attempt. One that stops without being asked to was stopped by its host."""
    row = lock_attempt(connection, run_id, attempt)
    if ending.metadata:
        values = metadata_values(ending.metadata, row)
        connection.execute(update(runs).where(runs.c.id == run_id).values(values))
    if ending.status == "stopped" and row.status == "running":
        why = build_cause("crashed", "The host that played the run was shut down.")
        queue.report_lost(connection, run_id, LostRun(why, blameless=True), now, most_crashes)
        return
    why_nothing = find_no_scores_cause(connection, row) if ending.status == "finished" else None
    if why_nothing is not None:
        queue.end_run(connection, row, "failed", why_nothing, now)
    else:
        queue.end_run(connection, row, ending.status, ending.cause, now)


def find_no_scores_cause(connection: Connection, row: Row[Any]) -> Cause | None:
    if row.scored or not row.failed:
        return None
    counted = connection.execute(
        select(rollouts.c.outcome, func.count().label("number"))
        .where(rollouts.c.run_id == row.id)
        .group_by(rollouts.c.outcome)
    )
    outcomes = {each.outcome: each.number for each in counted}
    return cause_of_no_scores(outcomes, commonest_error(connection, row.id))


def commonest_error(connection: Connection, run_id: str) -> str:
    counts: dict[str, int] = {}
    for line in entries.iterate_lines(connection, run_id):
        if line.error is not None:
            text = f"{line.error.error}: {line.error.message}"
            counts[text] = counts.get(text, 0) + 1
    return max(counts, key=lambda text: counts[text])[: rows.LONGEST_ERROR] if counts else ""


def lock_attempt(connection: Connection, run_id: str, attempt: int | None) -> Row[Any]:
    row = queue.lock_run(connection, run_id)
    if row.kind == "hosted" and (row.attempt != attempt or row.status not in ACTIVE):
        raise UnauthenticatedError("This attempt of the run is over.", code="run_over")
    return row
