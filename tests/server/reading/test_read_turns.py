"""A reader who asks for much waits for it alone, and holds up nobody."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.reading import compare_handler
from proctor.server.problems import TooManyError
from proctor.server.quotas import (
    EXPORTS_AT_ONCE,
    MOST_VISITORS,
    MOST_WAITING_READS,
    READS_AT_ONCE,
    READS_IN_ALL,
    VISITORS_READS,
    ReadTurns,
    export_shares,
    name_visitor,
)
from proctor.server.reading import reader
from proctor.support.cancellation import cancel_task
from tests.server.datasets.pushing import ROWS, push_rows
from tests.server.runs import making
from tests.server.serving import Answer, Api, Served
from tests.waiting import SECONDS, wait_for


class HeldComparisons:
    """Comparisons that begin, and end once they are let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Event()
        self._compare = compare_handler.kept.compare

    def compare(self, *args: Any) -> Any:
        self.begun += 1
        assert self.may_end.wait(SECONDS)
        return self._compare(*args)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldComparisons]:
    comparisons = HeldComparisons()
    monkeypatch.setattr(compare_handler.kept, "compare", comparisons.compare)
    yield comparisons
    comparisons.may_end.set()


def upload_run(api: Api, name: str) -> str:
    run = str(api.post("/uploads", {"client_run_id": name, "environment": "sums", "model": "m"})["id"])
    api.post(f"/uploads/{run}/reports", {"batch": 1, "rows": [json.loads(making.row(1))]})
    api.post(f"/uploads/{run}/end", {"status": "finished"})
    return run


def test_a_reader_of_many_comparisons_keeps_no_other_waiting(served: Served, held: HeldComparisons) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    one, other = upload_run(eve, "one"), upload_run(eve, "other")
    mine = upload_run(ada, "mine")
    asked = READS_AT_ONCE + MOST_WAITING_READS + 5

    with ThreadPoolExecutor(asked) as threads:
        path = f"/compare?run={one}&run={other}&margin="
        answers: list[Future[Answer]] = [
            threads.submit(eve, "GET", f"{path}{number / 1000}") for number in range(1, asked + 1)
        ]
        try:
            wait_for(lambda: sum(answer.done() for answer in answers) == 5)
            assert held.begun == READS_AT_ONCE
            assert len(ada.get(f"/runs/{mine}/rollouts")["items"]) == 1
        finally:
            held.may_end.set()
        statuses = [answer.result(SECONDS).status for answer in answers]

    assert (statuses.count(200), statuses.count(429)) == (asked - 5, 5)


class HeldRows:
    """Rows that begin to be unpacked, and are once they are let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Event()

    def decompress(self, packed: bytes) -> bytes:
        self.begun += 1
        assert self.may_end.wait(SECONDS)
        return zlib.decompress(packed)


@pytest.fixture
def held_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldRows]:
    rows = HeldRows()
    monkeypatch.setattr(reader, "zlib", rows)
    yield rows
    rows.may_end.set()


def test_a_visitor_keeps_no_other_visitor_waiting(served: Served, held_rows: HeldRows) -> None:
    ada = served.user("ada")
    run = upload_run(ada, "mine")
    link = ada.ok("PUT", f"/runs/{run}/visibility", {"visibility": "link"})["link"].partition("?")[2]

    def read(address: str, path: str) -> int:
        return served.nobody("GET", path, headers={"x-forwarded-for": address}).status

    with ThreadPoolExecutor(READS_AT_ONCE) as threads:
        search = f"/runs/{run}/search?q=anything&{link}"
        answers = [threads.submit(read, "192.0.2.1", search) for _ in range(READS_AT_ONCE)]
        try:
            wait_for(lambda: held_rows.begun == READS_AT_ONCE)
            assert read("192.0.2.2", f"/runs/{run}?{link}") == 200
        finally:
            held_rows.may_end.set()
        assert [answer.result(SECONDS) for answer in answers] == [200] * READS_AT_ONCE


def test_many_readers_who_compute_leave_threads_for_everything_else(
    served: Served, held: HeldComparisons
) -> None:
    ada = served.user("ada")
    readers = [served.user(f"eve{number}") for number in range(READS_IN_ALL // READS_AT_ONCE + 2)]
    runs = [(upload_run(eve, "one"), upload_run(eve, "other")) for eve in readers]

    with ThreadPoolExecutor(len(readers) * READS_AT_ONCE) as threads:
        answers = [
            threads.submit(eve, "GET", f"/compare?run={one}&run={other}&margin=0.{number}")
            for eve, (one, other) in zip(readers, runs, strict=True)
            for number in range(1, READS_AT_ONCE + 1)
        ]
        try:
            wait_for(lambda: held.begun >= READS_IN_ALL)
            assert push_rows(ada, "ada", "sums", ROWS).status == 201
            assert held.begun == READS_IN_ALL
        finally:
            held.may_end.set()
        assert {answer.result(SECONDS).status for answer in answers} == {200}


def test_visitors_leave_turns_for_those_who_are_logged_in() -> None:
    async def main() -> None:
        turns = ReadTurns()
        async with asyncio.timeout(SECONDS), AsyncExitStack() as stack:
            for number in range(VISITORS_READS):
                await stack.enter_async_context(turns.turn(name_visitor(f"192.0.2.{number}")))
            one_more = turns.turn(name_visitor("192.0.2.99"))
            waiting = asyncio.create_task(one_more.__aenter__())
            async with turns.turn("ada"):
                assert not waiting.done()
            await cancel_task(waiting)

    asyncio.run(main())


def test_a_visitor_is_one_however_many_addresses_their_network_has() -> None:
    assert name_visitor("2001:db8::1") == name_visitor("2001:db8::ffff:1")
    assert name_visitor("2001:db8::1") != name_visitor("2001:db8:1::1")
    assert name_visitor("192.0.2.1") != name_visitor("192.0.2.2")


def test_all_visitors_together_have_a_limit_of_what_is_under_way() -> None:
    shares = export_shares()
    with ExitStack() as stack:
        for number in range(MOST_VISITORS * EXPORTS_AT_ONCE):
            stack.enter_context(shares.taking(name_visitor(f"192.0.2.{number}")))
        with pytest.raises(TooManyError):
            shares.check(name_visitor("192.0.2.99"))
        shares.check("ada")


def test_rows_are_unpacked_beside_the_loop_that_serves_everyone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = served.user("ada")
    run = upload_run(ada, "mine")
    loop = served.call(find_thread)
    used: list[int] = []

    def unpack(packed: bytes) -> bytes:
        used.append(threading.get_ident())
        return zlib.decompress(packed)

    monkeypatch.setattr(reader, "zlib", SimpleNamespace(decompress=unpack))

    ada.get(f"/runs/{run}/search?q=anything")
    assert used
    assert loop not in used


async def find_thread() -> int:
    return threading.get_ident()
