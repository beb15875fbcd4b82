"""The rollouts of a run, as rows: each (task, rollout) once, however often it is sent.

A settled rollout stays; a failed one is replaced by a later try. The run's counts are updated in the same
transaction. Knows nothing of who sends them.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, select, tuple_, update

from proctor.api.runs import Progress, RolloutBrief
from proctor.report.lines import RolloutLine
from proctor.server.db.tables import rollout_entries, rollouts, runs
from proctor.server.runs.incoming import ReadRow
from proctor.server.runs.stored_rows import ROWS_WITH_SEGMENTS, STORED, RowLocation, fetch_packed, stored_row
from proctor.server.storage.blobs import Blobs

Position = TypeVar("Position")

AT_ONCE = 500
LONGEST_ERROR = 300
MOST_BYTES = 16 * 2**20
"""Of rows that are in memory together: compressed, a row may be a thousand times smaller."""
ROW_BYTES = 512
"""Roughly what is stored of a rollout beside its row."""

# Made once: a report costs the server more for putting statements together than for running them.
LAST_PLACE = select(func.coalesce(func.max(rollouts.c.place), 0)).where(
    rollouts.c.run_id == bindparam("run_id")
)
KNOWN_ROWS = select(rollouts.c.task, rollouts.c.number, rollouts.c.settled, rollouts.c.place).where(
    rollouts.c.run_id == bindparam("run_id"),
    tuple_(rollouts.c.task, rollouts.c.number).in_(bindparam("keys", expanding=True)),
)
ADD_TO_COUNTS = (
    update(runs)
    .where(runs.c.id == bindparam("run_id"))
    .values(
        settled=runs.c.settled + bindparam("more_settled"),
        scored=runs.c.scored + bindparam("more_scored"),
        failed=runs.c.failed + bindparam("more_failed"),
        reward_sum=runs.c.reward_sum + bindparam("more_reward"),
        row_bytes=runs.c.row_bytes + bindparam("more_bytes"),
        archived_at=None,
    )
    .returning(runs.c.planned, runs.c.settled, runs.c.scored, runs.c.failed, runs.c.reward_sum)
)


class AddedRows(msgspec.Struct, frozen=True):
    """Which of the rows were new."""

    briefs: list[RolloutBrief]
    progress: Progress


def store_rows(connection: Connection, run_id: str, sent: Sequence[ReadRow]) -> AddedRows:
    """Store rows; those that are already there change nothing."""
    new = {(row.task, row.line.rollout): row for row in sent}
    known = find_known_rows(connection, run_id, list(new))
    accepted = {key: row for key, row in new.items() if key not in known or not known[key].settled}
    replaced = [known[key] for key in accepted if key in known]
    place = connection.execute(LAST_PLACE, {"run_id": run_id}).scalar_one()
    # Only now: if an index were reused, a reader that continues after it would miss the row.
    delete_rows(connection, run_id, replaced)
    if accepted:
        placed = list(enumerate(accepted.values(), place + 1))
        connection.execute(insert(rollouts), [encode_row(run_id, row, number) for number, row in placed])
        entries = [{"run_id": run_id, "place": number, "entry": row.entry} for number, row in placed]
        connection.execute(insert(rollout_entries), entries)
    lines = [row.line for row in accepted.values()]
    stored = sum(map(stored_bytes, accepted.values()))
    progress = update_counts(connection, run_id, lines, replaced, stored)
    return AddedRows([build_brief(line) for line in lines], progress)


def stored_bytes(row: ReadRow) -> int:
    """Including what is stored beside it: its columns, its event."""
    return len(row.packed) + len(row.entry) + ROW_BYTES


def find_known_rows(
    connection: Connection, run_id: str, keys: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], Row[Any]]:
    found: dict[tuple[str, int], Row[Any]] = {}
    for start in range(0, len(keys), AT_ONCE):
        wanted = {"run_id": run_id, "keys": keys[start : start + AT_ONCE]}
        found.update({(row.task, row.number): row for row in connection.execute(KNOWN_ROWS, wanted)})
    return found


def delete_rows(connection: Connection, run_id: str, known: Sequence[Row[Any]]) -> None:
    for start in range(0, len(known), AT_ONCE):
        places = [row.place for row in known[start : start + AT_ONCE]]
        for table in (rollouts, rollout_entries):
            connection.execute(delete(table).where(table.c.run_id == run_id, table.c.place.in_(places)))


def encode_row(run_id: str, row: ReadRow, place: int) -> dict[str, Any]:
    line = row.line
    return {
        "run_id": run_id,
        "task": row.task,
        "number": line.rollout,
        "place": place,
        "settled": line.is_settled,
        "outcome": line.outcome,
        "reward": line.reward,
        "seconds": line.timing.total,
        "input_tokens": line.token_usage.input_tokens,
        "output_tokens": line.token_usage.output_tokens,
        "row": row.packed,
    }


def update_counts(
    connection: Connection,
    run_id: str,
    lines: Sequence[RolloutLine],
    replaced: Sequence[Row[Any]],
    stored: int,
) -> Progress:
    """Update the run's counts: add what came, subtract what it replaced."""
    settled = sum(line.is_settled for line in lines)
    rewards = [line.reward for line in lines if line.reward is not None]
    more = {
        "more_settled": settled,
        "more_scored": len(rewards),
        "more_failed": len(lines) - settled - len(replaced),
        "more_reward": sum(rewards),
        "more_bytes": stored,
    }
    return progress_of(connection.execute(ADD_TO_COUNTS, {"run_id": run_id, **more}).one())


def progress_of(row: Row[Any]) -> Progress:
    return Progress(
        planned=row.planned,
        settled=row.settled,
        scored=row.scored,
        failed=row.failed,
        mean_reward=row.reward_sum / row.scored if row.scored else None,
    )


def build_brief(line: RolloutLine) -> RolloutBrief:
    error = "" if line.error is None else f"{line.error.error}: {line.error.message}"
    return RolloutBrief(
        task=str(line.example_id)[:LONGEST_ERROR],
        number=line.rollout,
        outcome=line.outcome,
        reward=line.reward,
        seconds=line.timing.total,
        input_tokens=line.token_usage.input_tokens,
        output_tokens=line.token_usage.output_tokens,
        error=error[:LONGEST_ERROR],
    )


# Reading


def read_rows(
    connection: Connection,
    run_id: str,
    after: int,
    limit: int,
    *,
    failed: bool = False,
    settled: bool = False,
    task: str | None = None,
) -> list[tuple[int, RowLocation]]:
    """Rows after a position, with their positions: up to the limit, or as many as may be in memory
    together."""
    wanted = row_conditions(run_id, after, failed=failed, settled=settled, task=task)
    query = select(rollouts.c.place, *STORED).select_from(ROWS_WITH_SEGMENTS).where(*wanted)
    found: list[tuple[int, RowLocation]] = []
    size = 0
    for each in connection.execute(query.order_by(rollouts.c.place).limit(limit)):
        row = stored_row(each)
        size += row.size
        if found and size > MOST_BYTES:
            break
        found.append((each.place, row))
    return found


async def unpack_rows(
    blobs: Blobs, found: Sequence[tuple[Position, RowLocation]]
) -> list[tuple[Position, bytes]]:
    """The first of these rows, as many as may be in memory together."""
    packed = await fetch_packed(blobs, [row for _, row in found])
    places = [place for place, _ in found]
    return await asyncio.to_thread(unpack_first, list(zip(places, packed, strict=True)))


def unpack_first(packed: Sequence[tuple[Position, bytes]]) -> list[tuple[Position, bytes]]:
    found: list[tuple[Position, bytes]] = []
    size = 0
    for place, each in packed:
        raw = zlib.decompress(each)
        size += len(raw)
        if found and size > MOST_BYTES:
            break
        found.append((place, raw))
    return found


def has_more(
    connection: Connection, run_id: str, after: int, *, failed: bool = False, task: str | None = None
) -> bool:
    query = select(rollouts.c.place).where(*row_conditions(run_id, after, failed=failed, task=task))
    return connection.execute(query.limit(1)).first() is not None


def row_conditions(
    run_id: str, after: int, *, failed: bool = False, settled: bool = False, task: str | None = None
) -> list[ColumnElement[bool]]:
    """As conditions: the requested rows of a run after a position."""
    found = [rollouts.c.run_id == run_id, rollouts.c.place > after]
    if failed:
        found.append(rollouts.c.settled.is_(False))
    if settled:
        found.append(rollouts.c.settled.is_(True))
    if task is not None:
        found.append(rollouts.c.task.in_([task, msgspec.json.encode(task).decode()]))
    return found
