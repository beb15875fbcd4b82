"""The newest finished run of each model on an environment, for those who choose a model for the next.

Knows nothing of HTTP.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select

from proctor.api.ledger import LastRun
from proctor.api.runs import RunScore
from proctor.server.db.tables import runs
from proctor.server.ledger.records import dollars
from proctor.server.people.tokens import Caller
from proctor.server.runs.records import may_change
from proctor.server.runs.sharing import readable_runs

COLUMNS = [
    runs.c[name] for name in ("id", "model", "owner", "team", "created_at", "score", "cost", "settled")
]


def list_last_runs(connection: Connection, caller: Caller, environment_id: str) -> dict[str, LastRun]:
    """By model. One query over the environment's runs, which are indexed by it."""
    wanted = [runs.c.environment_id == environment_id, runs.c.status == "finished", runs.c.score.is_not(None)]
    if (seen := readable_runs(connection, caller)) is not None:
        wanted.append(seen)
    rank = func.row_number().over(partition_by=runs.c.model, order_by=runs.c.created_at.desc())
    ranked = select(*COLUMNS, rank.label("rank")).where(*wanted).subquery()
    newest = select(ranked).where(ranked.c.rank == 1)
    return {row.model: describe_last(caller, row) for row in connection.execute(newest)}


def describe_last(caller: Caller, row: Row[Any]) -> LastRun:
    is_paid = row.cost is not None and row.settled and may_change(caller, row)
    return LastRun(
        run=row.id,
        at=row.created_at,
        score=msgspec.convert(row.score, RunScore),
        usd_per_rollout=dollars(row.cost) / row.settled if is_paid else None,
    )
