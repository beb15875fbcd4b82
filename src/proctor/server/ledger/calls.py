"""Calls to models: one row for each answered request, booked together with its cost.

Knows nothing of HTTP, nor of how a cost is computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec
from sqlalchemy import Connection, bindparam, func, insert, select, update

from proctor.server.db.many_rows import ManyRows
from proctor.server.db.tables import calls, runs
from proctor.server.ledger.records import charge
from proctor.server.ledger.reservations import release
from proctor.trace import Usage

SEEN = select(calls.c.id).where(calls.c.id.in_(bindparam("ids", expanding=True)))
ADD = ManyRows(insert(calls))
COUNT = {
    "input_tokens": runs.c.input_tokens + bindparam("read"),
    "output_tokens": runs.c.output_tokens + bindparam("written"),
}
COUNT_TOKENS = update(runs).where(runs.c.id == bindparam("run")).values(COUNT)
COUNT_ALL = COUNT_TOKENS.values(cost=func.coalesce(runs.c.cost, 0) + bindparam("taken"))


class LedgerCall(msgspec.Struct, frozen=True, kw_only=True):
    """One answered request."""

    id: str
    at: float
    owner: str
    """The payer."""
    user: str
    run_id: str | None
    model: str
    provider: str
    usage: Usage
    cost: int | None
    """Millionths of a dollar; None if no price is known, or if the user pays the provider directly."""
    is_estimate: bool = False
    """The provider reported no usage."""
    is_reserved: bool = False
    """Its worst case was reserved, under its own id."""


def add_calls(connection: Connection, made: Sequence[LedgerCall], *, is_first_try: bool = False) -> None:
    """Book all of them and their costs, or none; calls that were already booked are left as they are, except
    on a first try, which then fails.

    Releases their reservations in the same transaction.
    """
    if reserved := [call.id for call in made if call.is_reserved]:
        release(connection, reserved)
    new = made if is_first_try else leave_out_booked(connection, made)
    if not new:
        return
    ADD(connection, [encode_call(call) for call in new])
    by_account: dict[tuple[str, str], list[LedgerCall]] = defaultdict(list)
    for call in new:
        by_account[(call.run_id or "", call.owner)].append(call)
    # In one order everywhere, so that two servers on one database never deadlock.
    for (run_id, _), group in sorted(by_account.items()):
        if run_id:
            count_run_usage(connection, run_id, group)
    for (run_id, owner), group in sorted(by_account.items(), key=lambda each: each[0][::-1]):
        if cost := total_cost(group):
            charge(connection, owner, cost, f"calls:{group[0].id}", run_id or None)


def leave_out_booked(connection: Connection, made: Sequence[LedgerCall]) -> Sequence[LedgerCall]:
    seen = set(connection.execute(SEEN, {"ids": [call.id for call in made]}).scalars())
    return [call for call in made if call.id not in seen]


def count_run_usage(connection: Connection, run_id: str, group: Collection[LedgerCall]) -> None:
    used = sum((call.usage for call in group), Usage())
    cost = total_cost(group)
    tokens = {"run": run_id, "read": used.input_tokens, "written": used.output_tokens}
    if cost is None:
        connection.execute(COUNT_TOKENS, tokens)
    else:
        connection.execute(COUNT_ALL, {**tokens, "taken": cost})


def total_cost(group: Collection[LedgerCall]) -> int | None:
    known = [call.cost for call in group if call.cost is not None]
    return sum(known) if known else None


def encode_call(call: LedgerCall) -> dict[str, object]:
    return {
        "id": call.id,
        "at": call.at,
        "owner": call.owner,
        "user": call.user,
        "run_id": call.run_id,
        "model": call.model,
        "provider": call.provider,
        "input_tokens": call.usage.input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cached_tokens": call.usage.cached_tokens,
        "cost": call.cost,
        "is_estimate": call.is_estimate,
    }
