"""The entries of a run's rollouts in the database: what lists and reports read of each.

They are stored with their rows. Rows that an earlier version of the server stored have none: theirs are made
when they are first read. Knows nothing of what is made of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, insert, select

from proctor.config.prices import find_price
from proctor.contracts import PASS_THRESHOLD
from proctor.reading.entries import StoredEntry, pack_entry, read_lenient_entry, unpack_entry
from proctor.report.lines import RolloutLine
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.server.db.tables import rollout_entries, rollouts

AT_ONCE = 2_000
ROWS_AT_ONCE = 100
MILLION = 1_000_000

# Built once: building a statement costs more than running it.
SAME = (rollout_entries.c.run_id == rollouts.c.run_id) & (rollout_entries.c.place == rollouts.c.place)
ENTRIES = (
    select(rollouts.c.place, rollout_entries.c.entry)
    .select_from(rollouts.outerjoin(rollout_entries, SAME))
    .where(rollouts.c.run_id == bindparam("run_id"), rollouts.c.place > bindparam("after"))
    .order_by(rollouts.c.place)
    .limit(bindparam("limit"))
)

PlacedEntry = tuple[int, bytes]
"""The place of a rollout, and its entry."""


class EntryBatch(msgspec.Struct, frozen=True):
    """Entries in order of arrival."""

    entries: list[PlacedEntry]
    unsaved: list[PlacedEntry] = []
    """Those that were not stored with their rows."""


def read_entries(connection: Connection, run_id: str, after: int, limit: int = AT_ONCE) -> EntryBatch:
    """Entries after a place."""
    asked = {"run_id": run_id, "after": after, "limit": limit}
    found: list[tuple[int, bytes | None]] = [
        (place, entry) for place, entry in connection.execute(ENTRIES, asked)
    ]
    missing = [place for place, entry in found if entry is None]
    if not missing:
        return EntryBatch(found)  # type: ignore[arg-type]
    made = make_entries(connection, run_id, missing)
    whole = {**dict(found), **dict(made)}
    return EntryBatch([(place, entry) for place, entry in whole.items() if entry is not None], made)


def make_entries(connection: Connection, run_id: str, places: Sequence[int]) -> list[PlacedEntry]:
    made: list[PlacedEntry] = []
    for start in range(0, len(places), ROWS_AT_ONCE):
        query = select(rollouts.c.place, rollouts.c.row).where(
            rollouts.c.run_id == run_id, rollouts.c.place.in_(places[start : start + ROWS_AT_ONCE])
        )
        made += [
            (row.place, pack_entry(read_lenient_entry(zlib.decompress(row.row))))
            for row in connection.execute(query)
        ]
    return made


def save_entries(connection: Connection, run_id: str, made: Sequence[PlacedEntry]) -> None:
    """Store entries that were made just now, unless another request did, or their rows were replaced."""
    places = [place for place, _ in made]
    for start in range(0, len(places), AT_ONCE):
        some = places[start : start + AT_ONCE]
        known = select(rollout_entries.c.place).where(
            rollout_entries.c.run_id == run_id, rollout_entries.c.place.in_(some)
        )
        there = select(rollouts.c.place).where(rollouts.c.run_id == run_id, rollouts.c.place.in_(some))
        wanted = set(connection.execute(there).scalars()) - set(connection.execute(known).scalars())
        values = [
            {"run_id": run_id, "place": place, "entry": entry} for place, entry in made if place in wanted
        ]
        if values:
            connection.execute(insert(rollout_entries), values)


def iterate_entries(connection: Connection, run_id: str) -> Iterator[StoredEntry]:
    after = 0
    while found := read_entries(connection, run_id, after).entries:
        yield from (unpack_entry(packed) for _, packed in found)
        after = found[-1][0]


def iterate_lines(connection: Connection, run_id: str) -> Iterator[RolloutLine]:
    """The rollouts of a run as a report reads them."""
    return (entry.line for entry in iterate_entries(connection, run_id))


# Reports


def summarize_rows(connection: Connection, run: Row[Any]) -> Summary:
    """The report of a run's rollouts."""
    tally = Tally(parse_report_metadata(run.metadata).pass_threshold)
    for line in iterate_lines(connection, run.id):
        tally.add(line)
    return build_summary(tally, run)


def build_summary(tally: Tally, run: Row[Any]) -> Summary:
    """The same of rollouts that were counted. A run that was played here costs what was metered."""
    metered = None if run.cost is None else run.cost / MILLION
    models = (run.model, *tally.other_usage) if run.kind == "local" else ()
    summary = tally.summary(
        planned=run.planned,
        rollouts_per_task=parse_report_metadata(run.metadata).rollouts_per_example,
        model=run.model,
        prices={name: price for name in models if (price := find_price(name)) is not None},
    )
    if metered is None:
        return summary
    return msgspec.structs.replace(summary, cost_usd=metered, unpriced_models=())


class ReportMetadata(msgspec.Struct, frozen=True):
    """What a report needs from a run's metadata.json, which the process that played it wrote."""

    pass_threshold: float = PASS_THRESHOLD
    rollouts_per_example: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1


def parse_report_metadata(metadata: Any) -> ReportMetadata:
    given = {name: value for name, value in dict(metadata or {}).items() if value is not None}
    try:
        return msgspec.convert(given, ReportMetadata)
    except msgspec.ValidationError:
        return ReportMetadata()
