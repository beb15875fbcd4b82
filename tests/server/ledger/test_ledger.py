"""Money adds up: grants, holds, charges and settlements in any order, on the database and over the API."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, event, select

from proctor.api.people import NewUser
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import migrate
from proctor.server.db.tables import calls, entries, metadata, runs
from proctor.server.ledger import records
from proctor.server.ledger.calls import LedgerCall, add_calls
from proctor.server.people.records import add_user
from proctor.server.problems import PaymentError
from proctor.trace import Usage
from tests.server.ledger.rows import START, add_run, set_up
from tests.server.serving import Served


def call(number: int, cost: int | None = 7, run_id: str | None = None) -> LedgerCall:
    return LedgerCall(
        id=f"call-{number}",
        at=float(number),
        owner="ada",
        user="ada",
        run_id=run_id,
        model="m",
        provider="p",
        usage=Usage(10, 2),
        cost=cost,
    )


@pytest.fixture
def connection() -> Iterator[Connection]:
    """A database in memory with ada, who has a thousand, and three runs of hers."""
    engine = create_engine("sqlite://")
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA foreign_keys = ON"))
    metadata.create_all(engine)
    with engine.begin() as connection:
        set_up(connection)
        yield connection
    engine.dispose()


amounts = st.integers(1, 400)
names = st.sampled_from(["run-a", "run-b", "run-c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), amounts, st.integers(0, 10**6)),
        st.tuples(st.just("hold"), amounts, names),
        st.tuples(st.just("charge"), amounts, st.one_of(st.none(), names), st.integers(0, 5)),
        st.tuples(st.just("settle"), names),
    ),
    max_size=30,
)


@given(steps)
@settings(max_examples=60, deadline=None)
def test_whatever_happens_in_whatever_order_the_sums_are_right(taken: list[tuple[Any, ...]]) -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        set_up(connection)
        balance, held, booked = START, dict[str, int](), set[str]()
        for number, step in enumerate(taken):
            match step:
                case ("grant", amount, _):
                    records.grant(connection, "ada", amount, "", f"grant-{number}")
                    balance += amount
                case ("hold", amount, run_id):
                    others = sum(value for name, value in held.items() if name != run_id)
                    if balance - others < amount:
                        with pytest.raises(PaymentError):
                            records.hold(connection, run_id, "ada", amount)
                    else:
                        records.hold(connection, run_id, "ada", amount)
                        held[run_id] = amount
                case ("charge", amount, run_id, reference):
                    is_new = records.charge(connection, "ada", amount, f"charge-{reference}", run_id)
                    assert is_new == (f"charge-{reference}" not in booked)
                    if is_new:
                        booked.add(f"charge-{reference}")
                        balance -= amount
                        if run_id in held:
                            held[run_id] = max(0, held[run_id] - amount)
                case ("settle", run_id):
                    records.settle(connection, run_id)
                    held.pop(run_id, None)
            told = records.balance_of(connection, "ada")
            assert records.millionths(told.balance_usd or 0) == balance
            assert records.sum_available(connection, "ada") == balance - sum(held.values())
        moved = connection.execute(select(entries.c.amount)).scalars()
        assert START + sum(moved) == balance
    engine.dispose()


def test_a_run_may_use_what_is_held_for_it_and_others_may_not(connection: Connection) -> None:
    records.hold(connection, "run-a", "ada", 900)

    assert records.sum_available(connection, "ada", "run-a") == 1000
    assert records.sum_available(connection, "ada", "run-b") == 100
    with pytest.raises(PaymentError, match=r"ada has 0\.0001 dollars .* needs 0\.000101 set aside"):
        records.hold(connection, "run-b", "ada", 101)


def test_what_a_run_spends_is_not_counted_twice_while_it_is_held(connection: Connection) -> None:
    records.hold(connection, "run-a", "ada", 900)
    records.charge(connection, "ada", 300, "one", "run-a")

    assert records.sum_available(connection, "ada") == 100
    records.settle(connection, "run-a")
    records.settle(connection, "run-a")
    assert records.sum_available(connection, "ada") == 700


def test_the_same_calls_written_again_change_nothing(connection: Connection) -> None:
    batch = [call(1, run_id="run-a"), call(2, run_id="run-a"), call(3), call(4, cost=None)]

    add_calls(connection, batch)
    add_calls(connection, batch)
    add_calls(connection, [*batch, call(5)])

    assert records.balance_of(connection, "ada").spent_usd == pytest.approx(28e-6)
    assert len(connection.execute(select(calls)).all()) == 5
    run = connection.execute(select(runs).where(runs.c.id == "run-a")).one()
    assert (run.cost, run.input_tokens, run.output_tokens) == (14, 20, 4)


def test_a_call_whose_booking_was_not_acknowledged_is_booked_once(served_on_both: Served) -> None:
    served_on_both.user("ada")
    platform = served_on_both.platform
    platform.database.write_now(add_calls, [call(1)])

    async def book_again() -> None:
        await asyncio.gather(platform.meter.book(call(1)), platform.meter.book(call(2)))

    served_on_both.call(book_again)

    assert platform.database.read_now(lambda connection: len(connection.execute(select(calls)).all())) == 2
    assert served_on_both.root.get("/balance?owner=ada")["spent_usd"] == pytest.approx(14e-6)


def test_an_account_without_a_balance_is_counted_and_never_refused(connection: Connection) -> None:
    add_user(connection, NewUser(name="bob"))
    records.charge(connection, "bob", 500, "bobs")
    records.hold(connection, "run-c", "bob", 10**9)

    told = records.balance_of(connection, "bob")
    assert (told.balance_usd, told.available_usd, told.spent_usd) == (None, None, 500e-6)
    assert records.find_standing(connection, "bob", None).refusal is None


def test_a_run_is_refused_by_its_own_limit_before_the_accounts(connection: Connection) -> None:
    add_run(connection, "run-d", max_cost=100, cost=100)
    add_run(connection, "run-e", max_cost=100, cost=99)

    spent, left = (records.find_standing(connection, "ada", name) for name in ("run-d", "run-e"))

    assert spent.refusal is not None
    assert spent.refusal.code == "budget"
    assert left.refusal is None


def test_charges_from_many_threads_all_count(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "proctor.db"))
    migrate(database)
    database.write_now(set_up)

    def spend(worker: int) -> None:
        for number in range(20):
            database.write_now(records.charge, "ada", 1, f"{worker}-{number}", "run-a")

    threads = [threading.Thread(target=spend, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert database.read_now(records.sum_available, "ada") == START - 80
    database.close()


# Over the API


def test_an_admin_grants_and_everybody_sees_their_own(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    key = {"idempotency-key": "once"}

    for _ in range(2):
        served.root("POST", "/grants", {"owner": "ada", "amount_usd": 5, "note": "hello"}, headers=key)

    assert ada.get("/balance")["available_usd"] == 5.0
    assert [entry["note"] for entry in ada.get("/entries")["items"]] == ["hello"]
    assert served.root.get("/balance?owner=ada")["balance_usd"] == 5.0
    assert eve("GET", "/balance?owner=ada").status == 404
    assert eve("GET", "/entries?owner=ada").status == 404
    assert eve("POST", "/grants", {"owner": "eve", "amount_usd": 5}).status == 403
    assert served.root("POST", "/grants", {"owner": "nobody", "amount_usd": 5}).status == 404
    assert served.root("POST", "/grants", {"owner": "ada", "amount_usd": 0}).status == 422


def test_entries_are_read_page_by_page(served: Served) -> None:
    for number in range(5):
        served.root.post("/grants", {"owner": "root", "amount_usd": number + 1})
    seen: list[float] = []
    cursor = ""
    while True:
        page = served.root.get(f"/entries?limit=2{cursor}")
        seen += [entry["amount_usd"] for entry in page["items"]]
        if not page["next_cursor"]:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert seen == [5, 4, 3, 2, 1]


def test_a_price_has_a_model_with_a_slash_in_its_name(served: Served) -> None:
    price = {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0}

    served.root.ok("PUT", "/prices/qwen/qwen3-8b", price)

    assert [each["model"] for each in served.root.get("/prices")["items"]] == ["qwen/qwen3-8b"]
    assert served.root("PUT", "/prices/x", {**price, "input_usd_per_million": -1}).status == 422
    served.root.ok("DELETE", "/prices/qwen/qwen3-8b")
    assert served.root("DELETE", "/prices/qwen/qwen3-8b").status == 404
