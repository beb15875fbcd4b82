"""Accounts, their movements, and what is held for runs and calls.

All sums are millionths of a dollar. The database itself changes balances (`balance - x`), so that concurrent
charges all count; every movement has a reference, so that none counts twice. A run spends what is held for it
first. Knows nothing of HTTP or models.
"""

from __future__ import annotations

import time

import msgspec
from sqlalchemy import Connection, bindparam, case, delete, func, insert, select, update

from proctor.api.common import new_id
from proctor.api.ledger import Balance, Entry, EntryKind
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import accounts, entries, holds, namespaces, reservations, runs
from proctor.server.problems import NotFoundError, PaymentError

MILLION = 1_000_000
NEW_RUN = "new"
"""In place of the id of a run that does not exist yet: nothing is held for it."""

# Built once: every booked call uses these, and building a statement costs more than running it.
BOOKED = select(entries.c.id).where(entries.c.reference == bindparam("reference"))
BOOK = insert(entries)
TAKE = (
    update(accounts)
    .where(accounts.c.owner == bindparam("payer"))
    .values(balance=accounts.c.balance - bindparam("taken"), spent=accounts.c.spent + bindparam("taken"))
)
USE_HOLD = (
    update(holds)
    .where(holds.c.run_id == bindparam("run"))
    .values(amount=case((holds.c.amount > bindparam("taken"), holds.c.amount - bindparam("taken")), else_=0))
)
BALANCE = select(accounts.c.balance).where(accounts.c.owner == bindparam("payer"))
SUM_HELD = select(func.coalesce(func.sum(holds.c.amount), 0)).where(holds.c.owner == bindparam("payer"))
SUM_HELD_FOR_OTHERS = SUM_HELD.where(holds.c.run_id != bindparam("run"))
HOLDS = select(holds.c.run_id, holds.c.amount).where(holds.c.owner == bindparam("payer"))
RESERVED = (
    select(reservations.c.run_id, func.sum(reservations.c.amount))
    .where(reservations.c.owner == bindparam("payer"), reservations.c.expires_at > bindparam("now"))
    .group_by(reservations.c.run_id)
)
RUN_STANDING = select(
    func.coalesce(runs.c.team, runs.c.owner).label("payer"), runs.c.max_cost, runs.c.cost
).where(runs.c.id == bindparam("run"))


def dollars(amount: int) -> float:
    return amount / MILLION


def in_dollars(amount: int) -> str:
    usd = dollars(max(0, amount))
    return f"{usd:.2f}" if usd >= 1 or not usd else f"{usd:.6f}".rstrip("0")


def millionths(usd: float) -> int:
    return round(usd * MILLION)


# Movements


def grant(connection: Connection, owner: str, amount: int, note: str, reference: str) -> Entry:
    """Add to an account, or take from it. An account without a limit is limited from now on."""
    found = connection.execute(
        update(accounts)
        .where(accounts.c.owner == owner)
        .values(balance=func.coalesce(accounts.c.balance, 0) + amount)
    )
    if not found.rowcount:
        raise no_account_error(owner)
    return book(connection, "grant", owner, amount, reference, note=note)


def charge(
    connection: Connection, owner: str, amount: int, reference: str, run_id: str | None = None
) -> bool:
    """Charge an account, and the run's hold; False if that was booked already."""
    if connection.execute(BOOKED, {"reference": reference}).first() is not None:
        return False
    book(connection, "charge", owner, -amount, reference, run_id=run_id)
    connection.execute(TAKE, {"payer": owner, "taken": amount})
    if run_id is not None:
        connection.execute(USE_HOLD, {"run": run_id, "taken": amount})
    return True


def book(
    connection: Connection,
    kind: EntryKind,
    owner: str,
    amount: int,
    reference: str,
    *,
    run_id: str | None = None,
    note: str = "",
) -> Entry:
    id_, at = new_id("ent"), time.time()
    row = {"id": id_, "owner": owner, "kind": kind, "amount": amount, "run_id": run_id, "note": note}
    connection.execute(BOOK, {**row, "reference": reference, "at": at})
    return Entry(id=id_, owner=owner, kind=kind, amount_usd=dollars(amount), run=run_id, note=note, at=at)


# Holds


def hold(connection: Connection, run_id: str, owner: str, amount: int) -> None:
    """Hold a sum for a run, replacing its earlier hold; refused if the account lacks it."""
    locked = select(accounts.c.balance).where(accounts.c.owner == owner).with_for_update()
    if connection.execute(locked).one_or_none() is None:
        raise no_account_error(owner)
    check_hold(connection, owner, amount, run_id)
    settle(connection, run_id)
    connection.execute(insert(holds).values(run_id=run_id, owner=owner, amount=amount))


def check_hold(connection: Connection, owner: str, amount: int, run_id: str | None = None) -> None:
    """Refuse to hold a sum that an account lacks; without a run, for a new one."""
    left = read_unclaimed(connection, owner, run_id or NEW_RUN)
    if left is not None and left < amount:
        raise PaymentError(
            f"{owner} has {in_dollars(left)} dollars to spend, but this run needs {in_dollars(amount)} set "
            f"aside; ask an admin for a grant, or lower --max-cost.",
            code="balance",
            available_usd=dollars(left),
            needed_usd=dollars(amount),
        )


def settle(connection: Connection, run_id: str) -> None:
    """Release what is still held for a run, once: what it spent was charged as it went."""
    connection.execute(delete(holds).where(holds.c.run_id == run_id))


def sum_held(connection: Connection, owner: str, run_id: str | None = None) -> int:
    """What is held of an account for runs other than this one."""
    if run_id is None:
        return int(connection.execute(SUM_HELD, {"payer": owner}).scalar_one())
    return int(connection.execute(SUM_HELD_FOR_OTHERS, {"payer": owner, "run": run_id}).scalar_one())


def sum_available(connection: Connection, owner: str, run_id: str | None = None) -> int | None:
    """What can be spent, by one run beside what others hold; None for no limit."""
    balance = connection.execute(BALANCE, {"payer": owner}).scalar_one_or_none()
    if balance is None:
        return None
    return int(balance) - sum_held(connection, owner, run_id)


# Calls under way


class Claims(msgspec.Struct):
    """What is set aside of one account: for runs, and for calls under way, by their run."""

    holds: dict[str, int]
    reserved: dict[str | None, int]

    def beside(self, run_id: str | None) -> int:
        """What is reserved for others; a run's own calls are paid out of its hold first."""
        of_runs = (self.holds.keys() | self.reserved.keys()) - {None, run_id}
        each = (max(self.holds.get(run or "", 0), self.reserved.get(run, 0)) for run in of_runs)
        return sum(each) + (self.reserved.get(None, 0) if run_id is not None else 0)

    @property
    def total(self) -> int:
        return self.beside(None) + self.reserved.get(None, 0)


def claims_on(connection: Connection, owner: str) -> Claims:
    held = connection.execute(HOLDS, {"payer": owner})
    reserved = connection.execute(RESERVED, {"payer": owner, "now": time.time()})
    return Claims(
        holds={row.run_id: row.amount for row in held},
        reserved={run_id: int(amount) for run_id, amount in reserved},
    )


def read_unclaimed(connection: Connection, owner: str, run_id: str) -> int | None:
    """What can be held for a run: neither held for others nor reserved for calls under way."""
    balance = connection.execute(BALANCE, {"payer": owner}).scalar_one_or_none()
    return None if balance is None else int(balance) - claims_on(connection, owner).beside(run_id)


# Spending limits


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a user, or a run, can still spend."""

    payer: str
    available: int | None
    """None: no limit on the payer."""
    budget: int | None = None
    """What is left of the run's own limit; None if it has none."""

    @property
    def is_limited(self) -> bool:
        return self.available is not None or self.budget is not None

    @property
    def refusal(self) -> PaymentError | None:
        if self.budget is not None and self.budget <= 0:
            return PaymentError(
                "The run has reached its max_cost; resume it with a higher one.", code="budget"
            )
        if self.available is not None and self.available <= 0:
            return PaymentError(
                f"{self.payer} has nothing left to spend; ask an admin for a grant "
                f"(`proctor wallet grant {self.payer} USD`).",
                code="balance",
            )
        return None


def find_standing(connection: Connection, user: str, run_id: str | None) -> Standing:
    """What a user's own requests, or those of a run, may still cost; a deleted run counts as none."""
    run = None if run_id is None else connection.execute(RUN_STANDING, {"run": run_id}).one_or_none()
    if run is None:
        return Standing(payer=user, available=sum_available(connection, user))
    return Standing(
        payer=run.payer,
        available=sum_available(connection, run.payer, run_id),
        budget=None if run.max_cost is None else run.max_cost - (run.cost or 0),
    )


# Building answers


def balance_of(connection: Connection, owner: str) -> Balance:
    row = connection.execute(select(accounts).where(accounts.c.owner == owner)).one_or_none()
    if row is None:
        raise no_account_error(owner)
    kept = claims_on(connection, owner).total
    return Balance(
        owner=owner,
        balance_usd=None if row.balance is None else dollars(row.balance),
        held_usd=dollars(kept),
        available_usd=None if row.balance is None else dollars(row.balance - kept),
        spent_usd=dollars(row.spent),
    )


def list_balances(connection: Connection, after: str | None, limit: int) -> list[Balance]:
    """Of users and teams by name, and one more than the limit if there is one."""
    query = (
        select(accounts.c.owner)
        .join(namespaces, namespaces.c.name == accounts.c.owner)
        .where(namespaces.c.kind.in_(("user", "team")))
        .order_by(accounts.c.owner)
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(accounts.c.owner > after)
    return [balance_of(connection, owner) for owner in connection.execute(query).scalars().all()]


def list_entries(
    connection: Connection, owner: str, after: tuple[float, str] | None, limit: int
) -> list[Entry]:
    """The newest first, and one more than the limit if there is one."""
    query = select(entries).where(entries.c.owner == owner)
    if after is not None:
        at, id_ = after
        query = query.where((entries.c.at < at) | ((entries.c.at == at) & (entries.c.id < id_)))
    query = query.order_by(entries.c.at.desc(), entries.c.id.desc()).limit(limit + 1)
    return [
        struct_from_row(Entry, row, amount_usd=dollars(row.amount), run=row.run_id)
        for row in connection.execute(query)
    ]


def no_account_error(owner: str) -> NotFoundError:
    return NotFoundError(f"There is no account {owner!r}.")
