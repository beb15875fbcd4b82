"""Reserve the worst case of a call before calling a provider, so that a balance is a hard limit.

A reservation counts as spent for every other call until the call is booked, in one transaction with its
release. A reservation has a lease: it expires if its server dies. A run's calls are paid out of what is held
for the run first, and never exceed the run's own limit. Knows nothing of HTTP, models or waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from proctor.server.db.many_rows import ManyRows
from proctor.server.db.tables import accounts, reservations, runs
from proctor.server.ledger.records import Claims, claims_on, in_dollars
from proctor.server.problems import PaymentError

LEASE_SECONDS = 60.0
MOST_AT_ONCE = 500
"""Ids per statement; a database accepts no more than some thousands."""

# Built once: every limited call uses these, and building a statement costs more than running it.
FUNDS = (
    select(accounts.c.owner, accounts.c.balance)
    .where(accounts.c.owner.in_(bindparam("payers", expanding=True)))
    .order_by(accounts.c.owner)
    .with_for_update()
)
BUDGETS = select(runs.c.id, runs.c.max_cost - func.coalesce(runs.c.cost, 0)).where(
    runs.c.id.in_(bindparam("runs", expanding=True)), runs.c.max_cost.is_not(None)
)
ADD = ManyRows(insert(reservations))
RELEASE = ManyRows(delete(reservations).where(reservations.c.id == bindparam("call")))


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one call can cost."""

    id: str
    """The call's own."""
    payer: str
    run_id: str | None
    amount: int


class Funds(msgspec.Struct):
    """What one account has; reduced by every reservation that is granted."""

    balance: int | None
    claims: Claims

    def covers(self, amount: int) -> bool:
        return self.balance is None or self.claims.total + amount <= self.balance


class Grants(msgspec.Struct):
    """The results of some reservations, by their ids; those in neither have to wait."""

    granted: set[str] = msgspec.field(default_factory=set)
    refused: dict[str, PaymentError] = msgspec.field(default_factory=dict)


def reserve(connection: Connection, wanted: Sequence[Reservation], holder: str, now: float) -> Grants:
    """Grant what fits, in this order; no reservation overtakes one that waits for the same money."""
    funds = lock_funds(connection, {each.payer for each in wanted})
    budgets = budgets_of(connection, {each.run_id for each in wanted if each.run_id is not None})
    grants = Grants()
    ample = find_ample(wanted, funds)
    waiting_payers: set[str] = set()
    waiting_runs: set[str | None] = set()
    for each in wanted:
        account, budget = funds[each.payer], budgets.get(each.run_id or "")
        if budget is None and each.payer in ample:
            grants.granted.add(each.id)
        elif refusal := hopeless(each, account, budget):
            grants.refused[each.id] = refusal
        elif each.run_id in waiting_runs or (each.payer in waiting_payers and not is_held(each, account)):
            continue
        elif lacks_budget(each, account, budget):
            waiting_runs.add(each.run_id)
        elif lacks_balance(each, account):
            waiting_payers.add(each.payer)
        else:
            of_run = account.claims.reserved
            of_run[each.run_id] = of_run.get(each.run_id, 0) + each.amount
            grants.granted.add(each.id)
    rows = [as_row(each, holder, now) for each in wanted if each.id in grants.granted]
    if rows:
        ADD(connection, rows)
    return grants


def find_ample(wanted: Sequence[Reservation], funds: Mapping[str, Funds]) -> set[str]:
    """The payers who can afford all that is wanted beside everything that is set aside."""
    sums = Counter[str]()
    for each in wanted:
        sums[each.payer] += each.amount
    return {payer for payer, amount in sums.items() if funds[payer].covers(amount)}


def lock_funds(connection: Connection, payers: set[str]) -> Mapping[str, Funds]:
    """What accounts have. Locks them against bookings and reservations until this transaction ends."""
    found = connection.execute(FUNDS, {"payers": list(payers)})
    balances = {row.owner: row.balance for row in found}
    return {payer: Funds(balances.get(payer), claims_on(connection, payer)) for payer in sorted(payers)}


def budgets_of(connection: Connection, run_ids: set[str]) -> Mapping[str, int]:
    """What is left of the limits of runs that have one."""
    if not run_ids:
        return {}
    limited = connection.execute(BUDGETS, {"runs": list(run_ids)})
    return {run_id: int(left) for run_id, left in limited}


def hopeless(wanted: Reservation, account: Funds, budget: int | None) -> PaymentError | None:
    """Why a reservation would not fit even without any other call under way."""
    if budget is not None and wanted.amount > budget:
        return PaymentError(
            f"This call can cost up to {in_dollars(wanted.amount)} dollars, but {in_dollars(budget)} are "
            f"left of the run's max_cost; lower max_tokens, or resume the run with a higher --max-cost.",
            code="budget",
        )
    if account.balance is not None:
        held = sum(amount for run, amount in account.claims.holds.items() if run != wanted.run_id)
        left = account.balance - held
        if wanted.amount > left:
            return PaymentError(
                f"This call can cost up to {in_dollars(wanted.amount)} dollars, but {wanted.payer} has only "
                f"{in_dollars(left)} left to spend; lower max_tokens, or ask an admin for a grant "
                f"(`proctor wallet grant {wanted.payer} USD`).",
                code="balance",
            )
    return None


def is_held(wanted: Reservation, account: Funds) -> bool:
    """Whether it is paid out of what is held for its run, for which no other call competes."""
    own = account.claims.reserved.get(wanted.run_id, 0)
    return own + wanted.amount <= account.claims.holds.get(wanted.run_id or "", 0)


def lacks_budget(wanted: Reservation, account: Funds, budget: int | None) -> bool:
    own = account.claims.reserved.get(wanted.run_id, 0)
    return budget is not None and own + wanted.amount > budget


def lacks_balance(wanted: Reservation, account: Funds) -> bool:
    if account.balance is None:
        return False
    own = account.claims.reserved.get(wanted.run_id, 0)
    return own + wanted.amount > account.balance - account.claims.beside(wanted.run_id)


def release(connection: Connection, ids: Sequence[str]) -> None:
    RELEASE(connection, [{"call": call_id} for call_id in ids])


def release_all(connection: Connection, holder: str) -> None:
    """Release everything when a server shuts down."""
    connection.execute(delete(reservations).where(reservations.c.holder == holder))


def renew(connection: Connection, ids: Sequence[str], now: float) -> None:
    """Extend the leases of calls that are still under way."""
    for start in range(0, len(ids), MOST_AT_ONCE):
        some = reservations.c.id.in_(ids[start : start + MOST_AT_ONCE])
        connection.execute(update(reservations).where(some).values(expires_at=now + LEASE_SECONDS))


def renew_all(connection: Connection, holder: str, now: float) -> None:
    own = reservations.c.holder == holder
    connection.execute(update(reservations).where(own).values(expires_at=now + LEASE_SECONDS))


def as_row(wanted: Reservation, holder: str, now: float) -> dict[str, object]:
    return {
        "id": wanted.id,
        "owner": wanted.payer,
        "run_id": wanted.run_id,
        "amount": wanted.amount,
        "holder": holder,
        "expires_at": now + LEASE_SECONDS,
    }
