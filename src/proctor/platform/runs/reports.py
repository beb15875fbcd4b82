"""What the process that plays a run says: rows, log lines, its last word.

Only the attempt that holds the run is heard. Saying the same twice adds nothing. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select, update

from proctor.api.runs import Cause, Ending, Lost, Report, RunEvent, Told
from proctor.platform.db.tables import rollouts, runs
from proctor.platform.problems import TooLargeError, UnauthenticatedError
from proctor.platform.runs import queue, rows, story
from proctor.platform.runs.causes import cause, of_nothing_scored
from proctor.run import ACTIVE

LARGEST_METADATA = 4 * 2**20
LEFT_OUT = "This run has said so much that further log lines are left out."


def take_report(connection: Connection, run_id: str, attempt: int | None, report: Report, now: float) -> Told:
    row = held(connection, run_id, attempt)
    check_metadata(report.metadata)
    is_known = report.batch <= row.last_batch
    if is_known and attempt is not None:  # all of it was kept, and only the answer was lost
        return Told(stop=row.status == "stopping")
    told = [] if is_known else log_events(report, row.last_seq)
    values: dict[str, Any] = {}
    if not is_known:
        values["last_batch"] = report.batch
    if report.planned is not None:
        values["planned"] = report.planned
    if report.metadata is not None:
        values["metadata"] = dict(report.metadata)
    if values:
        connection.execute(update(runs).where(runs.c.id == run_id).values(values))
    if report.rows:
        told += row_events(rows.take(connection, run_id, report.rows), now)
    story.tell(connection, run_id, told)
    return Told(stop=row.status == "stopping")


def log_events(report: Report, last_seq: int) -> list[RunEvent]:
    if last_seq > story.MOST_EVENTS:
        return []
    lines = [story.log_line(each.text, at=each.at, level=each.level) for each in report.logs]
    if last_seq + len(lines) > story.MOST_EVENTS:
        at = lines[-1].at if lines else 0.0
        lines.append(story.log_line(LEFT_OUT, at=at, level="WARNING"))
    return lines


def row_events(taken: rows.Taken, now: float) -> list[RunEvent]:
    if not taken.briefs:
        return []
    told = [RunEvent(seq=0, at=now, kind="rollout", rollout=brief) for brief in taken.briefs]
    return [*told, RunEvent(seq=0, at=now, kind="progress", progress=taken.progress)]


def take_ending(
    connection: Connection, run_id: str, attempt: int | None, ending: Ending, now: float, most_crashes: int
) -> None:
    """The last word of an attempt. One that stops though nobody asked it to was stopped by its host."""
    row = held(connection, run_id, attempt)
    check_metadata(ending.metadata)
    if ending.metadata:
        connection.execute(update(runs).where(runs.c.id == run_id).values(metadata=dict(ending.metadata)))
    if ending.status == "stopped" and row.status == "running":
        why = cause("crashed", "The host that played the run was shut down.")
        queue.lost(connection, run_id, Lost(why, blameless=True), now, most_crashes)
        return
    why_nothing = nothing_scored(connection, row) if ending.status == "finished" else None
    if why_nothing is not None:
        queue.end(connection, row, "failed", why_nothing, now)
    else:
        queue.end(connection, row, ending.status, ending.cause, now)


def nothing_scored(connection: Connection, row: Row[Any]) -> Cause | None:
    if row.scored or not row.failed:
        return None
    counted = connection.execute(
        select(rollouts.c.outcome, func.count().label("number"))
        .where(rollouts.c.run_id == row.id)
        .group_by(rollouts.c.outcome)
    )
    outcomes = {each.outcome: each.number for each in counted}
    return of_nothing_scored(outcomes, commonest_error(connection, row.id))


def commonest_error(connection: Connection, run_id: str) -> str:
    counts: dict[str, int] = {}
    for line in rows.every_line(connection, run_id):
        if line.error is not None:
            text = f"{line.error.error}: {line.error.message}"
            counts[text] = counts.get(text, 0) + 1
    return max(counts, key=lambda text: counts[text])[: rows.LONGEST_ERROR] if counts else ""


def check_metadata(metadata: Mapping[str, Any] | None) -> None:
    """It is read with the run, in every list."""
    if metadata and len(msgspec.json.encode(metadata)) > LARGEST_METADATA:
        raise TooLargeError(
            f"The metadata of a run has at most {LARGEST_METADATA // 2**20} MB.", most_bytes=LARGEST_METADATA
        )


def held(connection: Connection, run_id: str, attempt: int | None) -> Row[Any]:
    row = queue.locked(connection, run_id)
    if row.kind == "hosted" and (row.attempt != attempt or row.status not in ACTIVE):
        raise UnauthenticatedError("This attempt of the run is over.", code="run_over")
    return row
