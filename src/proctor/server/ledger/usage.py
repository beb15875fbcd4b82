"""Sums of the calls: by model, run or user, in all or by day. Knows nothing of HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Connection, Row, case, cast, func, literal, select

from proctor.api.ledger import UsageGroup, UsagePeriod, UsageTotal
from proctor.server.db.tables import calls
from proctor.server.ledger.records import dollars

DAY = 86_400
KEYS = {"model": calls.c.model, "run": func.coalesce(calls.c.run_id, ""), "user": calls.c.user}


class UsageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Whose calls to sum, and how."""

    owner: str | None = None
    """The account that paid; None for any."""
    run_id: str | None = None
    since: float | None = None
    group: UsageGroup = "model"
    by: UsagePeriod | None = None


def sum_usage(
    connection: Connection, wanted: UsageFilter, after: tuple[int, str] | None, limit: int
) -> list[UsageTotal]:
    """The newest day first, and one more than the limit if there is one."""
    key = KEYS[wanted.group]
    day = cast(calls.c.at, BigInteger) // DAY if wanted.by == "day" else literal(0)
    query = select(
        day.label("day"),
        key.label("key"),
        func.count().label("requests"),
        func.sum(calls.c.input_tokens).label("input_tokens"),
        func.sum(calls.c.output_tokens).label("output_tokens"),
        func.sum(calls.c.cached_tokens).label("cached_tokens"),
        func.sum(calls.c.cost).label("cost"),
        func.sum(case((calls.c.is_estimate, 1), else_=0)).label("estimated"),
    )
    if wanted.owner is not None:
        query = query.where(calls.c.owner == wanted.owner)
    if wanted.run_id is not None:
        query = query.where(calls.c.run_id == wanted.run_id)
    if wanted.since is not None:
        query = query.where(calls.c.at >= wanted.since)
    sums = query.group_by("day", "key").subquery()
    found = select(sums)
    if after is not None:
        found = found.where((sums.c.day < after[0]) | ((sums.c.day == after[0]) & (sums.c.key > after[1])))
    found = found.order_by(sums.c.day.desc(), sums.c.key).limit(limit + 1)
    return [describe_total(row, wanted) for row in connection.execute(found)]


def describe_total(row: Row[Any], wanted: UsageFilter) -> UsageTotal:
    named: dict[str, Any] = {wanted.group: row.key or None}
    return UsageTotal(
        **named,
        day=format_day(row.day) if wanted.by == "day" else None,
        requests=row.requests,
        input_tokens=int(row.input_tokens),
        output_tokens=int(row.output_tokens),
        cached_tokens=int(row.cached_tokens),
        cost_usd=None if row.cost is None else dollars(int(row.cost)),
        estimated_requests=int(row.estimated),
    )


def cursor_of(total: UsageTotal) -> tuple[int, str]:
    """The position of a total in the list, for cursors."""
    return parse_day(total.day), total.model or total.run or total.user or ""


def format_day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY, UTC).date().isoformat()


def parse_day(day: str | None) -> int:
    return 0 if day is None else int(datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()) // DAY
