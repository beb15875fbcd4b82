"""Earlier rollouts of an environment, for estimates: what each took, as far as their reader may see it.

Knows nothing of prices or of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select

from proctor.config.prices import Price
from proctor.reading.entries import unpack_entry
from proctor.server.db.tables import rollout_entries, rollouts, runs
from proctor.server.people.tokens import Caller
from proctor.server.runs.records import visibility_condition
from proctor.store.folder import UNREADABLE
from proctor.trace import Usage

MOST_ROLLOUTS = 2_000
"""The newest ones suffice."""
SAME = (rollout_entries.c.run_id == rollouts.c.run_id) & (rollout_entries.c.place == rollouts.c.place)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A requested run, with everything it names resolved."""

    environment_id: str
    version_id: str
    model: str
    """The server's name for it."""
    price: Price | None
    settings: Mapping[str, Any] = {}
    payer: str
    reader: Caller
    """The user the estimate is for: it reveals nothing of runs that they may not see."""
    facts: Mapping[str, Any] = {}
    """What is known of the tasks beyond what the check of the version saw."""


class PastRollout(msgspec.Struct, frozen=True):
    """What one rollout took."""

    usage: Usage
    seconds: float
    calls: int
    """Of the model; 0 if it is unknown."""


def read_past(connection: Connection, planned: PlannedRun) -> tuple[list[PastRollout], str]:
    """The newest rollouts that used any tokens: of the same model, else of any; and whose they are."""
    for model, who in ((planned.model, planned.model), (None, "any model")):
        query = (
            select(
                rollouts.c.input_tokens, rollouts.c.output_tokens, rollouts.c.seconds, rollout_entries.c.entry
            )
            .join(runs, runs.c.id == rollouts.c.run_id)
            .outerjoin(rollout_entries, SAME)
            .where(rollouts.c.input_tokens > 0)
        )
        found = connection.execute(newest_seen(query, planned, model)).all()
        if found:
            return [read_rollout(row) for row in found], who
    return [], ""


def newest_seen(query: Select[Any], planned: PlannedRun, model: str | None) -> Select[Any]:
    """Of rollouts of the environment: the newest that the reader may see."""
    query = (
        query.where(runs.c.environment_id == planned.environment_id)
        .order_by(runs.c.created_at.desc(), rollouts.c.place.desc())
        .limit(MOST_ROLLOUTS)
    )
    if model is not None:
        query = query.where(runs.c.model == model)
    visible = visibility_condition(planned.reader)
    return query if visible is None else query.where(visible)


def read_rollout(row: Any) -> PastRollout:
    calls = 0
    if row.entry is not None:
        with suppress(*UNREADABLE):
            calls = unpack_entry(row.entry).record.turns
    return PastRollout(Usage(row.input_tokens, row.output_tokens), row.seconds, calls)


def describe_past(past: Sequence[PastRollout], who: str) -> str:
    known = "1 earlier rollout" if len(past) == 1 else f"{len(past)} earlier rollouts"
    return f"{known} of this environment by {who}"
