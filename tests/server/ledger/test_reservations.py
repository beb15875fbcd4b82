"""What is reserved for calls, held for runs and spent never exceeds what an account has."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, select

from proctor.server.db.database import Database
from proctor.server.db.tables import metadata, reservations
from proctor.server.ledger import records
from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.server.ledger.reservations import (
    LEASE_SECONDS,
    Grants,
    Reservation,
    release,
    release_all,
    renew,
    reserve,
)
from proctor.server.problems import PaymentError
from proctor.trace import Usage
from tests.server.ledger.rows import START, add_run, set_up

BUDGET = 300
RUNS = (None, "run-a", "run-b", "limited")


def wanted(name: str, amount: int, run_id: str | None = None) -> Reservation:
    return Reservation(id=name, payer="ada", run_id=run_id, amount=amount)


def reserve_one(connection: Connection, name: str, amount: int, run_id: str | None = None) -> Grants:
    return reserve(connection, [wanted(name, amount, run_id)], "here", time.time())


def booked(name: str, cost: int, run_id: str | None = None) -> LedgerCall:
    return LedgerCall(
        id=name,
        at=1.0,
        owner="ada",
        user="ada",
        run_id=run_id,
        model="m",
        provider="p",
        usage=Usage(1, 1),
        cost=cost,
        is_reserved=True,
    )


def prepare(connection: Connection) -> None:
    set_up(connection)
    add_run(connection, "limited", max_cost=BUDGET)


@pytest.fixture
def full(database: Database) -> Database:
    database.write_now(prepare)
    return database


amounts = st.integers(1, 700)
runs_of_ada = st.sampled_from(RUNS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), amounts, runs_of_ada),
        st.tuples(st.just("book"), st.floats(0, 1)),
        st.tuples(st.just("release")),
        st.tuples(st.just("hold"), amounts, st.sampled_from(RUNS[1:])),
        st.tuples(st.just("settle"), st.sampled_from(RUNS[1:])),
    ),
    max_size=40,
)


@given(steps)
@settings(max_examples=100, deadline=None)
def test_whatever_happens_in_whatever_order_nothing_is_promised_twice(taken: list[tuple[Any, ...]]) -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    under_way: list[Reservation] = []
    spent = of_limited = 0
    with engine.begin() as connection:
        prepare(connection)
        for number, step in enumerate(taken):
            match step:
                case ("reserve", amount, run_id):
                    grants = reserve_one(connection, f"call-{number}", amount, run_id)
                    if grants.granted:
                        under_way.append(wanted(f"call-{number}", amount, run_id))
                case ("book", share) if under_way:
                    ended = under_way.pop(0)
                    cost = int(share * ended.amount)
                    add_calls(connection, [booked(ended.id, cost, ended.run_id)])
                    spent += cost
                    of_limited += cost if ended.run_id == "limited" else 0
                case ("release",) if under_way:
                    release(connection, [under_way.pop().id])
                case ("hold", amount, run_id):
                    with suppress(PaymentError):
                        records.hold(connection, run_id, "ada", amount)
                case ("settle", run_id):
                    records.settle(connection, run_id)
            told = records.balance_of(connection, "ada")
            assert records.millionths(told.balance_usd or 0) == START - spent
            assert (told.available_usd or 0) >= 0
            limited = sum(each.amount for each in under_way if each.run_id == "limited")
            assert of_limited + limited <= BUDGET
            assert sum(each.amount for each in under_way) <= START - spent
    engine.dispose()


def test_many_servers_at_once_reserve_no_more_than_there_is(full: Database) -> None:
    granted: list[str] = []

    def ask(worker: int) -> None:
        for number in range(10):
            name = f"{worker}-{number}"
            granted.extend(full.write_now(reserve_one, name, 90).granted)

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(granted) == START // 90
    assert full.read_now(records.balance_of, "ada").available_usd == pytest.approx((START % 90) / 1e6)


def test_booking_and_reserving_at_once_never_lets_a_run_exceed_its_limit(full: Database) -> None:
    """A reservation that is being booked is seen as reserved or as spent, never as neither."""

    def play(worker: int) -> None:
        for number in range(15):
            name = f"{worker}-{number}"
            if full.write_now(reserve_one, name, 20, "limited").granted:
                full.write_now(add_calls, [booked(name, 20, "limited")])

    threads = [threading.Thread(target=play, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert full.read_now(records.find_standing, "ada", "limited").budget == 0
    assert full.read_now(records.sum_available, "ada") == START - BUDGET


def test_a_run_reserves_what_is_held_for_it_and_others_do_not(full: Database) -> None:
    full.write_now(records.hold, "run-a", "ada", 900)

    assert "ada has only 0.0001 left" in str(full.write_now(reserve_one, "x", 101).refused["x"])
    assert full.write_now(reserve_one, "mine", 900, "run-a").granted
    assert full.write_now(reserve_one, "others", 100).granted
    assert full.read_now(records.balance_of, "ada").held_usd == pytest.approx(START / 1e6)
    waiting = full.write_now(reserve_one, "more", 1, "run-a")
    assert (waiting.granted, waiting.refused) == (set(), {})


def test_nobody_overtakes_one_who_waits_for_the_same_money(full: Database) -> None:
    full.write_now(records.hold, "run-a", "ada", 300)
    full.write_now(reserve_one, "first", 400)
    queue = [wanted("large", 500), wanted("small", 10), wanted("held", 300, "run-a")]

    grants = full.write_now(reserve, queue, "here", time.time())

    assert grants.granted == {"held"}
    full.write_now(release, ["first"])
    assert full.write_now(reserve, queue[:2], "here", time.time()).granted == {"large", "small"}


def test_a_reservation_lives_as_long_as_its_lease_and_its_server_renews_it(full: Database) -> None:
    long_ago = time.time() - LEASE_SECONDS - 1
    full.write_now(reserve, [wanted("dead", 900)], "dead", long_ago)
    full.write_now(reserve, [wanted("alive", 50)], "alive", long_ago)
    full.write_now(renew, ["alive"], time.time())

    assert full.read_now(records.balance_of, "ada").held_usd == pytest.approx(50 / 1e6)
    assert full.write_now(reserve_one, "new", 950).granted
    full.write_now(release_all, "alive")
    left = full.read_now(lambda connection: connection.execute(select(reservations.c.id)).scalars().all())
    assert sorted(left) == ["dead", "new"]


def test_a_call_that_is_booked_again_releases_again_and_costs_once(full: Database) -> None:
    full.write_now(reserve_one, "call", 100)

    for _ in range(2):
        full.write_now(add_calls, [booked("call", 40)])

    told = full.read_now(records.balance_of, "ada")
    assert told.balance_usd == pytest.approx((START - 40) / 1e6)
    assert told.held_usd == 0
