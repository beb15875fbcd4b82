"""The stored rollouts of a run, each once, for writing them in another tool's shape.

Knows nothing of the formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from proctor.rollout import RolloutKey
from proctor.store.folder import UNREADABLE
from proctor.store.replay import StoredRow
from proctor.store.traces import iterate_keyed_rows, read_raw_lines


class RowCounts(msgspec.Struct):
    """What was written, counted on the way."""

    rows: int = 0
    failed: int = 0
    """Rows without a reward."""
    faults: int = 0
    """Lines that could not be read, which are left out."""


def iterate_rows(folder: Path, counts: RowCounts) -> Iterator[StoredRow]:
    """Of several rows of one rollout, the first that is settled, else the first, as a report counts them."""
    decode = msgspec.json.Decoder(StoredRow).decode
    settled = {(key.example_id, key.rollout) for key, _ in iterate_keyed_rows(folder) if key.is_settled}
    seen: set[RolloutKey] = set()
    for raw in read_raw_lines(folder):
        row = None
        with suppress(*UNREADABLE):
            row = decode(raw)
        if row is None:
            counts.faults += 1
            continue
        if row.key in seen or (row.key in settled and not row.is_settled):
            continue
        seen.add(row.key)
        counts.rows += 1
        counts.failed += row.reward is None
        yield row
