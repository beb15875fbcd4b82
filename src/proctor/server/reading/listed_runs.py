"""The runs that a caller may see, as lists need them: few columns of many runs.

Filters that name a column narrow the query; all of them are applied again by reading/run_lists.py, so that a
list means the same whatever stores the runs. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, select

from proctor.api.run_list import RunListQuery
from proctor.api.runs import RunInfo, RunKind, RunOrigin, RunScore
from proctor.run import RunStatus
from proctor.server.db.tables import run_origins, runs
from proctor.server.people.tokens import Caller
from proctor.server.runs import records, sharing
from proctor.server.sources.origins import list_origins

MILLION = 1_000_000
AT_ONCE = 500
COLUMNS: list[ColumnElement[Any]] = [
    runs.c[name]
    for name in (
        "id",
        "kind",
        "name",
        "owner",
        "team",
        "visibility",
        "environment",
        "version",
        "model",
        "status",
        "score",
        "cost",
        "suite",
        "tags",
        "rescored_from",
        "created_at",
        "started_at",
        "ended_at",
    )
]
COLUMNS.append(runs.c.settings["agent"].as_string().label("agent"))


class VisibleRun(msgspec.Struct, frozen=True, kw_only=True):
    """What lists read of a run, as far as their reader may see it."""

    id: str
    kind: RunKind
    name: str
    owner: str
    team: str | None
    agent: str | None
    environment: str
    version: str | None
    model: str
    status: RunStatus
    score: RunScore | None
    cost_usd: float | None
    suite: str | None
    tags: list[str]
    rescored_from: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    origin: RunOrigin | None


def list_visible(
    connection: Connection, caller: Caller, query: RunListQuery, *, for_facets: bool = False
) -> list[VisibleRun]:
    """The runs that a caller may see and that may match. Those of others are listed only where an
    environment, an owner or a sweep is named."""
    is_wide = bool(query.environment or query.owner or query.suite)
    seen = sharing.readable_runs(connection, caller) if is_wide else records.visibility_condition(caller)
    wanted = narrow(query, for_facets=for_facets)
    found = select(*COLUMNS).where(*wanted, *([] if seen is None else [seen]))
    origins = list_origins(connection)
    return [build_visible(caller, row, origins) for row in connection.execute(found)]


def narrow(query: RunListQuery, *, for_facets: bool) -> list[ColumnElement[bool]]:
    """As conditions: what the database can tell quickly. Facets count what other values would have."""
    found: list[ColumnElement[bool]] = []
    if query.since is not None:
        found.append(runs.c.created_at >= query.since)
    if query.until is not None:
        found.append(runs.c.created_at <= query.until)
    if query.suite is not None:
        found.append(runs.c.suite == query.suite)
    if query.rescored_from:
        found.append(runs.c.rescored_from.in_(query.rescored_from))
    if query.repository is not None or query.config_hash is not None or query.commit_sha is not None:
        found.append(runs.c.id.in_(select(run_origins.c.run_id)))
    if not for_facets:
        found += [
            runs.c[name].in_(values)
            for name in ("status", "kind", "model", "owner", "version")
            if (values := getattr(query, name))
        ]
        if query.environment:
            slugs = [word.partition("@")[0] for word in query.environment]
            found.append(runs.c.environment.in_([*query.environment, *slugs]))
    return found


def build_visible(caller: Caller, row: Row[Any], origins: Mapping[str, RunOrigin]) -> VisibleRun:
    is_own = records.may_change(caller, row)
    return VisibleRun(
        id=row.id,
        kind=row.kind,
        name=row.name,
        owner=row.owner,
        team=row.team if is_own else None,
        agent=row.agent,
        environment=row.environment,
        version=row.version,
        model=row.model,
        status=row.status,
        score=None if row.score is None else msgspec.convert(row.score, RunScore),
        cost_usd=row.cost / MILLION if is_own and row.cost is not None else None,
        suite=row.suite,
        tags=row.tags or [],
        rescored_from=row.rescored_from,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        origin=origins.get(row.id) if is_own else None,
    )


def describe_runs(connection: Connection, caller: Caller, ids: Sequence[str]) -> list[RunInfo]:
    """Runs as lists show them, in the given order; those that are gone by now are left out."""
    rows = {row.id: row for row in read_brief_rows(connection, ids)}
    waiting = records.QueueState.of(connection, list(rows.values()))
    origins = list_origins(connection)
    found = (rows[run_id] for run_id in ids if run_id in rows)
    return [
        sharing.limit_to(
            sharing.access_in_list(caller, row), records.describe_row(row, origins.get(row.id), waiting)
        )
        for row in found
    ]


def read_brief_rows(connection: Connection, ids: Sequence[str]) -> Iterable[Row[Any]]:
    for start in range(0, len(ids), AT_ONCE):
        query = select(*records.BRIEF_COLUMNS, *records.NAMED_SETTINGS)
        yield from connection.execute(query.where(runs.c.id.in_(ids[start : start + AT_ONCE])))


def read_settings(connection: Connection, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The settings of runs, without those that only their owners read."""
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(ids), AT_ONCE):
        query = select(runs.c.id, runs.c.settings).where(runs.c.id.in_(ids[start : start + AT_ONCE]))
        found |= {row.id: sharing.without_private(row.settings or {}) for row in connection.execute(query)}
    return found
