"""Rows as they are stored: in the database, or, of runs that have ended, in segments in the object store.

Knows nothing of what is in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from proctor.server.db.tables import rollouts, run_segments
from proctor.server.storage.blobs import Blob, Blobs
from proctor.server.storage.contract import StorageAwayError
from proctor.server.storage.records import refer_to_files

STORED: tuple[Any, ...] = (
    rollouts.c.row,
    run_segments.c.sha256,
    rollouts.c.segment_start,
    rollouts.c.segment_bytes,
)
"""What is selected of a row."""
ROWS_WITH_SEGMENTS = rollouts.outerjoin(
    run_segments,
    (run_segments.c.run_id == rollouts.c.run_id) & (run_segments.c.number == rollouts.c.segment),
)
"""What it is selected from."""


class RowLocation(NamedTuple):
    """A compressed row, or where it is."""

    packed: bytes
    sha256: str | None
    start: int
    size: int


def stored_row(row: Row[Any]) -> RowLocation:
    size = len(row.row) if row.sha256 is None else row.segment_bytes
    return RowLocation(row.row, row.sha256, row.segment_start or 0, size)


async def fetch_packed(blobs: Blobs, rows: Sequence[RowLocation]) -> list[bytes]:
    """The same rows, compressed; one read for all rows of a segment."""
    segments: dict[str, tuple[int, bytes]] = {}
    for sha256 in {row.sha256 for row in rows if row.sha256 is not None}:
        mine = [row for row in rows if row.sha256 == sha256]
        start = min(row.start for row in mine)
        length = max(row.start + row.size for row in mine) - start
        try:
            segments[sha256] = (start, await blobs.read_part(sha256, start, length))
        except FileNotFoundError as error:
            raise StorageAwayError("Rows of this run are missing from the store; restore them.") from error
    return [row.packed if row.sha256 is None else cut(row, *segments[row.sha256]) for row in rows]


def cut(row: RowLocation, start: int, segment: bytes) -> bytes:
    return segment[row.start - start : row.start - start + row.size]


# Moving them


class RowsToMove(NamedTuple):
    """Rows of one run that become a segment."""

    places: list[int]
    packed: list[bytes]

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """The place of each row, where it begins in the segment, and its size."""
        start = 0
        for place, packed in zip(self.places, self.packed, strict=True):
            yield place, start, len(packed)
            start += len(packed)


def point_to_segment(connection: Connection, run_id: str, moved: RowsToMove, blob: Blob) -> None:
    """Replace rows by where they are now; does nothing if another server did it first."""
    refer_to_files(connection, [blob.sha256])
    of_run = rollouts.c.run_id == run_id
    left = select(rollouts.c.place).where(of_run, rollouts.c.segment.is_(None))
    known = set(connection.execute(left.where(rollouts.c.place.in_(moved.places))).scalars())
    if not known:
        return
    last = select(func.coalesce(func.max(run_segments.c.number), 0)).where(run_segments.c.run_id == run_id)
    number = connection.execute(last).scalar_one() + 1
    values = {"run_id": run_id, "number": number, "sha256": blob.sha256, "size": blob.size}
    connection.execute(insert(run_segments).values(values))
    for place, start, size in moved.spans():
        if place in known:
            where = {"row": b"", "segment": number, "segment_start": start, "segment_bytes": size}
            connection.execute(update(rollouts).where(of_run, rollouts.c.place == place).values(where))


def drop_empty_segments(connection: Connection, run_id: str) -> None:
    """Forget segments none of whose rows is left: later tries replaced them."""
    used = select(rollouts.c.segment).where(rollouts.c.run_id == run_id, rollouts.c.segment.is_not(None))
    connection.execute(
        delete(run_segments).where(run_segments.c.run_id == run_id, run_segments.c.number.not_in(used))
    )
